"""The hash of a request, by which a context rendered again is known to be what was sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

_PIECE = 2_048
"""Characters of a text that are written at once: for each, orjson asks for eight bytes or more."""


def digest(messages: Sequence[Mapping[str, Any]]) -> str:
    """The hash of rendered messages as one JSON list with sorted keys, without ever holding that list as text."""
    hashed = sha256(b"[")
    for at, message in enumerate(messages):
        hashed.update(b"," if at else b"")
        content = message.get("content")
        if not isinstance(content, str) or len(content) <= _PIECE:
            hashed.update(orjson.dumps(message, option=orjson.OPT_SORT_KEYS))
            continue
        for piece in _with_long_text(message):
            hashed.update(piece)
    hashed.update(b"]")
    return hashed.hexdigest()


def _with_long_text(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The same JSON, a part after the other."""
    for at, key in enumerate(sorted(message)):
        yield b"%c%b:" % (b"," if at else b"{", orjson.dumps(key))
        if key == "content":
            yield from _text(message[key])
        else:
            yield orjson.dumps(message[key], option=orjson.OPT_SORT_KEYS)
    yield b"}"


def _text(text: str) -> Iterator[bytes]:
    yield b'"'
    for start in range(0, len(text), _PIECE):
        yield orjson.dumps(text[start : start + _PIECE])[1:-1]
    yield b'"'

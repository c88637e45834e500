"""How a batch of events is stored: as JSON, with consecutive pieces of one text together. When a turn has ended, all of
its events are one batch, which is packed (`packed_records`) with the ids that its turn's row holds.

    ["state", {…}]                           an event: its kind and its body
    ["token", "message id", ["piece", …]]    consecutive pieces of one message's text
    ["token", "message id", [5, 3, …]]       the same where the log has the text: only the length of each piece

A piece of the third form is read as `{"message_id": …, "start": …, "length": …}`, to be looked up in the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import orjson
import zstandard

from everthread.adapters.stores import packed_records
from everthread.core.turns import EventBatch, StoredEvent, Turn

_TEXT_KINDS = ("token", "thinking")
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
"""How an earlier version packed what is longer than 256 bytes."""


def pack(batch: EventBatch, turns: Sequence[Turn] = ()) -> bytes:
    """Encode a batch of events. `turns`: those that are written with it."""
    body = dump_json([item for key, group in groupby(batch.events, _text_key) for item in _items(key, list(group))])
    if not batch.replaces_earlier:  # the small batches of a running turn are replaced
        return body
    turn = next((turn for turn in turns if turn.id == batch.turn_id), None)
    return packed_records.pack(body, () if turn is None else _ids(turn))


def unpack(turn: Turn, rows: Iterable[Any], after: int) -> list[StoredEvent]:
    """Return the events of a turn after a number from rows of batches (first number, body)."""
    return [
        event
        for first, body in rows
        for event in _events(first, json.loads(_unpacked(bytes(body), turn)))
        if event.number > after
    ]


def _unpacked(body: bytes, turn: Turn) -> bytes:
    if body.startswith(_ZSTD_MAGIC):
        return zstandard.ZstdDecompressor().decompress(body)
    return packed_records.unpack(body, _ids(turn))


def _ids(turn: Turn) -> Sequence[str]:
    """The ids in the row of an ended turn, which never change."""
    return (turn.id, turn.conversation_id, turn.question_id, turn.answer_id)


def _text_key(event: StoredEvent) -> tuple[str, str] | None:
    return (event.kind, event.body["message_id"]) if event.kind in _TEXT_KINDS else None


def _items(key: tuple[str, str] | None, events: Sequence[StoredEvent]) -> Iterator[list[Any]]:
    if key is None:
        yield from ([event.kind, event.body] for event in events)
    else:
        pieces = [event.body["text"] if "text" in event.body else event.body["length"] for event in events]
        yield [*key, pieces]


def _events(number: int, items: Sequence[Any]) -> Iterator[StoredEvent]:
    ends: dict[str, int] = {}
    for item in items:
        if len(item) == 2:
            yield StoredEvent(number, item[0], item[1])
            number += 1
            continue
        kind, message_id, pieces = item
        for piece in pieces:
            body: dict[str, Any] = {"message_id": message_id}
            if isinstance(piece, int):
                start = ends.get(message_id, 0)
                ends[message_id] = start + piece
                yield StoredEvent(number, kind, {**body, "start": start, "length": piece})
            else:
                yield StoredEvent(number, kind, {"text": piece, **body})
            number += 1


def dump_json(value: object) -> bytes:
    """JSON, of any text that Python holds."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half of a surrogate pair, or a long number
        return json.dumps(value).encode()

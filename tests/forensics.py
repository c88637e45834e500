"""What can be read out of the bytes of a SQLite file by one who knows how payloads and our own JSON are packed, and of
the memory of this process."""

from __future__ import annotations

import gc
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from types import CoroutineType, FrameType

from everthread.adapters.stores import packed_records
from everthread.adapters.stores.sqlite.compression import add_compression_functions

_MOST_BYTES = 1024
"""What lies in one piece: a page holds no more."""


def readable(content: bytes) -> bytes:
    """The bytes, and all that lies packed anywhere among them, be it in a row, a free page or the log."""
    return b"\n".join((content, *_payloads(content), *_records(content)))


def _records(content: bytes) -> Iterator[bytes]:
    """Our own JSON; a long one goes on in a chain of pages, whose first number stands where the row's page ends."""
    pages = _pages(content)
    for page in [page for known in pages.values() for page in known]:
        for begin in re.finditer(re.escape(packed_records.PACKED), page):
            here = page[begin.start() :]
            ends = [len(here), *(found.start() for found in re.finditer(rb"(?=\x00[\x00-\x0f])", here[:-3]))]
            for end in ends:
                rest = b"" if end == len(here) else _chain(pages, int.from_bytes(here[end : end + 4], "big"))
                if rest is None:
                    continue
                found = packed_records.unpack(here[:end] + rest)
                if found != here[:end] + rest:
                    yield found


def _chain(pages: dict[int, list[bytes]], number: int) -> bytes | None:
    """What the overflow pages from this one on hold; None where there is no such chain."""
    parts: list[bytes] = []
    while number:
        if number not in pages or len(parts) > 100:
            return None
        page = pages[number][-1]
        parts.append(page[4:])
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts) or None


def _pages(content: bytes) -> dict[int, list[bytes]]:
    """The pages of a database file, or of its write-ahead log, by number; the newest last."""
    found: dict[int, list[bytes]] = {}
    if content.startswith(b"SQLite format 3\x00"):
        size = int.from_bytes(content[16:18], "big")
        for number, start in enumerate(range(0, len(content), size), 1):
            found[number] = [content[start : start + size]]
    elif content[:4] in (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"):
        size = int.from_bytes(content[8:12], "big")
        for start in range(32, len(content) - size, 24 + size):
            number = int.from_bytes(content[start : start + 4], "big")
            found.setdefault(number, []).append(content[start + 24 : start + 24 + size])
    else:
        found[0] = [content]
    return found


def _payloads(content: bytes) -> Iterator[bytes]:
    with closing(_taught()) as connection:
        for begin in re.finditer(rb"[\x01\x02]", content):
            piece = content[begin.start() : begin.start() + _MOST_BYTES]
            (found,) = connection.execute("SELECT unpacked(?, '')", (piece,)).fetchone()
            if found != piece:
                yield found


def packed(raw: bytes, id: str) -> bytes:
    """A payload as it stands in a file."""
    return _made("packed", raw, id)


def unpacked(raw: bytes, id: str) -> bytes:
    """A payload as it was given."""
    return _made("unpacked", raw, id)


def _made(function: str, raw: bytes, id: str) -> bytes:
    with closing(_taught()) as connection:
        (found,) = connection.execute(f"SELECT {function}(?, ?)", (raw, id)).fetchone()
    return bytes(found)


def _taught() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    add_compression_functions(connection)
    return connection


def in_memory(word: str) -> list[str]:
    """Which objects of this process hold a text with this word in it, as far as Python's own collector can follow."""
    gc.collect()
    found: list[str] = []
    to_visit: list[object] = [sys.modules, *gc.get_objects()]
    seen = set(map(id, to_visit))
    for holder in to_visit:
        if isinstance(holder, FrameType | CoroutineType):  # what runs
            continue
        for held in gc.get_referents(holder):
            if isinstance(held, bytes | bytearray | str):
                text = held if isinstance(held, str) else bytes(held).decode("latin-1")
                if word in text.lower():
                    found.append(f"{type(holder).__name__}: {text[:80]!r}")
            elif id(held) not in seen:
                seen.add(id(held))
                to_visit.append(held)
    return found

"""What can be read out of the bytes of a SQLite file by one who knows how payloads are packed."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from everthread.adapters.stores.sqlite.compression import add_compression_functions

_MOST_BYTES = 1024
"""What lies in one piece: a page holds no more."""


def readable(content: bytes) -> bytes:
    """The bytes, and each payload that lies packed anywhere among them, be it in a row, a free page or the log."""
    return b"\n".join((content, *_payloads(content)))


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

"""Payloads as they stand in a SQLite file: packed to half their bytes and less.

A message is short and says much that all messages say (`"role":"assistant","content":"`), so it is packed with a
dictionary of that, in half the time and to fewer bytes than alone. Its id stands in the row anyway, and nothing makes
it shorter: it is left out of the payload.

Statements pack and unpack with two functions of SQL. The first byte in the file tells how: JSON, in whichever
encoding it came, begins with neither of ours, and is what earlier versions wrote. What was damaged is handed out as
it is, and fails as any other damage when it is read.
"""

from __future__ import annotations

import sqlite3

import zstandard

from everthread.adapters.stores.zstd_codec import codec

_WITHOUT_ID, _WHOLE = b"\x01", b"\x02"
"""How a packed payload begins. One that is packed with another dictionary would begin with another byte."""
_DICTIONARY = "payloads-1.dict"
"""Made by `tools/train_payloads.py`; never to be changed, since nothing that was packed is readable without it."""
_LEVEL = 1
_BYTES = 65_536
"""The largest payload that it has to be good at; those beyond are few."""
_LEAST_MATCH = 5
"""Bytes that are worth referring to; the level's own six are meant for longer texts."""
_ID = b"\x01"
"""Stands where the id was: JSON has no such byte, unless it came as UTF-16."""


def add_compression_functions(connection: sqlite3.Connection) -> None:
    """Give the connection `packed(payload, id)` and `unpacked(payload, id)`.

    A connection is used by one thread at a time, which what it packs with needs too.
    """
    compress, decompress = codec(__package__, _DICTIONARY, level=_LEVEL, source_size=_BYTES, min_match=_LEAST_MATCH)

    def packed(raw: bytes | None, id: str) -> bytes | None:
        if raw is None:
            return None
        holds_id_byte = raw.find(_ID) >= 0
        small = _WHOLE + compress(raw) if holds_id_byte else _WITHOUT_ID + compress(raw.replace(id.encode(), _ID, 1))
        return small if len(small) < len(raw) else raw

    def unpacked(raw: bytes | None, id: str) -> bytes | None:
        if raw is None:
            return None
        try:
            if raw[0] == 1:
                return decompress(raw[1:]).replace(_ID, id.encode(), 1)
            return decompress(raw[1:]) if raw[0] == 2 else raw
        except (zstandard.ZstdError, MemoryError, AttributeError, IndexError, TypeError):  # damage of any kind
            return raw

    connection.create_function("packed", 2, packed, deterministic=True)
    connection.create_function("unpacked", 2, unpacked, deterministic=True)

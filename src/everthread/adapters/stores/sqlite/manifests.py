"""Manifests in a SQLite file: packed, and of what is as in an earlier one only that one's id.

From one compaction to the next a conversation's requests have the same summaries, prompt and tools, which are most of
a manifest. A row of up to 230 bytes stays in its page of 1 KB; a longer one takes a page of its own. Manifests are only
deleted with their conversation, so an earlier one stays as long as one that refers to it.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import orjson

from everthread.adapters.stores import packed_records
from everthread.adapters.stores.sqlite import statements as sql
from everthread.core.errors import StoreDamaged

_BASE = "base"
"""The id of the manifest whose fields a manifest has where it has none of its own."""
_MOST_BYTES = 176
"""A manifest that differs in more is kept whole, and those that follow refer to it."""


def pack(connection: sqlite3.Connection, conversation: int, manifest: bytes) -> bytes:
    """A manifest as it is to be stored."""
    base = _newest_base(connection, conversation)
    if base is not None:
        id, fields = base
        own: dict[str, Any] = orjson.loads(manifest)
        if own.keys() >= fields.keys():
            changed = {name: value for name, value in own.items() if name not in fields or fields[name] != value}
            small = packed_records.pack(orjson.dumps({_BASE: id, **changed}))
            if len(small) <= _MOST_BYTES:
                return small
    return packed_records.pack(manifest)


def read(connection: sqlite3.Connection, conversation: int, id: str) -> bytes | None:
    """A manifest as it was given; None when there is none of this id."""
    row = connection.execute(sql.MANIFEST, (conversation, id)).fetchone()
    if row is None:
        return None
    manifest = packed_records.unpack(bytes(row[0]))
    fields: dict[str, Any] = orjson.loads(manifest)
    base = fields.pop(_BASE, None)
    if base is None:
        return manifest
    whole = connection.execute(sql.MANIFEST, (conversation, base)).fetchone()
    if whole is None:
        raise StoreDamaged(f"context {id!r} refers to context {base!r}, which is missing: restore a backup")
    return orjson.dumps({**orjson.loads(packed_records.unpack(bytes(whole[0]))), **fields})


def _newest_base(connection: sqlite3.Connection, conversation: int) -> tuple[str, dict[str, Any]] | None:
    """The whole manifest that the newest one is, or refers to."""
    row = connection.execute(sql.NEWEST_MANIFEST, (conversation,)).fetchone()
    if row is None:
        return None
    id, fields = row[0], orjson.loads(packed_records.unpack(bytes(row[1])))
    if _BASE not in fields:
        return id, fields
    whole = connection.execute(sql.MANIFEST, (conversation, fields[_BASE])).fetchone()
    return None if whole is None else (fields[_BASE], orjson.loads(packed_records.unpack(bytes(whole[0]))))

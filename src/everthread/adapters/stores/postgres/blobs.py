"""Blobs beside PostgreSQL: an entry comes with the name of its blob and is filled before anybody sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from everthread.adapters.stores.layout import NO_BLOB_STORE
from everthread.adapters.stores.postgres import statements as sql
from everthread.adapters.stores.postgres.pool import Connection
from everthread.core.blobs import REFERENCE, Blobs
from everthread.core.entries import Entry
from everthread.core.errors import StoreError
from everthread.core.failpoints import reach


async def fill(entries: Iterable[Entry], blobs: Blobs | None) -> list[Entry]:
    """Return the entries with their payloads; an entry whose blob is missing has none."""
    return [await _fill(entry, blobs) if _is_outside(entry) else entry for entry in entries]


async def fill_pairs(pairs: Sequence[tuple[Entry, Entry]], blobs: Blobs | None) -> Sequence[tuple[Entry, Entry]]:
    """The same for (place, newest revision). Of a revised message only the newest payload is read."""
    whole = await fill([newest for _, newest in pairs], blobs)
    return [(new if old is place else place, new) for (place, old), new in zip(pairs, whole, strict=True)]


def _is_outside(entry: Entry) -> bool:
    return entry.raw is not None and entry.raw.startswith(REFERENCE)


async def _fill(entry: Entry, blobs: Blobs | None) -> Entry:
    if blobs is None or entry.raw is None:
        raise StoreError(NO_BLOB_STORE)
    return entry._replace(raw=await asyncio.to_thread(blobs.get, entry.raw.removeprefix(REFERENCE).decode()))


async def delete_doomed(connection: Connection, blobs: Blobs) -> int:
    """Delete the blobs of what was erased, in a transaction; how many."""
    return await delete_unused(connection, blobs, [row[0] for row in await connection.fetch(sql.DOOMED_BLOBS)])


async def delete_unused(connection: Connection, blobs: Blobs, names: Sequence[str]) -> int:
    """Delete those of them that nothing refers to, in a transaction; how many."""
    await connection.execute(sql.LOCK_BLOBS)
    used = {row[0] for row in await connection.fetch(sql.USED_BLOBS, list(names))}
    unused = [name for name in names if name not in used]
    for name in unused:
        await asyncio.to_thread(blobs.delete, name)
        reach("blob.deleted")
    await connection.execute(sql.FORGET_DOOMED, list(names))
    return len(unused)

"""The archive: conversations as a file that can be verified by itself; imported and exported again, it is identical.

A zstd stream of JSON lines:

    {"everthread": "archive", "version": 1}
    {"conversation": {…}, "branches": […], "active": 0}     one for each, a parent before its children
    {"entry": {…}}                                           every entry of its log, in order, with its salt
    {"end": {"id": …, "entries": n, "chain": …, "sha256": …}}
    {"manifest": {"owner": …, "conversations": […], "sha256": …}}

Only the log is in it. Summaries, indexes and everything else that can be made again is not, so that an archive is the
same before and after a compaction. What was erased is a line without text; its commitment keeps the chain whole.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import zstandard

from everthread.core.clock import to_micros
from everthread.core.entries import Entry
from everthread.core.errors import Conflict, StoreDamaged
from everthread.core.log import BranchRow
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.ports import Store
from everthread.history import read

VERSION = 1
MEDIA_TYPE = "application/zstd"
_LEVEL = 9
_CHUNK_BYTES = 64 * 1024


async def archive(store: Store, refs: Sequence[Ref]) -> AsyncIterator[bytes]:
    """The archive of these conversations, piece by piece."""
    packing = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=False).compressobj()
    gathered = bytearray()
    async for line in lines(store, refs):
        gathered += packing.compress(line)
        if len(gathered) >= _CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered) + packing.flush()


async def lines(store: Store, refs: Sequence[Ref]) -> AsyncIterator[bytes]:
    """Yield the lines of an archive, before compression."""
    yield _line({"everthread": "archive", "version": VERSION})
    ends: list[dict[str, Any]] = []
    for ref in refs:
        async for line, end in _conversation(store, ref):
            yield line
            ends += [end] if end is not None else []
    whole = sha256("".join(end["sha256"] for end in ends).encode()).hexdigest()
    owner = refs[0].owner if refs else None
    yield _line({"manifest": {"owner": owner, "conversations": ends, "sha256": whole}})


async def _conversation(store: Store, ref: Ref) -> AsyncIterator[tuple[bytes, dict[str, Any] | None]]:
    info = await store.conversations.get(ref)
    branches, active = await store.log.branches(ref)
    hashed = sha256()
    first = _line({"conversation": row_of(info), "branches": [branch_of(row) for row in branches], "active": active})
    hashed.update(first)
    yield first, None
    count = 0
    async for entry in read.log(store.log, ref):
        if entry.seq > info.entry_count:
            raise Conflict(f"conversation {ref.id!r} grew while it was read; nothing was changed: export it again")
        line = _line({"entry": entry_of(entry)})
        hashed.update(line)
        count += 1
        yield line, None
    end = {"id": info.id, "entries": count, "chain": info.chain.hex(), "sha256": hashed.hexdigest()}
    yield _line({"end": end}), end


def row_of(info: ConversationInfo) -> dict[str, Any]:
    """A conversation's row without its owner, who is set by the import."""
    return {
        "id": info.id,
        "parent_id": info.parent_id,
        "title": info.title,
        "metadata": info.metadata,
        "is_active": info.is_active,
        "off_record": info.off_record,
        "created_at": to_micros(info.created_at),
        "deleted_at": None if info.deleted_at is None else to_micros(info.deleted_at),
    }


def branch_of(row: BranchRow) -> list[int | None]:
    return [row.number, row.parent, row.fork_seq, row.leaf_seq, row.leaf_depth, row.created_at]


_HEX = ("salt", "commitment")
_NAMES_IN_ARCHIVES = {"change_kind": "how"}
"""Fields of an entry that archives call by their column."""


def entry_of(entry: Entry) -> dict[str, Any]:
    """An entry; its link of the chain follows from it."""
    if entry.raw is None and not entry.is_erased:
        raise StoreDamaged(f"the payload of entry {entry.seq} is missing; nothing was exported: run verify")
    fields = entry._asdict().items()
    shown = {_NAMES_IN_ARCHIVES.get(name, name): value for name, value in fields if name not in ("chain", "raw")}
    return {**shown, **{name: shown[name] and shown[name].hex() for name in _HEX}, **_raw(entry.raw)}


def _raw(raw: bytes | None) -> Mapping[str, str]:
    """The bytes received, as text if they are valid UTF-8, so that people can read an archive."""
    if raw is None:
        return {}
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"raw64": b64encode(raw).decode()}


def _line(value: object) -> bytes:
    """One value, always the same bytes for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def parents_first(infos: Iterable[ConversationInfo]) -> list[Ref]:
    """Sort conversations by creation, so that a parent comes before its children."""
    return [Ref(info.owner, info.id) for info in sorted(infos, key=lambda info: (info.created_at, info.id))]

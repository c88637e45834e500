"""Which checkpoints stay. Pure: rows in, changes out.

A delta channel is rebuilt from the writes of ancestors back to its last snapshot. An ancestor that a visible
checkpoint needs for that is hidden instead of removed, and removed as soon as nothing needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.adapters.checkpoints.elements import chunks_in, forms_in, unpack
from everthread.adapters.checkpoints.values import Body, digests_in, refs_in, unpack_body
from everthread.core.checkpoints import (
    REFERS,
    CheckpointChanges,
    CheckpointsSeen,
    CheckpointState,
    StoredCheckpoint,
)

COUNTERS = "counters_since_delta_snapshot"
"""In a checkpoint's metadata: the delta channels that are not in its values."""

Key = tuple[str, str]


def drop_all(found: CheckpointsSeen) -> CheckpointChanges:
    """Every checkpoint, and the end of an epoch."""
    thread = found.thread._replace(epoch=found.thread.epoch + 1, is_closed=True, tip=0)
    return CheckpointChanges(
        thread=thread if found.all else found.thread,
        drop=[row.number for row in found.all],
        drop_blobs=found.digests,
    )


def nothing(found: CheckpointsSeen) -> CheckpointChanges:
    """Leave all of them."""
    return CheckpointChanges()


def newest_only(rows: Sequence[StoredCheckpoint]) -> set[int]:
    """The newest visible one of each namespace."""
    newest: dict[str, StoredCheckpoint] = {}
    for row in rows:
        kept = newest.get(row.namespace)
        if row.state == CheckpointState.VISIBLE and (kept is None or row.id > kept.id):
            newest[row.namespace] = row
    return {row.number for row in newest.values()}


def other_runs(run_ids: Sequence[str]) -> Callable[[Sequence[StoredCheckpoint]], set[int]]:
    """Those that were not made by some runs."""

    def chosen(rows: Sequence[StoredCheckpoint]) -> set[int]:
        return {row.number for row in rows if row.state == CheckpointState.VISIBLE and row.run_id not in run_ids}

    return chosen


class Keep:
    """Keep some checkpoints, hide what they need, remove the rest."""

    def __init__(self, chosen: Callable[[Sequence[StoredCheckpoint]], set[int]], serde: SerializerProtocol) -> None:
        self._chosen = chosen
        self._serde = serde

    def __call__(self, found: CheckpointsSeen) -> CheckpointChanges:
        chosen = self._chosen(found.all)
        by_key = {(row.namespace, row.id): row for row in found.all}
        awaited = {row.number for row in found.all if row.state == CheckpointState.AWAITED}
        needed = {row.number for row in found.all if row.number in chosen for row in self._needed(row, by_key)}
        kept = [row for row in found.all if row.number in chosen | needed | awaited]
        used = set(self._digests(kept, found))
        return CheckpointChanges(
            put=[_hidden(row) for row in kept if row.number not in chosen | awaited and not row.state],
            drop=[row.number for row in found.all if row.number not in chosen | needed | awaited],
            drop_blobs=[digest for digest in found.digests if digest not in used],
        )

    def _needed(self, row: StoredCheckpoint, by_key: Mapping[Key, StoredCheckpoint]) -> Iterator[StoredCheckpoint]:
        """The ancestors down to those that have a value for each of its delta channels."""
        open_channels = set(self._metadata(row).get(COUNTERS) or ()) - self._body(row).values.keys()
        parent = by_key.get((row.namespace, row.parent_id or ""))
        while open_channels and parent is not None:
            yield parent
            open_channels -= self._body(parent).values.keys()
            parent = by_key.get((parent.namespace, parent.parent_id or ""))

    def _body(self, row: StoredCheckpoint) -> Body:
        return unpack_body(row.body, self._serde) if row.body else Body({}, {})

    def _metadata(self, row: StoredCheckpoint) -> Mapping[str, Any]:
        kind, body = ormsgpack.unpackb(row.metadata) if row.metadata else ("null", b"")
        return self._serde.loads_typed((kind, body)) or {}

    def _digests(self, rows: Sequence[StoredCheckpoint], found: CheckpointsSeen) -> Iterator[bytes]:
        """The names of all bytes that checkpoints and their writes are made of."""
        for row in rows:
            values = self._body(row).values
            yield from digests_in(values.values())
            for refs in refs_in(values, found.chunks).values():
                yield from forms_in(refs)
        kept = {row.number for row in rows}
        for write in found.writes:
            if write.checkpoint in kept and write.kind == REFERS:
                elements = ormsgpack.unpackb(write.value)[1]
                yield from chunks_in(elements)
                yield from forms_in(unpack(elements, found.chunks))
        yield from (inner for body in found.chunks.values() for inner in chunks_in(ormsgpack.unpackb(body)))


def _hidden(row: StoredCheckpoint) -> StoredCheckpoint:
    return row._replace(state=int(CheckpointState.HIDDEN))

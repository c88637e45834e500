"""Checkpoints in memory: one conversation's shelf of them, as the databases keep it in tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointQuery,
    CheckpointsSeen,
    CheckpointState,
    Saved,
    StoredCheckpoint,
    StoredWrite,
    Thread,
)


@dataclass(slots=True)
class Shelf:
    """The checkpoints of one conversation."""

    thread: Thread = field(default_factory=Thread)
    rows: dict[int, StoredCheckpoint] = field(default_factory=dict)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    writes: dict[int, dict[tuple[str, int], StoredWrite]] = field(default_factory=dict)
    blobs: dict[bytes, bytes] = field(default_factory=dict)

    def look(self, needs: CheckpointNeeds) -> CheckpointsSeen:
        """What an intent about checkpoints asks for."""
        if needs.everything:
            writes = [write for number in sorted(self.writes) for write in self._ordered(number)]
            return CheckpointsSeen(
                thread=self.thread,
                held=[write for write in writes if write.is_held],
                all=[self.rows[number] for number in sorted(self.rows)],
                writes=writes,
                digests=list(self.blobs),
                chunks={digest: body for digest, body in self.blobs.items() if body[0] >= 128},
            )
        parent = self._one(needs.namespace, needs.parent_id)
        return CheckpointsSeen(
            thread=self.thread,
            own=self._one(needs.namespace, needs.id),
            parent=parent,
            held=[] if parent is None else self._held(parent.number),
        )

    def _one(self, namespace: str, id: str | None) -> StoredCheckpoint | None:
        number = None if id is None else self.numbers.get((namespace, id))
        return None if number is None else self.rows[number]

    def _ordered(self, number: int) -> list[StoredWrite]:
        kept = self.writes.get(number, {}).values()
        return sorted(kept, key=lambda write: (write.task_path, write.task_id, write.idx))

    def _held(self, number: int) -> list[StoredWrite]:
        return [write for write in self._ordered(number) if write.is_held]

    def apply(self, changes: CheckpointChanges) -> None:
        """Write what was decided."""
        for number in changes.drop:
            self._drop(number)
        for digest in changes.drop_blobs:
            self.blobs.pop(digest, None)
        self.blobs.update(changes.blobs)
        for row in changes.put:
            self.rows[row.number] = row
            self.numbers[row.namespace, row.id] = row.number
        for write in changes.writes:
            kept = self.writes.setdefault(write.checkpoint, {})
            if write.idx < 0 or (write.task_id, write.idx) not in kept:
                kept[write.task_id, write.idx] = write
        for write in changes.settled:
            self.writes[write.checkpoint][write.task_id, write.idx] = write
        self.thread = changes.thread or self.thread

    def _drop(self, number: int) -> None:
        row = self.rows.pop(number)
        del self.numbers[row.namespace, row.id]
        self.writes.pop(number, None)

    def read(self, namespace: str, id: str | None) -> Saved | None:
        """One checkpoint, or the newest."""
        if id is None:
            shown = [row for row in self.rows.values() if row.namespace == namespace and not row.state]
            row = max(shown, key=lambda row: row.id, default=None)
        else:
            row = self._one(namespace, id)
        return None if row is None else self._saved(row)

    def _saved(self, row: StoredCheckpoint) -> Saved:
        return Saved(row, self._ordered(row.number), self.thread)

    def listed(self, query: CheckpointQuery, conversation: str) -> Iterator[Saved]:
        """Those a query asks for, in its order."""
        shown = [row for row in self.rows.values() if row.state == CheckpointState.VISIBLE]
        shown.sort(key=lambda row: row.id, reverse=True)
        shown.sort(key=lambda row: row.namespace)
        for row in shown:
            is_meant = query.namespace in (None, row.namespace) and query.id in (None, row.id)
            if is_meant and (query.before is None or row.id < query.before) and _follows(row, query, conversation):
                yield self._saved(row)

    def ancestors(self, namespace: str, id: str, limit: int) -> list[Saved]:
        """A checkpoint and those it was made from."""
        found: list[Saved] = []
        row = self._one(namespace, id)
        while row is not None and len(found) < limit:
            found.append(self._saved(row))
            row = self._one(namespace, row.parent_id)
        return found

    def is_of(self, run_ids: Sequence[str] | None) -> bool:
        """Whether it has checkpoints of these runs or, with None, held messages."""
        if run_ids is None:
            return any(write.is_held for kept in self.writes.values() for write in kept.values())
        return any(row.run_id in run_ids for row in self.rows.values())

    def forget(self, traces: Sequence[bytes] | None) -> Counter[str]:
        """Destroy everything, or what holds some bytes."""
        before = self._counts()
        self.thread = self.thread._replace(erasures=self.thread.erasures + 1)
        for number, row in list(self.rows.items()):
            if traces is None or any(trace in row.body or trace in row.metadata for trace in traces):
                self._drop(number)
        for kept in self.writes.values():
            for key, write in list(kept.items()):
                if traces is None or any(trace in write.value for trace in traces):
                    del kept[key]
        for digest, body in list(self.blobs.items()):
            if traces is None or any(trace in body for trace in traces):
                del self.blobs[digest]
        before.subtract(self._counts())
        return before

    def _counts(self) -> Counter[str]:
        writes = sum(len(kept) for kept in self.writes.values())
        return Counter(checkpoints=len(self.rows), writes=writes, blobs=len(self.blobs))


def _follows(row: StoredCheckpoint, query: CheckpointQuery, conversation: str) -> bool:
    """Whether it stands after the place a page begins at."""
    if query.after is None or conversation > query.after[0]:
        return True
    _, namespace, id = query.after
    is_further = row.namespace > namespace or (row.namespace == namespace and row.id < id)
    return conversation == query.after[0] and is_further

"""The intents beside `put`: writes that wait on a checkpoint, and the end of a thread's checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from everthread.adapters.checkpoints.elements import Blobs, Entry, Ref
from everthread.adapters.checkpoints.holding import settled
from everthread.adapters.checkpoints.moulds import Form
from everthread.adapters.checkpoints.putting import Awaited, Unprepared, Waiting
from everthread.adapters.checkpoints.values import pack_blob
from everthread.core.checkpoints import (
    CheckpointChanges,
    CheckpointNeeds,
    CheckpointsSeen,
    CheckpointState,
    StoredCheckpoint,
    StoredWrite,
)
from everthread.core.log import Decision, Needs, Seen
from everthread.history.branch_writer import BranchWriter

HeldKey = tuple[int, str, int]
"""A write by its checkpoint's number, its task and its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepWrites:
    """Writes of one task on a checkpoint, which may come before the checkpoint itself."""

    namespace: str
    id: str
    writes: Sequence[StoredWrite]
    blobs: Mapping[bytes, bytes] = field(default_factory=dict)

    def needs(self) -> Needs:
        return Needs(checkpoints=CheckpointNeeds(namespace=self.namespace, id=self.id))

    def decide(self, seen: Seen, now: int) -> Decision[None]:
        found = seen.checkpoints
        assert found is not None
        own = found.own
        put: list[StoredCheckpoint] = []
        thread = None
        if own is None:
            thread = found.thread._replace(made=found.thread.made + 1)
            state = int(CheckpointState.AWAITED)
            own = StoredCheckpoint(thread.made, self.namespace, self.id, None, None, state, 0, 0, 0, 0, b"", b"")
            put.append(own)
        writes = [write._replace(checkpoint=own.number) for write in self.writes]
        changes = CheckpointChanges(thread=thread, put=put, writes=writes, blobs=self.blobs)
        return Decision(result=None, checkpoints=changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Log what still waits in writes, then remove what `remove` names; the log keeps every message."""

    waiting: Mapping[HeldKey, Waiting]
    remove: Callable[[CheckpointsSeen], CheckpointChanges]
    besides: Collection[str | None] = ()
    """Checkpoints whose writes go on waiting."""

    def needs(self) -> Needs:
        ready = [one.prepared for wait in self.waiting.values() for one in wait.awaited if one.prepared is not None]
        return Needs(
            ids=list(dict.fromkeys(message.id for message in ready)),
            every_revision=True,
            every_branch=True,
            checkpoints=CheckpointNeeds(everything=True),
        )

    def decide(self, seen: Seen, now: int) -> Decision[None]:
        found = seen.checkpoints
        assert found is not None
        held = self._held(found)
        unknown = [write for write in held if (write.checkpoint, write.task_id, write.idx) not in self.waiting]
        if unknown:
            raise Unprepared(unknown, {row.number: row for row in found.all})
        scribe = self._scribe(seen, found, now)
        blobs: Blobs = {}
        writes = [self._settled(write, scribe, seen, blobs) for write in held]
        changes = self.remove(found)
        return Decision(
            result=None,
            **scribe.written(),
            checkpoints=_with(changes, found, scribe, writes, blobs),
        )

    def _held(self, found: CheckpointsSeen) -> list[StoredWrite]:
        spared = {row.number for row in found.all if row.id in self.besides}
        return [write for write in found.held if write.checkpoint not in spared]

    def _scribe(self, seen: Seen, found: CheckpointsSeen, now: int) -> BranchWriter:
        """At the end of the branch that the newest root checkpoint stands on."""
        tip = next((row for row in found.all if row.number == found.thread.tip), None)
        number = seen.head.active if tip is None or tip.branch not in seen.branches else tip.branch
        room = sum(len(one.awaited) for one in self.waiting.values())
        return BranchWriter(seen, seen.branches[number], now, room)

    def _settled(self, write: StoredWrite, scribe: BranchWriter, seen: Seen, blobs: Blobs) -> StoredWrite:
        waiting = self.waiting[write.checkpoint, write.task_id, write.idx]
        refs = [_logged(one, scribe, seen, blobs) for one in waiting.awaited]
        return settled(write, waiting.held, refs, blobs)


def _logged(one: Awaited, scribe: BranchWriter, seen: Seen, blobs: Blobs) -> Ref | None:
    """Where a message stands: wherever the log has it, or at the end."""
    if one.prepared is None:
        return None
    elsewhere = next((e for e in seen.revisions.get(one.prepared.id, ()) if e.raw == one.prepared.raw), None)
    seq = scribe.write(one.prepared).seq if elsewhere is None else elsewhere.seq
    known = scribe.known(one.prepared.id) if elsewhere is None else elsewhere
    if isinstance(one.part.cast, Form):
        return Entry(seq, None, pack_blob(*one.part.cast, blobs))
    return seq if known is not None and known.raw == one.prepared.raw else None


def _with(
    changes: CheckpointChanges,
    found: CheckpointsSeen,
    scribe: BranchWriter,
    writes: Sequence[StoredWrite],
    blobs: Blobs,
) -> CheckpointChanges:
    """The removal together with what was logged: the tip stands behind that now."""
    dropped = set(changes.drop)
    put = {row.number: row for row in changes.put}
    tip = put.get(found.thread.tip) or next((row for row in found.all if row.number == found.thread.tip), None)
    if scribe.entries and tip is not None and tip.number not in dropped and tip.branch == scribe.branch.number:
        branch = scribe.branch
        put[tip.number] = tip._replace(leaf_seq=branch.leaf_seq, leaf_depth=branch.leaf_depth)
    return CheckpointChanges(
        thread=changes.thread,
        put=list(put.values()),
        settled=[write for write in writes if write.checkpoint not in dropped],
        blobs=blobs,
        drop=changes.drop,
        drop_blobs=[digest for digest in changes.drop_blobs if digest not in blobs],
    )

"""The proof, read back: every entry hashed again, every chain followed, every head compared."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from everthread.core import chain
from everthread.core.chain import SettingsChange
from everthread.core.checkpoints import digest_of
from everthread.core.entries import UNCOUNTED, Entry, Flag, Kind, Mark, Revision
from everthread.core.errors import Invalid, NotFound
from everthread.core.log import BranchRow
from everthread.core.nouns import ConversationInfo, Head, Problem, Ref, VerifyReport
from everthread.core.ports import Store
from everthread.history.ingest import count_raw

PAGE = 500
_SHOWN = Flag.DELETED | Flag.PINNED | Flag.QUARANTINED | Flag.REMOVED
"""The flags that marks set."""
_READ_AGAIN = 5
"""Somebody may set a title between two reads."""
_ERASED = -1
"""In place of the time of the last change, which for an erased entry is that of the erase."""


async def heads(store: Store) -> list[Head]:
    """The end of every log, to be kept elsewhere."""
    changes = await store.maintenance.newest_changes()
    return [
        Head(
            owner=info.owner,
            conversation_id=info.id,
            count=info.entry_count,
            chain=info.chain.hex(),
            changes=0 if (newest := changes.get(Ref(info.owner, info.id))) is None else newest.number,
            changes_chain="" if newest is None else newest.chain.hex(),
        )
        for info in await store.maintenance.heads()
    ]


async def verify(
    store: Store, against: Iterable[Head] | None = None, *, owner: str | None = None, conversation: str | None = None
) -> VerifyReport:
    """Hash the whole store again, or what these name. `against` are heads taken earlier: they must still be on the
    chains."""
    expected = {(head.owner, head.conversation_id): head for head in map(_checked, against or ())}
    tally = _Tally()
    for info in await store.maintenance.heads():
        if owner not in (None, info.owner) or conversation not in (None, info.id):
            continue
        before = len(tally.problems)
        work = partial(_verify_one, store, info, expected.pop((info.owner, info.id), None), tally)
        await (store.run_reads(work) if info.entry_count <= PAGE else work())  # a short log in one trip
        tally.problems[before:] = [await _with_blob(store, problem) for problem in tally.problems[before:]]
    for head in expected.values():
        tally.problem("missing", Ref(head.owner, head.conversation_id), None, "the conversation is missing")
    if conversation is not None and not tally.conversations and not tally.problems:
        raise NotFound(f"no conversation {conversation!r}" + (f" of the owner {owner!r}" if owner else ""))
    return VerifyReport(
        conversations=tally.conversations,
        entries=tally.entries,
        messages=tally.messages,
        erased=tally.erased,
        problems=tuple(tally.problems),
    )


async def _with_blob(store: Store, problem: Problem) -> Problem:
    """The same, naming the blob where the payload is in one: that is what is to be restored."""
    if problem.kind not in ("payload", "chain") or problem.seq is None:
        return problem
    name = await store.maintenance.blob_at(Ref(problem.owner, problem.conversation_id), problem.seq)
    if name is None:
        return problem
    what = "is missing" if problem.kind == "payload" else "does not hold what was written"
    return replace(problem, kind="blob", detail=f"the blob {name} {what}: restore it from a copy of the blob store")


def _checked(head: object) -> Head:
    if not isinstance(head, Head):
        raise Invalid(f"must be heads as heads() gives them, not {type(head).__name__}", field="against")
    return head


@dataclass(slots=True)
class _Tally:
    conversations: int = 0
    entries: int = 0
    messages: int = 0
    erased: int = 0
    problems: list[Problem] = field(default_factory=list)

    def problem(self, kind: str, ref: Ref, seq: int | None, detail: str) -> None:
        self.problems.append(Problem(kind=kind, owner=ref.owner, conversation_id=ref.id, seq=seq, detail=detail))


async def _verify_one(store: Store, info: ConversationInfo, expected: Head | None, tally: _Tally) -> None:
    ref = Ref(info.owner, info.id)
    tally.conversations += 1
    before, count, views = chain.genesis(*ref), 0, _Views()
    async for entry in _entries(store, ref, info.entry_count):
        count += 1
        if entry.seq != count:
            tally.problem("gap", ref, count, f"entry {count} is missing, the next one is {entry.seq}")
            return
        before = _verify_entry(before, entry, ref, tally)
        views.read(entry)
        if expected is not None and expected.count == count and expected.chain != before.hex():
            tally.problem("rewritten", ref, count, "the chain differs from the head taken earlier")
    if count != info.entry_count:
        tally.problem("count", ref, count, f"the row says {info.entry_count} entries, the log has {count}")
    elif before != info.chain:
        tally.problem("head", ref, count, "the chain does not end at the head in the conversation's row")
    if expected is not None and expected.count > count:
        tally.problem("cut", ref, count, f"an earlier head has {expected.count} entries, the log has {count}")
    await _verify_settings(store, info, expected, tally)
    await _verify_views(store, info, views, tally)
    await _verify_checkpoints(store, info, tally)


async def _verify_settings(store: Store, info: ConversationInfo, expected: Head | None, tally: _Tally) -> None:
    """What the row says of the conversation is what was last committed to; earlier heads are on that chain."""
    ref = Ref(info.owner, info.id)
    before, newest = chain.settings_genesis(*ref), None
    while page := await store.conversations.changes(ref, after=newest.number if newest else 0, limit=PAGE):
        for change in page:
            number = newest.number + 1 if newest else 1
            before = chain.link_settings(before, number, change.changed_at, change.commitment)
            if (change.number, change.chain) != (number, before):
                tally.problem(
                    "settings", ref, None, f"change {number} of the conversation's settings is not on its chain"
                )
                return
            newest = change
            if expected is not None and expected.changes == number and expected.changes_chain != before.hex():
                tally.problem("rewritten", ref, None, "the chain of its settings differs from the head taken earlier")
    found = newest.number if newest else 0
    if expected is not None and expected.changes > found:
        tally.problem("cut", ref, None, f"an earlier head has {expected.changes} changes of its settings, not {found}")
    if newest is not None and not await _is_committed(store, info, newest):
        tally.problem("settings", ref, None, "the row does not say what was last set: title, metadata, times or state")


async def _is_committed(store: Store, info: ConversationInfo, newest: SettingsChange) -> bool:
    ref = Ref(info.owner, info.id)
    for _ in range(_READ_AGAIN):
        if newest.salt is not None and chain.commit_to_settings(newest.salt, info) == newest.commitment:
            return True
        try:
            info = await store.conversations.get(ref)
        except NotFound:  # erased: nothing of it is shown to anybody
            return True
        newest = [newest, *await store.conversations.changes(ref, after=newest.number - 1, limit=PAGE)][-1]
    return False


async def _verify_views(store: Store, info: ConversationInfo, views: _Views, tally: _Tally) -> None:
    ref = Ref(info.owner, info.id)
    try:
        branches, _ = await store.log.branches(ref)
        found = [*views.differences(), *views.misplaced(branches)]
        # A row may rightly show more than the stretch we read when somebody writes meanwhile.
        is_as_read = not found or (await store.conversations.get(ref)).entry_count == info.entry_count
    except NotFound:  # erased: nothing of it is shown to anybody
        return
    for seq, detail in found if is_as_read else ():
        tally.problem("projection", ref, seq, detail)


async def _verify_checkpoints(store: Store, info: ConversationInfo, tally: _Tally) -> None:
    """Checkpoints stand somewhere on the log, and the bytes they share are those that their names were made from."""
    ref = Ref(info.owner, info.id)
    found = await store.checkpoints.all(ref)
    if not found.all and not found.digests:
        return
    now = await store.conversations.get(ref)  # somebody may have written meanwhile
    for row in found.all:
        if max(row.log_count, row.leaf_seq) > now.entry_count:
            tally.problem("checkpoint", ref, row.leaf_seq, f"checkpoint {row.id} points beyond the end of the log")
    for start in range(0, len(found.digests), PAGE):
        digests = found.digests[start : start + PAGE]
        for digest, body in (await store.checkpoints.blobs(ref, digests)).items():
            if digest_of(body) != digest:
                tally.problem("checkpoint", ref, None, f"the value {digest.hex()} does not match its digest")


async def _entries(store: Store, ref: Ref, until: int) -> AsyncIterator[Entry]:
    """The log up to the count in the row: what is appended while we read is not ours to judge."""
    after = 0
    while page := await store.log.scan(ref, after=after, limit=PAGE, with_tokens=False):
        for entry in page:
            if entry.seq > until:
                return
            yield entry
        after = page[-1].seq
        if after >= until:
            return


def _counts_right(entry: Entry) -> bool:
    """Whether the row counts the tokens that the message has, if it counts them yet."""
    if entry.raw is None or entry.kind == Kind.MARK or entry.tokens == UNCOUNTED:
        return True
    return entry.tokens == count_raw(entry.raw)


def _verify_entry(before: bytes, entry: Entry, ref: Ref, tally: _Tally) -> bytes:
    tally.entries += 1
    tally.messages += entry.is_place and not entry.is_erased
    tally.erased += entry.is_erased
    commitment = chain.commitment_of(entry)
    if commitment is None:
        tally.problem("payload", ref, entry.seq, "the payload is missing, but the entry was not erased")
        return entry.chain
    after = chain.relink(before, entry, commitment)
    if after != entry.chain:
        tally.problem("chain", ref, entry.seq, "the entry does not match its hash")
    elif not _counts_right(entry):
        tally.problem("projection", ref, entry.seq, "the row does not count the tokens that the message has")
    elif entry.is_erased is not (entry.raw is None):  # what is there would not be shown, or what is not would be
        tally.problem("projection", ref, entry.seq, "the row does not say whether the entry was erased")
    return entry.chain


def faults(entries: Iterable[Entry], branches: Sequence[BranchRow]) -> list[str]:
    """What is wrong with how the entries of one log and its branches stand to each other."""
    views = _Views()
    for entry in entries:
        views.read(entry)
    return [f"at {seq}: {detail}" for seq, detail in (*views.differences(), *views.misplaced(branches))]


class _Views:
    """What the rows say about each message and branch now, against what the log itself says."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}
        self._flags: dict[int, int] = {}
        self._changed_at: dict[int, int] = {}
        self._removed_at: dict[int, int] = {}
        self._rows: dict[int, tuple[int | None, int, int | None]] = {}
        self._leaves: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._strays: list[int] = []
        self._edits: dict[int, int] = {}
        self._miscounted: list[int] = []
        self._depths = array("L", [0])

    def read(self, entry: Entry) -> None:
        if entry.kind == Kind.MARK:
            self._mark(entry)
        elif entry.change_kind == Revision.REPLACE:
            self._newest[entry.revises or 0] = entry.seq
            self._changed_at[entry.revises or 0] = entry.created_at
        elif entry.newest_seq is not None or entry.flags & _SHOWN or entry.updated_at is not None:
            at = _ERASED if entry.is_erased else entry.updated_at
            self._rows[entry.seq] = (entry.newest_seq, entry.flags & _SHOWN, at)
        if entry.kind == Kind.MESSAGE:
            self._count(entry)
        self._depths.append(entry.depth if entry.is_place else 0)
        if entry.is_place:
            self._place(entry)

    def _count(self, entry: Entry) -> None:
        """The number of a revision is not in the chain: the first is 1, each later one is more than what it revises."""
        before = 0 if entry.change_kind is None else self._edits.get(entry.revises or 0, 1)
        if entry.revision <= before or (entry.change_kind is None and entry.revision != 1):
            self._miscounted.append(entry.seq)
        if entry.change_kind == Revision.EDIT:
            self._edits[entry.seq] = entry.revision

    def _place(self, entry: Entry) -> None:
        """The parent is in the chain, branch and depth are not: along a branch each message follows the one before."""
        parent = min(entry.parent_seq or 0, entry.seq)
        is_next = parent == self._leaves.get(entry.branch, self._starts.setdefault(entry.branch, parent))
        if not is_next or entry.depth != self._depths[parent] + 1:
            self._strays.append(entry.seq)
        self._leaves[entry.branch] = entry.seq

    def _mark(self, entry: Entry) -> None:
        seq = entry.revises or 0
        flags = self._flags.get(seq, 0)
        changed: Mapping[int | None, int] = {
            Mark.DELETED: flags | Flag.DELETED,
            Mark.RESTORED: flags & ~Flag.DELETED,
            Mark.PINNED: flags | Flag.PINNED,
            Mark.UNPINNED: flags & ~Flag.PINNED,
            Mark.QUARANTINED: flags | Flag.QUARANTINED,
            Mark.RELEASED: flags & ~Flag.QUARANTINED,
            Mark.RETURNED: flags,
        }
        if entry.change_kind == Mark.REMOVED:
            self._removed_at[seq] = entry.created_at
        elif entry.change_kind == Mark.RETURNED:
            self._removed_at.pop(seq, None)
        if entry.change_kind in changed:
            self._flags[seq] = changed[entry.change_kind]
            self._changed_at[seq] = entry.created_at

    def differences(self) -> list[tuple[int, str]]:
        """Only places are compared; a revision's flags repeat those of its place."""
        found = []
        for seq in sorted(self._rows.keys() | self._changed_at.keys()):
            newest, flags, changed_at = self._rows.get(seq, (None, 0, None))
            changes = [self._changed_at.get(seq)]
            if flags & Flag.REMOVED and seq in self._removed_at:  # a row is shown so since that flag exists
                flags &= ~Flag.REMOVED
                changes = [max(self._removed_at[seq], self._changed_at.get(seq, 0))]
            if changed_at not in (_ERASED, *changes):
                found.append((seq, "the row does not say when the message was last changed"))
            if newest != self._newest.get(seq):
                found.append((seq, f"the row does not name entry {self._newest.get(seq)} as the newest revision"))
            if flags != self._flags.get(seq, 0):
                found.append((seq, "the row does not show what the marks in the log say"))
        return found + [(seq, "the row does not count the revisions before it") for seq in self._miscounted]

    def _depth_at(self, seq: int) -> int:
        return self._depths[seq] if seq < len(self._depths) else -1

    def misplaced(self, branches: Sequence[BranchRow]) -> list[tuple[int, str]]:
        """Messages that stand on a branch they were not written to, and branches that begin or end elsewhere."""
        found = [(seq, "the row does not stand behind its parent") for seq in self._strays]
        for row in branches:
            if self._starts.pop(row.number, row.fork_seq) != row.fork_seq:
                found.append((row.fork_seq, f"branch {row.id} does not begin where its first message does"))
            leaf = self._leaves.get(row.number, row.fork_seq)
            if leaf != row.leaf_seq or self._depth_at(leaf) != row.leaf_depth:
                found.append((row.leaf_seq, f"branch {row.id} does not end at its last message"))
        return found + [(start, f"the row of branch {number} is missing") for number, start in self._starts.items()]

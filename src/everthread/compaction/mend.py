"""After a message inside a summary was hidden or restored: what stood for the same messages before is used again, and
what is missing is summarised at once, without a model. Summaries of other messages stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from everthread.compaction.compactor import Compactor
from everthread.compaction.plan import span_hash
from everthread.compaction.summary_chain import gap_end
from everthread.context.read_view import View, to_log_message
from everthread.core.compactions import Compaction
from everthread.core.entries import Kind
from everthread.core.errors import Conflict
from everthread.core.log import CompactionQuery, Decision, IntentInputs, Needs
from everthread.core.nouns import Ref
from everthread.core.paths import is_on
from everthread.core.ports import CompactionPosition, PathQuery, Store

_PAGE = 200
_MOST_STRETCHES = 4
_MOST_MESSAGES = 10_000


async def mend_summaries(compactor: Compactor, ref: Ref, read: Callable[[], Awaitable[View]]) -> None:
    """Make the chain of summaries whole again where a message inside was hidden or restored."""
    try:
        view = await read()
        known = await _every_compaction(compactor.store, ref)
        if await _revive(compactor, ref, view, known):
            view = await read()
        for _ in range(_MOST_STRETCHES):
            beyond = CompactionQuery(over=(view.covered_until + 1, view.leaf_seq))
            later = await compactor.store.views.compactions(ref, beyond)
            end = gap_end(later, view.inputs.segments, view.covered_until)
            if end is None and (end := _lost_end(view, known)) is None:
                return
            outcome = await replace(compactor, until=end).compact(ref, view, "messages")
            if not outcome.compacted:
                return
            view = await read()
    except Conflict:  # somebody else changed it meanwhile: the next compaction looks again
        return


async def _every_compaction(store: Store, ref: Ref) -> list[Compaction]:
    known, after = list[Compaction](), None
    while page := await store.views.all_compactions(ref, after=after, limit=_PAGE):
        known += page
        after = CompactionPosition(page[-1].created_at, page[-1].id)
    return known


def _lost_end(view: View, known: Sequence[Compaction]) -> int | None:
    """Where the stretch ends that had the newest summary, if a message in it was hidden or restored; else None."""
    gone = (one for one in known if one.invalid_at is not None and one.undone_at is None and not one.children)
    ends = [
        one.last_seq
        for one in gone
        if one.after_seq == view.covered_until and is_on(view.inputs.segments, one.branch, one.last_seq)
    ]
    return ends[-1] if ends else None


async def _revive(compactor: Compactor, ref: Ref, view: View, known: Sequence[Compaction]) -> bool:
    """Use again the summary of the very messages that follow where the chain ends, and those made from it."""
    store = compactor.store
    gone = [one for one in known if one.invalid_at is not None and one.undone_at is None]
    found: list[Compaction] = []
    for lowest in (one for one in gone if not one.children and one.after_seq == view.covered_until):
        query = PathQuery(
            branch=view.leaf_seq, after=lowest.after_seq, before=lowest.last_seq + 1, limit=_MOST_MESSAGES
        )
        stretch = [to_log_message(*pair) for pair in await store.log.path(ref, query)]
        if span_hash(stretch) == lowest.span_hash:
            found = [lowest]
    if not found:
        return False
    in_use = {one.id for one in known if one.is_live} | {found[0].id}
    for parent in sorted((one for one in gone if one.children), key=lambda one: one.level):
        if parent.after_seq <= found[0].after_seq < parent.last_seq and in_use.issuperset(parent.children):
            found.append(parent)
            in_use.add(parent.id)
    revived = await store.log.write(ref, ReviveCompactions(compactions=found, read_at=view.inputs.entry_count))
    return revived > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviveCompactions:
    """Summaries that are used again: one of messages, and those above it, lowest first."""

    compactions: Sequence[Compaction]
    read_at: int

    def needs(self) -> Needs:
        first = self.compactions[0]
        return Needs(compactions=CompactionQuery(over=(first.after_seq, first.last_seq)), since=self.read_at)

    def decide(self, seen: IntentInputs, now: int) -> Decision[int]:
        """How many are used again; none where something else stands for the messages, or one of them changed."""
        lowest = self.compactions[0]
        if any(entry.kind == Kind.MARK or entry.revises is not None for entry in seen.since):
            raise Conflict("a message changed meanwhile; nothing was kept")
        for other in seen.compactions:
            overlaps = other.after_seq < lowest.last_seq and other.last_seq > lowest.after_seq
            if other.is_live and not other.children and overlaps:
                return Decision(result=0)
        revived = [replace(one, invalid_at=None) for one in self.compactions]
        return Decision(result=len(revived), compactions=revived)

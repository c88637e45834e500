"""What a model sees of a conversation, and the compactions that make it fit: `conversation.py` hands these on.

Reading a view takes two reads of the store: the outlook (path, compactions, settings), then the window's messages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from everthread.compaction.facts import facts_of, kept, rank_facts
from everthread.compaction.plan import next_stretch, sources, span_hash
from everthread.compaction.policy import CompactionPolicy, Load, Trigger, due, merged
from everthread.compaction.record import KeepCompaction
from everthread.compaction.sources import Leaf
from everthread.compaction.summarise import Failure, Redact, Summariser, Summary, condensed, summarise
from everthread.compaction.view import on_path, shown, to_condense
from everthread.context.assemble import Context, Ingredients, Stored, Summed, assemble
from everthread.context.budget import Budget
from everthread.context.growth import jump
from everthread.context.shape import Provider, is_user_turn
from everthread.context.tokens import count_tokens
from everthread.context.units import spans
from everthread.core.clock import Clock
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.errors import Conflict
from everthread.core.ids import new_id
from everthread.core.log import BranchName, Segment
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Outlook, PathQuery, Store

_MOST_ORIGINALS = 10_000
_LOOK_BACK = 64
"""Messages read before the window's first, to see whether it stands in the middle of a unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """What came of asking for a compaction."""

    compacted: bool
    compaction: Compaction | None = None
    original_count: int = 0
    new_count: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    error: str | None = None
    reason: str | None = None
    """Why nothing was done, or what would be done in a dry run."""
    failures: tuple[Failure, ...] = ()

    def followed_by(self, later: CompactionOutcome) -> CompactionOutcome:
        """Two that were made one after the other, as one."""
        return replace(
            later,
            original_count=self.original_count,
            tokens_before=self.tokens_before + later.tokens_before,
            tokens_after=self.tokens_after + later.tokens_after,
            failures=(*self.failures, *later.failures),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A path as a model sees it now."""

    outlook: Outlook
    policy: CompactionPolicy
    row: Sequence[Compaction]
    """The summaries in use, oldest first."""
    window: Sequence[Stored]
    """The messages no summary stands for, as far as the window reaches."""
    passed_over: tuple[int, int] | None
    pinned: Sequence[Stored]
    uncovered: int

    @property
    def covered_until(self) -> int:
        return self.row[-1].last_seq if self.row else 0


def policy_of(base: CompactionPolicy, outlook: Outlook, request: Mapping[str, Any] | None = None) -> CompactionPolicy:
    """The server's settings, then the conversation's, then the request's."""
    policy = base
    for level in (*outlook.policies,):
        if level is not None:
            policy = merged(policy, orjson.loads(level))
    return merged(policy, request) if request else policy


async def look(
    store: Store, ref: Ref, branch: BranchName, base: CompactionPolicy, request: Mapping[str, Any] | None = None
) -> View:
    """Read what a view of this path is made from."""
    outlook = await store.outlook(ref, branch)
    policy = policy_of(base, outlook, request)
    row = shown(outlook.compactions, outlook.segments)
    covered = row[-1].last_seq if row else 0
    covered_depth = await _depth(store, ref, covered)
    uncovered = max(0, outlook.leaf_depth - covered_depth)
    wanted = uncovered - jump(uncovered, policy.bounds)
    query = PathQuery(branch=branch, after=covered, limit=wanted + _LOOK_BACK, newest_first=True)
    read = [_stored(place, newest) for place, newest in (await store.path(ref, query))[::-1]]
    start = _window_start(read, wanted)
    first = read[start].seq if start < len(read) else 0
    return View(
        outlook=outlook,
        policy=policy,
        row=row,
        window=read[start:],
        passed_over=_passed_over(covered, read, start, uncovered),
        pinned=[
            _stored(place, newest)
            for place, newest in outlook.pinned
            if place.seq < first and _is_on(outlook.segments, place)
        ],
        uncovered=uncovered,
    )


async def _depth(store: Store, ref: Ref, seq: int) -> int:
    found = await store.find(ref, seqs=[seq]) if seq else ()
    return found[0].depth if found else 0


def _window_start(read: Sequence[Stored], wanted: int) -> int:
    """The first user's turn at or after where the window is to begin; else the first unit there."""
    begin = max(0, len(read) - wanted)
    if begin == 0:
        return 0
    starts = [span.start for span in spans([stored.payload for stored in read]) if span.start >= begin]
    turns = [start for start in starts if is_user_turn(read[start].payload)]
    return (turns or starts or [begin])[0]


def _passed_over(covered: int, read: Sequence[Stored], start: int, uncovered: int) -> tuple[int, int] | None:
    """The stretch between the summaries and the window: named, so that there is no silent hole."""
    shown_count = len(read) - start
    if start >= len(read) or uncovered <= shown_count:
        return None
    return covered + 1, read[start].seq - 1


def _is_on(segments: Sequence[Segment], place: Entry) -> bool:
    return any(one.branch == place.branch and one.after < place.seq <= one.last for one in segments)


def _stored(place: Entry, newest: Entry) -> Stored:
    message = Message(newest, place)
    said = message.said_at or message.created_at
    return Stored(
        seq=place.seq,
        entry_seq=newest.seq,
        payload=message.payload,
        tokens=newest.tokens,
        said=said.isoformat(timespec="minutes"),
    )


def render(view: View, budget: Budget, *, system: str | None = None, provider: Provider | None = None) -> Context:
    """The request this view makes."""
    given = Ingredients(
        system=system,
        summaries=[
            Summed(id=one.id, first_seq=one.first_seq, last_seq=one.last_seq, text=one.summary) for one in view.row
        ],
        pinned=view.pinned,
        window=view.window,
        passed_over=view.passed_over,
        old_before=_old_before(view),
    )
    return assemble(given, budget, provider=provider)


def _old_before(view: View) -> int:
    """How many messages of the window are old: a mark that moves in steps, so that the request before it does not."""
    bounds = view.policy.bounds
    mark = max(0, view.outlook.leaf_depth - bounds.keep_recent) // bounds.step * bounds.step
    return max(0, mark - (view.outlook.leaf_depth - len(view.window)))


async def compact(
    store: Store,
    ref: Ref,
    view: View,
    *,
    trigger: Trigger,
    clock: Clock,
    model: Summariser | None = None,
    redact: Redact = str,
    dry_run: bool = False,
    keep_recent: int | None = None,
) -> CompactionOutcome:
    """Sum up the oldest stretch that is not summed up yet; then, where a level is full, condense it."""
    began = time.monotonic()
    uncovered = await _uncovered(store, ref, view)
    stretch = next_stretch(uncovered, view.policy, keep_recent=keep_recent)
    if not stretch:
        return CompactionOutcome(compacted=False, reason="nothing is old enough to be summed up")
    before = sum(stored.tokens for stored in stretch)
    if dry_run:
        return CompactionOutcome(
            compacted=False,
            original_count=len(uncovered),
            new_count=len(uncovered) - len(stretch) + 1,
            tokens_before=before,
            tokens_after=min(before, view.policy.summary_max_tokens),
            reason=f"messages {stretch[0].seq} to {stretch[-1].seq} would be summed up",
        )
    made = await summarise(sources(stretch), before, view.policy, model=model, redact=redact)
    if not isinstance(made, Summary):
        return CompactionOutcome(
            compacted=False,
            tokens_before=before,
            error="no summary is shorter than what it would stand for",
            failures=made,
        )
    compaction = _new(view, stretch, made, trigger, len(uncovered), before, clock, time.monotonic() - began)
    try:
        done, _ = await store.write(
            ref,
            KeepCompaction(compaction=compaction, path=view.outlook.segments, read_at=view.outlook.entry_count),
        )
    except Conflict as problem:
        return CompactionOutcome(compacted=False, error=str(problem), failures=made.failures)
    await _condense(store, ref, view, clock)
    return CompactionOutcome(
        compacted=True,
        compaction=done,
        original_count=len(uncovered),
        new_count=done.new_count,
        tokens_before=before,
        tokens_after=done.tokens_after,
        failures=made.failures,
    )


async def _uncovered(store: Store, ref: Ref, view: View) -> list[Stored]:
    """From where the summaries end: as much as one compaction may look at."""
    leaf = view.outlook.segments[-1].last if view.outlook.segments else 0
    pairs = await store.path(ref, PathQuery(branch=leaf, after=view.covered_until, limit=2000))
    return [_stored(place, newest) for place, newest in pairs]


def _new(
    view: View,
    stretch: Sequence[Stored],
    made: Summary,
    trigger: Trigger,
    uncovered: int,
    tokens_before: int,
    clock: Clock,
    seconds: float,
) -> Compaction:
    last = stretch[-1].seq
    branch = next(segment.branch for segment in view.outlook.segments if segment.after < last <= segment.last)
    return Compaction(
        id=new_id(),
        level=1,
        first_seq=stretch[0].seq,
        last_seq=last,
        after_seq=view.covered_until,
        branch=branch,
        span_hash=span_hash(stretch),
        children=(),
        summary=made.text,
        strategy=made.strategy,
        model=made.model,
        trigger=trigger,
        original_count=uncovered,
        new_count=uncovered - len(stretch) + 1,
        tokens_before=tokens_before,
        tokens_after=made.tokens,
        facts_total=made.facts_total,
        facts_kept=made.facts_kept,
        seconds=round(seconds, 3),
        created_at=clock(),
    )


async def _condense(store: Store, ref: Ref, view: View, clock: Clock) -> None:
    """One level up, where a level has more summaries than its fan-in; as often as it takes."""
    leaf = view.outlook.segments[-1].last
    while True:
        outlook = await store.outlook(ref, leaf)
        row = shown(outlook.compactions, outlook.segments)
        oldest = to_condense(row, view.policy.fan_in)
        if not oldest:
            return
        began = time.monotonic()
        leaves = [Leaf(first_seq=one.first_seq, last_seq=one.last_seq, text=one.summary) for one in oldest]
        made = condensed(leaves, view.policy)
        if made is None:
            return
        parent = replace(
            oldest[0],
            id=new_id(),
            level=oldest[0].level + 1,
            last_seq=oldest[-1].last_seq,
            branch=oldest[-1].branch,
            span_hash=" ".join(one.span_hash for one in oldest),
            children=tuple(one.id for one in oldest),
            summary=made.text,
            strategy=made.strategy,
            model=None,
            original_count=len(oldest),
            new_count=1,
            tokens_before=sum(count_tokens(one.summary) for one in oldest),
            tokens_after=made.tokens,
            facts_total=made.facts_total,
            facts_kept=made.facts_kept,
            seconds=round(time.monotonic() - began, 3),
            created_at=clock(),
        )
        intent = KeepCompaction(compaction=parent, path=outlook.segments, read_at=outlook.entry_count)
        try:
            await store.write(ref, intent)
        except Conflict:  # somebody else did it, or something inside changed: the next compaction looks again
            return


def load_of(view: View, context: Context) -> Load:
    """What is known when the question is whether a compaction is due."""
    undone = [one for one in view.outlook.compactions if one.undone_at is not None and one.invalid_at is None]
    asked_back = [one for one in on_path([replace(one, undone_at=None) for one in undone], view.outlook.segments)]
    newest = max((one.last_seq for one in asked_back), default=0)
    return Load(
        used_tokens=context.wanted_tokens,
        uncovered=view.uncovered,
        undone_until=sum(stored.seq <= newest for stored in view.window),
        freed_little=_freed_little(view),
    )


def _freed_little(view: View) -> bool:
    if not view.row or view.row[-1].tokens_before == 0:
        return False
    last = view.row[-1]
    freed = 1 - last.tokens_after / last.tokens_before
    has_new_turn = any(is_user_turn(stored.payload) for stored in view.window[last.new_count :])
    return freed < view.policy.least_freed and not has_new_turn


def is_due(view: View, context: Context, budget: Budget) -> Trigger | None:
    """Whether a compaction is due for this view, and why."""
    return due(view.policy, budget, load_of(view, context))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDiff:
    """A compaction beside what it stands for."""

    compaction: Compaction
    originals: Sequence[Message]
    summary: str
    facts_kept: Sequence[str]
    facts_only_in_originals: Sequence[str]


async def diff(store: Store, ref: Ref, compaction: Compaction) -> CompactionDiff:
    """Read the originals again and compare."""
    query = PathQuery(branch=compaction.last_seq, after=compaction.after_seq, limit=_MOST_ORIGINALS)
    pairs = await store.path(ref, query)
    found = rank_facts(facts_of(sources([_stored(place, newest) for place, newest in pairs])), ())
    there, missing = kept(compaction.summary, found)
    return CompactionDiff(
        compaction=compaction,
        originals=[Message(newest, place) for place, newest in pairs],
        summary=compaction.summary,
        facts_kept=[fact.text for fact in there],
        facts_only_in_originals=[fact.text for fact in missing],
    )

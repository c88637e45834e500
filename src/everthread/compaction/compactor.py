"""Compacting a view: the oldest stretch summarised, full levels condensed, and what a summary left out.

The reading, the summarising and the writing are apart in time; what changes in between is noticed in the writing
transaction (`compaction/intents.py`), which then keeps nothing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from everthread.compaction.fact_ranking import facts_of_sources, rank_facts, split_kept
from everthread.compaction.intents import KeepCompaction
from everthread.compaction.plan import MIN_STRETCH_TOKENS, messages_to_summarise, next_stretch, sent_tokens, span_hash
from everthread.compaction.policy import AUTOMATIC, CompactionPolicy, Trigger, summary_tokens
from everthread.compaction.sources import ChildSummary, Redact, sources_from
from everthread.compaction.summarise import CheckedSummary, Summariser, SummaryFailure, condense_summaries, summarise
from everthread.compaction.summary_chain import choose_to_condense, gap_end
from everthread.context.ingredients import LogMessage
from everthread.context.read_view import View, to_log_message
from everthread.core.background import run_in_background
from everthread.core.clock import Clock
from everthread.core.compactions import Compaction
from everthread.core.errors import Conflict
from everthread.core.ids import new_id
from everthread.core.log import CompactionQuery
from everthread.core.nouns import Message, Ref
from everthread.core.ports import PathQuery, Store, ViewInputs

NOTHING_OLD: Final = "nothing is old enough to be summarised"
_MOST_ORIGINALS = 10_000
_LOOK_AHEAD = 64
"""Messages read beyond what one summary may stand for, so that it can end where a turn does."""
_KEPT_AT_HARD_MARK = 2
"""Messages left alone when room must be made: the question and what is being done about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSummary:
    """A stretch of messages that a dry run would summarise.

    ```python
    outcome = await conv.compact(dry_run=True)
    print([(planned.first_seq, planned.last_seq, planned.tokens) for planned in outcome.planned])
    ```
    """

    first_seq: int
    last_seq: int
    messages: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOutcome:
    """What came of a request to compact.

    ```python
    outcome = await conv.compact()
    print(outcome.compacted, outcome.tokens_before, "->", outcome.tokens_after, outcome.reason)
    ```
    """

    compacted: bool
    compaction: Compaction | None = None
    original_count: int = 0
    new_count: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    error: str | None = None
    reason: str | None = None
    """Why nothing was done, or what a dry run would do."""
    planned: tuple[PlannedSummary, ...] = ()
    """In a dry run, the stretches that would be summarised, oldest first."""
    failures: tuple[SummaryFailure, ...] = ()
    model_asked: bool = False
    """Whether a summary model was asked at all."""
    came_second: bool = False
    """Whether the same messages were changed meanwhile; calling again shows what is left to do."""

    @property
    def model_failed(self) -> bool:
        """Whether a summary model was asked and failed."""
        return any(failure.is_of_model for failure in self.failures)


def tokens_of_messages(outcome: CompactionOutcome) -> int:
    """How many tokens of messages, not of summaries, were summarised."""
    return 0 if outcome.compaction is None or outcome.compaction.children else outcome.tokens_before


def combine_outcomes(first: CompactionOutcome, later: CompactionOutcome) -> CompactionOutcome:
    """Two compactions that followed each other, as one."""
    return replace(
        later,
        original_count=first.original_count,
        failures=(*first.failures, *later.failures),
        model_asked=first.model_asked or later.model_asked,
    )


def with_final_counts(outcome: CompactionOutcome, before: View, now: View, message_tokens: int) -> CompactionOutcome:
    """The outcome with the counts of what is shown in the end: summaries that were condensed meanwhile do not count
    beside the one that stands for them, and earlier ones that went into it count as what was there before."""
    former, present = {one.id for one in before.summaries}, {one.id for one in now.summaries}
    new = [one for one in now.summaries if one.id not in former]
    gone = [one for one in before.summaries if one.id not in present]
    return replace(
        outcome,
        new_count=now.uncovered + len(new),
        tokens_before=message_tokens + sum(one.tokens_after for one in gone),
        tokens_after=sum(one.tokens_after for one in new),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """What compacting works with."""

    store: Store
    clock: Clock
    model: Summariser | None = None
    redact: Redact = str
    keep_from: int | None = None
    """The seq of the oldest message that is left as it is; without one, as many are as `keep_recent` says."""
    until: int | None = None
    """Where a stretch that lost its summary ends, if no summary follows it."""
    at_hard_mark: bool = False
    """Whether room must be made: then all but the newest messages may be summarised."""

    async def compact(self, ref: Ref, view: View, trigger: Trigger) -> CompactionOutcome:
        """Summarise the oldest stretch that is not summarised yet; then, where a level is full, condense it."""
        outcome = CompactionOutcome(compacted=False, reason=NOTHING_OLD)
        async for stretch, last in self._stretches(ref, view):
            outcome = await self._summarise_stretch(ref, view, stretch, last, trigger)
            outcome = replace(outcome, model_asked=self.model is not None)
            if outcome.error is None:
                break
        by_model = not self.at_hard_mark and not outcome.model_failed
        parent = await self._condense(ref, view, trigger, self.model if by_model else None)
        if outcome.compacted or parent is None:
            return outcome
        return replace(_completed(parent, outcome.failures), model_asked=outcome.model_asked)

    async def plan(self, ref: Ref, view: View, trigger: Trigger) -> CompactionOutcome:
        """What compacting over and over would summarise, to its end, by how long the summaries may be."""
        first, planned, reason = view, list[PlannedSummary](), NOTHING_OLD
        while (found := await anext(self._stretches(ref, view), None)) is not None:
            stretch, last = found
            next_one = self._new_compaction(view, stretch, last, trigger)
            if next_one.tokens_before <= MIN_STRETCH_TOKENS:
                span = f"messages {next_one.first_seq} to {next_one.last_seq}"
                reason = f"{span} would be summarized, if the summary turns out smaller: they are short"
                break
            most = summary_tokens(view.policy, next_one.tokens_before)
            next_one = replace(next_one, tokens_after=min(next_one.tokens_before, most))
            planned.append(
                PlannedSummary(
                    first_seq=next_one.first_seq,
                    last_seq=next_one.last_seq,
                    messages=len(stretch),
                    tokens=next_one.tokens_before,
                )
            )
            summaries = simulate_condensing([*view.summaries, next_one], view.policy)
            view = replace(view, summaries=summaries, uncovered=view.uncovered - len(stretch))
        if not planned:
            return CompactionOutcome(compacted=False, reason=reason)
        several = f" in {len(planned):,} summaries" if len(planned) > 1 else ""
        stretch_said = f"messages {planned[0].first_seq} to {planned[-1].last_seq}"
        outcome = CompactionOutcome(
            compacted=False,
            original_count=first.uncovered,
            reason=f"{stretch_said} would be summarised{several}",
            planned=tuple(planned),
        )
        return with_final_counts(outcome, first, view, sum(one.tokens for one in planned))

    async def _stretches(self, ref: Ref, view: View) -> AsyncIterator[tuple[list[LogMessage], int]]:
        """What can be summarised next: a gap between summaries or, when that is too short, what begins there. Each with
        the seq that its summary reaches to: where it fills a gap, also over a hidden message at the end."""
        beyond = CompactionQuery(over=(view.covered_until + 1, view.leaf_seq))
        resumes = gap_end(await self.store.views.compactions(ref, beyond), view.inputs.segments, view.covered_until)
        for end in dict.fromkeys((self.until if resumes is None else resumes, None)):
            stretch, is_all = await self._stretch(ref, view, end)
            if stretch:
                yield stretch, end if end is not None and is_all else stretch[-1].seq

    async def _stretch(self, ref: Ref, view: View, resumes: int | None) -> tuple[list[LogMessage], bool]:
        """From where the summaries end: to where they resume, or as far as one summary may reach; and whether that is
        all there is."""
        policy = view.policy
        left_alone = 0 if resumes is not None else _KEPT_AT_HARD_MARK if self.at_hard_mark else policy.keep_recent
        before = None if resumes is None else resumes + 1
        if resumes is None and self.keep_from is not None and not self.at_hard_mark:
            left_alone, before = 1, self.keep_from + 1
        query = PathQuery(
            branch=view.leaf_seq,
            after=view.covered_until,
            before=before,
            limit=policy.leaf_max_messages + left_alone + _LOOK_AHEAD,
        )
        found = await self.store.log.path(ref, query)

        def stretch() -> list[LogMessage]:
            read = [to_log_message(place, newest) for place, newest in found]
            turns = resumes is None and not self.at_hard_mark
            return next_stretch(read, policy, keep_recent=left_alone, opens=not view.summaries, at_a_turn=turns)

        chosen = await run_in_background(stretch)
        return chosen, len(chosen) == len(found) < query.limit

    def _new_compaction(self, view: View, stretch: Sequence[LogMessage], last: int, trigger: Trigger) -> Compaction:
        """The compaction of a stretch up to `last`, before its summary is written."""
        return Compaction(
            id=new_id(),
            level=1,
            first_seq=stretch[0].seq,
            last_seq=last,
            after_seq=view.covered_until,
            branch=next(one.branch for one in view.inputs.segments if one.after < last <= one.last),
            span_hash=span_hash(stretch),
            children=(),
            summary="",
            strategy="",
            model=None,
            trigger=trigger,
            original_count=view.uncovered,
            new_count=view.uncovered - len(stretch) + 1,
            tokens_before=sum(map(sent_tokens, messages_to_summarise(stretch, opens=not view.summaries))),
            tokens_after=0,
            facts_total=0,
            facts_kept=0,
            seconds=0.0,
            created_at=self.clock(),
        )

    async def _summarise_stretch(
        self, ref: Ref, view: View, stretch: Sequence[LogMessage], last: int, trigger: Trigger
    ) -> CompactionOutcome:
        began = time.monotonic()
        begun = self._new_compaction(view, stretch, last, trigger)
        sources = sources_from(messages_to_summarise(stretch, opens=not view.summaries))
        made = await summarise(sources, begun.tokens_before, view.policy, model=self.model, redact=self.redact)
        if not isinstance(made, CheckedSummary):
            problem = "no summary is shorter than what it would stand for"
            return CompactionOutcome(compacted=False, tokens_before=begun.tokens_before, error=problem, failures=made)
        new = replace(
            begun,
            summary=made.text,
            strategy=made.made_by,
            model=made.model,
            tokens_after=made.tokens,
            facts_total=made.facts_total,
            facts_kept=made.facts_kept,
            struck=made.struck,
            seconds=round(time.monotonic() - began, 3),
        )
        entries = sorted({one.entry_seq for one in stretch})
        try:
            done, is_new = await self._keep(ref, new, view.inputs, entries)
        except Conflict as problem:
            return CompactionOutcome(compacted=False, error=str(problem), failures=made.failures, came_second=True)
        if not is_new:
            return CompactionOutcome(
                compacted=False,
                compaction=done,
                reason="the same messages were summarised in the meantime",
                failures=made.failures,
                came_second=True,
            )
        return _completed(done, made.failures)

    async def _keep(
        self, ref: Ref, new: Compaction, read: ViewInputs, entries: Sequence[int] = ()
    ) -> tuple[Compaction, bool]:
        intent = KeepCompaction(compaction=new, path=read.segments, read_at=read.entry_count, entries=entries)
        return await self.store.log.write(ref, intent)

    async def _condense(self, ref: Ref, view: View, trigger: Trigger, model: Summariser | None) -> Compaction | None:
        """One level up, where a level has more summaries than its fan-in; as often as it takes. Gives the newest that
        was made."""
        newest: Compaction | None = None
        while True:
            inputs = await self.store.views.inputs(ref, view.leaf_seq)
            parent = await self._make_parent(inputs.summaries, view.policy, trigger, model)
            if parent is None:
                return newest
            if trigger in AUTOMATIC:  # what a person has undone stays so
                over = CompactionQuery(over=(parent.after_seq, parent.last_seq))
                known = await self.store.views.compactions(ref, over)
                if any(one.undone_at is not None and one.span_hash == parent.span_hash for one in known):
                    return newest
            try:
                newest, is_new = await self._keep(ref, parent, inputs)
            except Conflict:  # somebody else did it, or something inside changed: the next compaction looks again
                return newest
            if not is_new:
                return newest

    async def _make_parent(
        self, summaries: Sequence[Compaction], policy: CompactionPolicy, trigger: Trigger, model: Summariser | None
    ) -> Compaction | None:
        oldest = choose_to_condense(summaries, policy.fan_in)
        if not oldest:
            return None
        began = time.monotonic()
        leaves = [ChildSummary(first_seq=one.first_seq, last_seq=one.last_seq, text=one.summary) for one in oldest]
        made = await condense_summaries(leaves, policy, model=model)
        if made is None:
            return None
        return _parent_of(
            oldest,
            summary=made.text,
            strategy=made.made_by,
            model=made.model,
            struck=made.struck,
            trigger=trigger,
            tokens_after=made.tokens,
            # Of the originals: what the children lost is lost here too.
            facts_total=max(made.facts_total, sum(one.facts_total for one in oldest)),
            facts_kept=made.facts_kept,
            seconds=round(time.monotonic() - began, 3),
            created_at=self.clock(),
        )


def simulate_condensing(summaries: Sequence[Compaction], policy: CompactionPolicy) -> list[Compaction]:
    """The summaries as they will be when nothing but the levels' fan-in decides; what is condensed has no text here."""
    standing = list(summaries)
    while oldest := choose_to_condense(standing, policy.fan_in):
        at = standing.index(oldest[0])
        below = sum(one.tokens_after for one in oldest)
        tokens = min(summary_tokens(policy, below), below)
        standing[at : at + len(oldest)] = [_parent_of(oldest, summary="", model=None, struck=(), tokens_after=tokens)]
    return standing


def _parent_of(oldest: Sequence[Compaction], **written: Any) -> Compaction:
    """One level up from these, with what is written about them."""
    return replace(
        oldest[0],
        id=new_id(),
        level=max(one.level for one in oldest) + 1,
        last_seq=oldest[-1].last_seq,
        branch=oldest[-1].branch,
        span_hash=sha256(" ".join(one.span_hash for one in oldest).encode()).hexdigest(),
        children=tuple(one.id for one in oldest),
        original_count=len(oldest),
        new_count=1,
        tokens_before=sum(one.tokens_after for one in oldest),
        **written,
    )


def _completed(done: Compaction, failures: tuple[SummaryFailure, ...]) -> CompactionOutcome:
    return CompactionOutcome(
        compacted=True,
        compaction=done,
        original_count=done.original_count,
        new_count=done.new_count,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
        failures=failures,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDiff:
    """The originals of a compaction beside its summary, and which facts only the originals have.

    ```python
    outcome = await conv.compact()
    if outcome.compaction is not None:
        diff = await conv.compaction_diff(outcome.compaction.id)
        print(diff.summary, diff.facts_only_in_originals)
    ```
    """

    compaction: Compaction
    originals: Sequence[Message]
    summary: str
    facts_kept: Sequence[str]
    facts_only_in_originals: Sequence[str]


async def compaction_diff(store: Store, ref: Ref, compaction: Compaction) -> CompactionDiff:
    """Read the originals again and compare."""
    query = PathQuery(branch=compaction.last_seq, after=compaction.after_seq, limit=_MOST_ORIGINALS)
    pairs = await store.log.path(ref, query)
    told = messages_to_summarise(
        [to_log_message(place, newest) for place, newest in pairs], opens=compaction.after_seq == 0
    )
    found = rank_facts(facts_of_sources(sources_from(told)), ())
    there, missing = split_kept(compaction.summary, found)
    return CompactionDiff(
        compaction=compaction,
        originals=[Message(newest, place) for place, newest in pairs],
        summary=compaction.summary,
        facts_kept=[fact.text for fact in there],
        facts_only_in_originals=[fact.text for fact in missing],
    )

"""Driving compactions: one, as many as it takes, those that are due, and those without which a request does not fit.

The compactor makes one summary; here it is asked again as long as there is a reason, and the listener gets the events.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from everthread.compaction import events
from everthread.compaction.compactor import (
    CompactionOutcome,
    Compactor,
    combine_outcomes,
    tokens_of_messages,
    with_final_counts,
)
from everthread.compaction.due import DueCompaction, compaction_check_at, due_trigger, is_worth_more, kept_from
from everthread.compaction.mend import mend_summaries
from everthread.compaction.policy import AUTOMATIC, CompactionPolicy, Trigger
from everthread.compaction.sources import Redact
from everthread.compaction.summarise import CircuitBreaker, Summariser
from everthread.context import read_view
from everthread.context.assemble import Context
from everthread.context.budget import Budget
from everthread.context.read_view import View
from everthread.core.background import run_in_background
from everthread.core.clock import Clock
from everthread.core.events import Listener
from everthread.core.log import BranchName
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.history import intents

_MOST_IN_A_TURN: Final = 4
"""How often one request may compact; what is left over the limit is then shown in part, and the next turn goes on."""
_FIRST_CONTEXT_SECONDS: Final = 0.25
"""How long the first context of a long history may summarise; a summary that was begun is still written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDriver:
    """Compacts the conversations of one open database."""

    store: Store
    clock: Clock
    listener: Listener
    policy: CompactionPolicy
    """The settings below those kept in the database."""
    redact: Redact
    breaker: CircuitBreaker
    summariser_for: Callable[[CompactionPolicy], Summariser | None]

    async def view(
        self,
        ref: Ref,
        branch: BranchName,
        overrides: Mapping[str, Any] | None,
        budget: Budget | None = None,
        system: str | None = None,
        *,
        whole_if_small: bool = False,
    ) -> View:
        """The path as a model sees it now, under the settings of server, conversation and request."""
        return await read_view.read_view(
            self.store,
            ref,
            branch,
            self.policy,
            overrides,
            budget=budget,
            system=system,
            whole_if_small=whole_if_small,
        )

    async def compact(
        self,
        ref: Ref,
        branch: BranchName,
        trigger: Trigger,
        *,
        overrides: Mapping[str, Any] | None = None,
        budget: Budget | None = None,
        dry_run: bool = False,
        on_each: Callable[[CompactionOutcome], None] = lambda _: None,
    ) -> CompactionOutcome:
        """Summarise all messages outside of what is kept recent, because somebody asked for it."""
        view = await self.view(ref, branch, overrides)
        if dry_run:
            return await self._compactor(trigger, None, None).plan(ref, view, trigger)
        attempt = events.CompactionAttempt(ref=ref, view=view, trigger=trigger, budget=budget)

        async def as_asked(_: View) -> Trigger:
            return trigger

        work = self._compact_while(as_asked, ref, view, branch, overrides, on_each=on_each)
        return await events.report_compaction(self.listener, attempt, work)

    async def mend(self, ref: Ref) -> None:
        """Make the summaries whole again after a message was hidden or restored, at once and without a model."""
        await mend_summaries(self._compactor("messages", None, None), ref, lambda: self.view(ref, None, None))

    async def compact_if_due(self, ref: Ref, found: DueCompaction, *, is_ahead: bool = False) -> CompactionOutcome:
        """What happens by itself: summarise as long as a mark is passed; where it is made ahead, note when an append
        should check again."""

        def due(view: View) -> Trigger | None:
            made = read_view.render(view, found.budget)
            return due_trigger(view, made, found.budget, system_tokens=found.system_tokens)

        view = await self.view(ref, found.branch, found.compaction, found.known_budget)
        outcome = CompactionOutcome(compacted=False, reason="no mark is passed")
        trigger = await run_in_background(due, view)
        if trigger is not None:
            first, keep_from = view, kept_from(view, found.budget)

            async def still_due(view: View) -> Trigger | None:
                if view is first or is_worth_more(view, keep_from):
                    return trigger
                return await run_in_background(due, view)

            attempt = events.CompactionAttempt(ref=ref, view=view, trigger=trigger, budget=found.known_budget)
            work = self._compact_while(still_due, ref, view, found.branch, found.compaction, keep_from)
            outcome = await events.report_compaction(self.listener, attempt, work)
        if is_ahead:
            view = await self.view(ref, found.branch, found.compaction)
            await self.store.log.write(ref, intents.SetCompactionCheck(at_depth=compaction_check_at(view)))
        return outcome

    async def compact_to_fit(
        self,
        ref: Ref,
        view: View,
        branch: BranchName,
        overrides: Mapping[str, Any] | None,
        budget: Budget,
        render: Callable[[View], Context],
        system: str | None = None,
    ) -> tuple[Context, int]:
        """The request of a view that is over the hard mark, after its oldest part was summarised here and now; and how
        many messages are left to summarise where one turn may not take the time for all."""
        first, made, may_ask, left = view, render(view), True, 0
        self.listener.on_event(events.truncation_begun(ref, view, made))
        if view.passed_over is not None:
            view = await self.catch_up_briefly(ref, view, branch, overrides, budget, "hard_limit", system)
            made = render(view)
        if view.passed_over is not None:  # still: summaries of what is not shown make no room
            self.listener.on_event(events.truncation_done(ref, first, made))
            return made, view.uncovered
        for _ in range(_MOST_IN_A_TURN):
            if due_trigger(view, made, budget) != "hard_limit":
                break
            attempt = events.CompactionAttempt(
                ref=ref, view=view, trigger="hard_limit", budget=budget, used_tokens=made.wanted_tokens
            )
            work = self._compact_once(ref, view, "hard_limit", None, may_ask=may_ask)
            outcome = await events.report_compaction(self.listener, attempt, work)
            if not outcome.compacted:
                break
            may_ask = may_ask and not outcome.model_failed  # a model that hangs costs the turn its time limit once
            view = await self.view(ref, branch, overrides, budget, system)
            made = render(view)
        else:
            left = view.uncovered if due_trigger(view, made, budget) == "hard_limit" else 0
        self.listener.on_event(events.truncation_done(ref, first, made))
        return made, left

    async def catch_up_briefly(
        self,
        ref: Ref,
        view: View,
        branch: BranchName,
        overrides: Mapping[str, Any] | None,
        budget: Budget,
        due: Trigger,
        system: str | None = None,
    ) -> View:
        """The view of a history that nobody asked for before, or not for long, after as much of it was summarised as
        can be in a short time; the rest is left to the background. Nothing is, where a model writes summaries: it takes
        longer, and what it would write well is not to be written badly for good."""
        if self.summariser_for(view.policy) is not None:
            return view
        until = time.monotonic() + _FIRST_CONTEXT_SECONDS
        left = iter(range(_MOST_IN_A_TURN))

        async def due_in_time(view: View) -> Trigger | None:
            is_over = time.monotonic() >= until or next(left, None) is None
            return None if is_over else due

        attempt = events.CompactionAttempt(ref=ref, view=view, trigger=due, budget=budget)
        work = self._compact_while(due_in_time, ref, view, branch, overrides, kept_from(view, budget))
        await events.report_compaction(self.listener, attempt, work)
        return await self.view(ref, branch, overrides, budget, system)

    async def _compact_while(
        self,
        next_trigger: Callable[[View], Awaitable[Trigger | None]],
        ref: Ref,
        view: View,
        branch: BranchName,
        overrides: Mapping[str, Any] | None,
        keep_from: int | None = None,
        on_each: Callable[[CompactionOutcome], None] = lambda _: None,
    ) -> CompactionOutcome:
        """One after the other, as long as there is a reason. Where one that happened by itself came first, the rest is
        done on top of it."""
        total, first, tokens = CompactionOutcome(compacted=False), view, 0
        while (trigger := await next_trigger(view)) is not None:
            latest = await self._compact_once(ref, view, trigger, keep_from)
            if latest.compacted:
                on_each(latest)
                tokens += tokens_of_messages(latest)
                total = combine_outcomes(total, latest) if total.compacted else latest
            elif not total.compacted:
                total = latest
            if not (latest.compacted or latest.came_second):
                break
            covered = view.covered_until
            view = await self.view(ref, branch, overrides)
            if view.covered_until <= covered:  # somebody undoes what is done here
                break
            if latest.came_second and view.summaries[-1].trigger not in AUTOMATIC:
                break
        return with_final_counts(total, first, view, tokens) if total.compacted else total

    async def _compact_once(
        self, ref: Ref, view: View, trigger: Trigger, keep_from: int | None, *, may_ask: bool = True
    ) -> CompactionOutcome:
        model = self.summariser_for(view.policy) if may_ask else None
        outcome = await self._compactor(trigger, keep_from, model).compact(ref, view, trigger)
        if outcome.model_asked:
            self.breaker.note(view.policy, failed=outcome.model_failed)
        return outcome

    def _compactor(self, trigger: Trigger, keep_from: int | None, model: Summariser | None) -> Compactor:
        return Compactor(
            store=self.store,
            clock=self.clock,
            model=model,
            redact=self.redact,
            keep_from=keep_from,
            at_hard_mark=trigger == "hard_limit",
        )

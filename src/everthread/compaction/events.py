"""Events of compactions: how one began, what failed in it, and how it ended. Emitting is the listener's.

Everything here is made from numbers that views and outcomes carry; no text of a message comes this far.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass

from everthread.compaction.compactor import CompactionOutcome
from everthread.compaction.policy import Trigger
from everthread.compaction.summarise import SummaryFailure
from everthread.context.assemble import Context
from everthread.context.budget import Budget
from everthread.context.read_view import View
from everthread.core.errors import EverthreadError
from everthread.core.events import (
    CompactionCancelled,
    CompactionCompleted,
    CompactionException,
    CompactionFailed,
    CompactionTriggered,
    Event,
    Listener,
    SummaryRefused,
    TruncationBegun,
    TruncationDone,
)
from everthread.core.nouns import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionAttempt:
    """A compaction that is about to be made."""

    ref: Ref
    view: View
    trigger: Trigger
    budget: Budget | None = None
    used_tokens: int | None = None
    """What the request counts to that it is made for, where there is one."""

    @property
    def triggered(self) -> CompactionTriggered:
        view = self.view
        shown = sum(one.tokens_after for one in view.summaries) + sum(one.tokens for one in view.window)
        used = self.used_tokens if self.used_tokens is not None else shown
        return CompactionTriggered(
            owner=self.ref.owner,
            conversation_id=self.ref.id,
            trigger=self.trigger,
            used_tokens=used,
            usage_percent=None if self.budget is None else round(100 * used / self.budget.limit, 1),
            message_count=self.view.uncovered,
            threshold=self.view.policy.threshold,
        )


async def report_compaction(
    listener: Listener, attempt: CompactionAttempt, work: Awaitable[CompactionOutcome]
) -> CompactionOutcome:
    """Await a compaction, and report how it began and ended."""
    listener.on_event(attempt.triggered)
    began = time.monotonic()
    try:
        outcome = await work
    except asyncio.CancelledError:
        listener.on_event(
            CompactionCancelled(
                owner=attempt.ref.owner,
                conversation_id=attempt.ref.id,
                trigger=attempt.trigger,
                seconds=round(time.monotonic() - began, 3),
            )
        )
        raise
    except EverthreadError as problem:
        listener.on_event(_exception(attempt, type(problem).__name__, will_continue=False))
        raise
    for event in _events_of(attempt, outcome, time.monotonic() - began):
        listener.on_event(event)
    return outcome


def _events_of(attempt: CompactionAttempt, outcome: CompactionOutcome, seconds: float) -> Iterator[Event]:
    for failure in outcome.failures:
        if failure.is_of_model:
            yield _model_failure(attempt, failure)
    if outcome.error is not None:
        is_refused = any(not failure.is_of_model for failure in outcome.failures)
        yield CompactionFailed(
            owner=attempt.ref.owner,
            conversation_id=attempt.ref.id,
            trigger=attempt.trigger,
            reason="not-smaller" if is_refused else "conflict",
            will_wait_for_hard_limit=attempt.trigger != "hard_limit",
        )
        return
    made = outcome.compaction if outcome.compacted else None
    uncovered = attempt.view.uncovered
    yield CompactionCompleted(
        owner=attempt.ref.owner,
        conversation_id=attempt.ref.id,
        trigger=attempt.trigger,
        before_count=outcome.original_count if made else uncovered,
        after_count=outcome.new_count if made else uncovered,
        compressed=made is not None,
        summary_length=len(made.summary) if made else 0,
        tokens_before=outcome.tokens_before if made else 0,
        tokens=outcome.tokens_after if made else 0,
        seconds=round(seconds, 3),
        by=made.strategy.partition(":")[0] if made else "",
    )


def _model_failure(attempt: CompactionAttempt, failure: SummaryFailure) -> Event:
    if failure.kind == "error":
        return _exception(attempt, failure.cause or "ModelError", will_continue=True)
    return SummaryRefused(
        owner=attempt.ref.owner,
        conversation_id=attempt.ref.id,
        trigger=attempt.trigger,
        stage=failure.stage,
        reason=failure.kind,
    )


def _exception(attempt: CompactionAttempt, error: str, *, will_continue: bool) -> CompactionException:
    return CompactionException(
        owner=attempt.ref.owner,
        conversation_id=attempt.ref.id,
        trigger=attempt.trigger,
        error=error,
        will_continue=will_continue,
    )


def truncation_begun(ref: Ref, view: View, wanted: Context) -> TruncationBegun:
    """A request that would be too long."""
    return TruncationBegun(
        owner=ref.owner,
        conversation_id=ref.id,
        message_count=view.uncovered,
        used_tokens=wanted.wanted_tokens,
        max_tokens=wanted.limit,
    )


def truncation_done(ref: Ref, before: View, sent: Context) -> TruncationDone:
    """The same request, made to fit."""
    shown = sum(len(part.seqs) for part in sent.parts if part.kind == "window")
    return TruncationDone(
        owner=ref.owner,
        conversation_id=ref.id,
        before_count=before.uncovered,
        after_count=shown,
        removed_count=max(0, before.uncovered - shown),
    )

"""Whether a compaction is due: a pure decision from what is known of a view, and the job of making it later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from everthread.compaction.plan import first_kept
from everthread.compaction.policy import ORDINARY_SUMMARY_TOKENS, CompactionPolicy, Trigger, window_bounds
from everthread.context.assemble import Context
from everthread.context.budget import Budget
from everthread.context.message_format import is_user_turn
from everthread.context.read_view import View
from everthread.core.jobs import COMPACT, NewJob, Priority
from everthread.core.log import BranchName

UNKNOWN_BUDGET = Budget(window=100_000_000, output_reserve=0)
"""The budget where the model, and so the size of its window, is unknown: then a compaction is due by the number of
messages alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCompaction:
    """What somebody knew who found a compaction due."""

    budget: Budget = UNKNOWN_BUDGET
    system_tokens: int = 0
    """What the system prompt counted to: it is not kept, and the same mark is to be passed again."""
    branch: BranchName = None
    compaction: Mapping[str, Any] | None = None
    """The request's own settings."""

    @property
    def known_budget(self) -> Budget | None:
        return None if self.budget == UNKNOWN_BUDGET else self.budget

    def as_job(self, priority: Priority, size: int) -> NewJob:
        """The job of making it later, where `size` messages are in no summary."""
        return NewJob(kind=COMPACT, priority=priority, size=size, details=asdict(self))

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> DueCompaction:
        """From a job; an append's says nothing of a request."""
        return cls() if is_ahead(details) else cls(**{**details, "budget": Budget(**details["budget"])})


def is_ahead(details: Mapping[str, Any]) -> bool:
    """Whether the job was written by an append: before anybody asked for a context, or none that found it due."""
    return "budget" not in details


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is known of a conversation when the question is asked."""

    used_tokens: int
    """What the next request would count to, before anything is left out of it."""
    uncovered: int
    """Messages that no summary stands for."""
    compactable: bool = True
    """Whether any of them is older than those that a compaction leaves."""
    freed_little: bool = False
    """Whether the last compaction freed less than it should and no user turn has come since."""
    was_undone: bool = False
    """Whether a person has undone the compaction that would come next: none by itself before the hard mark."""


def decide_trigger(policy: CompactionPolicy, budget: Budget, load: Load) -> Trigger | None:
    """Whether a compaction is due, and why. The hard mark is due whatever is switched off."""
    if load.used_tokens > budget.limit:
        return "hard_limit"
    if not policy.enabled or load.freed_little or load.was_undone or not load.compactable:
        return None
    if load.used_tokens >= policy.threshold * budget.limit:
        return "threshold"
    return "messages" if load.uncovered > message_mark(policy, budget) else None


def message_mark(policy: CompactionPolicy, budget: Budget) -> int:
    """How many messages may be in no summary, for who knows the model and who does not."""
    return policy.ahead_mark if budget == UNKNOWN_BUDGET else policy.message_mark


def measure_load(view: View, context: Context, budget: Budget) -> Load:
    """What is known when the question is whether a compaction is due."""
    return Load(
        used_tokens=context.wanted_tokens,
        uncovered=view.uncovered,
        compactable=view.passed_over is not None or kept_from(view, budget) is not None,
        freed_little=_freed_little(view, context.wanted_tokens),
        was_undone=view.inputs.was_undone,
    )


def kept_from(view: View, budget: Budget) -> int | None:
    """The seq of the oldest message that a compaction made for this budget leaves; None when there is none older."""
    recent = [one for one in view.window if one.seq > view.covered_until]
    if budget == UNKNOWN_BUDGET:
        kept = view.policy.keep_recent
        return recent[-kept].seq if len(recent) > kept else None
    first = first_kept(recent, view.policy, budget.limit)
    return recent[0].seq if first is None and recent and view.passed_over is not None else first


def is_worth_more(view: View, keep_from: int | None) -> bool:
    """Whether what is left before the messages that stay is worth a summary of its own."""
    if view.passed_over is not None or keep_from is None:
        return view.passed_over is not None
    left = (one.tokens for one in view.window if view.covered_until < one.seq < keep_from)
    return sum(left) > ORDINARY_SUMMARY_TOKENS


def _freed_little(view: View, used_tokens: int) -> bool:
    """Whether another one would free as little as the last. A window that had to jump over messages does not wait."""
    if not view.summaries or view.summaries[-1].level > 1 or view.passed_over is not None:
        return False
    last = view.summaries[-1]
    freed = last.tokens_before - last.tokens_after
    has_new_turn = any(is_user_turn(one.payload) for one in view.window[last.new_count - 1 :])
    return freed < view.policy.least_freed * (used_tokens + freed) and not has_new_turn


def due_trigger(view: View, context: Context, budget: Budget, *, system_tokens: int = 0) -> Trigger | None:
    """Whether a compaction is due for this view, and why; `system_tokens` where the system prompt is not in it."""
    used = context.wanted_tokens + system_tokens
    if decide_trigger(view.policy, budget, Load(used_tokens=used, uncovered=view.uncovered)) is None:
        return None  # no mark is passed, as after most turns: nothing else has to be looked at
    return decide_trigger(view.policy, budget, replace(measure_load(view, context, budget), used_tokens=used))


def compaction_check_at(view: View) -> int:
    """How many messages the path must have before it is worth checking again whether a compaction is due."""
    covered = view.inputs.leaf_depth - view.uncovered
    if view.uncovered <= view.policy.ahead_mark:
        return covered + view.policy.ahead_mark + 1
    return view.inputs.leaf_depth + window_bounds(view.policy).step  # something holds it back: not at every message

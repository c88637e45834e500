"""Making a summary that may stand for its source, by escalation that always ends.

    the summary model, within its time limit → the same asked to be terse → the extractive summariser → its last resort

Each attempt passes the gate or is noted with its reason. A model that fails, hangs, echoes or writes rubbish costs
time and nothing else: the extractive summariser needs none and cannot fail. One that fails again and again is left
alone for a while, so that no turn waits for it in vain. Secrets are taken out before any of them reads: also the list
of facts that a model dropped is made from what is left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Protocol

from everthread.compaction.condense import condense, facts_of_summaries, sources_of_summaries, standing_of_summaries
from everthread.compaction.extract import extract, extract_openings
from everthread.compaction.fact_ranking import facts_of_sources, is_askable, split_kept
from everthread.compaction.gate import Accepted, Rejected, check_summary
from everthread.compaction.policy import CompactionPolicy, summary_tokens
from everthread.compaction.sources import (
    ChildSummary,
    ConversationKind,
    Redact,
    Source,
    conversation_kind,
    redact_sources,
    transcript,
)
from everthread.context.tokens import count_tokens
from everthread.core.background import run_abandonable, run_in_background
from everthread.core.cancellation import cancel_count
from everthread.core.errors import ModelError
from everthread.text.facts import Fact

_MOST_OF_MODEL = 2_000
"""A model is asked for no more tokens than this: it writes some fifty in a second, and has a time limit."""


class Summariser(Protocol):
    """The interface of a model that writes summaries. Pass one to `everthread.open(summariser=…)`.

    It may raise `ModelError`, hang, or write nonsense: the extractive summariser then takes over. If it blocks, make
    `summarise` a plain `def`; it then runs in a thread, and is left there when its time is up.

    ```python
    class FirstLines:
        name = "first-lines"

        async def summarise(self, text: str, *, kind: str, max_tokens: int, is_terse: bool) -> str:
            return text[: max_tokens * 3]
    ```
    """

    @property
    def name(self) -> str:
        """Recorded with each summary it writes."""

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        """Return a summary of the text; `is_terse` asks for a shorter one after a first attempt was too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFailure:
    """An attempt at a summary that failed: which stage, and why.

    ```python
    outcome = await conv.compact(compaction={"summary_model": "openai:gpt-5-mini"})
    print([(failure.stage, failure.reason) for failure in outcome.failures])
    ```
    """

    stage: str
    reason: str
    """`kind: detail`; the detail may quote what a provider said, the kind is one of a few words."""
    cause: str | None = None
    """What was raised, by its kind."""

    @property
    def kind(self) -> str:
        """The reason in one fixed word, without details."""
        return self.reason.partition(":")[0]

    @property
    def is_of_model(self) -> bool:
        """Whether a model failed, and not the extractive summariser."""
        return self.stage.startswith("model")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSummary:
    """A summary that passed the gate."""

    text: str
    tokens: int
    made_by: str
    """The stage that wrote it and, for a summary of messages, the kind of conversation: `Compaction.strategy`."""
    model: str | None
    facts_total: int
    facts_kept: int
    struck: tuple[str, ...] = ()
    failures: tuple[SummaryFailure, ...] = ()


async def summarise(
    sources: Sequence[Source],
    source_tokens: int,
    policy: CompactionPolicy,
    *,
    model: Summariser | None = None,
    redact: Redact = str,
) -> CheckedSummary | tuple[SummaryFailure, ...]:
    """A summary of these messages; only failures when they are too short for anything to be shorter."""
    sources = await run_in_background(redact_sources, sources, redact)
    facts = await run_in_background(facts_of_sources, sources)
    kind = conversation_kind(sources) if policy.strategy == "auto" else policy.strategy
    failures: list[SummaryFailure] = []
    most = summary_tokens(policy, source_tokens)
    text_limit = policy.leaf_max_tokens / max(source_tokens, 1)
    asked = "" if model is None else transcript(sources, share=text_limit)
    async for stage, text in _attempts(sources, facts, kind, policy, most, model, asked, failures):
        judged = await run_in_background(
            check_summary,
            text,
            sources,
            facts,
            count_tokens=count_tokens,
            source_tokens=source_tokens,
            max_tokens=most,
            by_model=stage.startswith("model"),
        )
        if isinstance(judged, Accepted):
            by_model = stage.startswith("model") and model is not None
            return CheckedSummary(
                text=judged.text,
                tokens=judged.tokens,
                made_by=f"{stage}:{kind}",
                model=model.name if by_model and model is not None else None,
                facts_total=judged.facts_total,
                facts_kept=judged.facts_kept,
                struck=tuple(map(str, judged.struck)),
                failures=tuple(failures),
            )
        failures.append(SummaryFailure(stage=stage, reason=f"{judged.reason}: {judged.detail}"))
    return tuple(failures)


async def _attempts(
    sources: Sequence[Source],
    facts: Sequence[Fact],
    kind: ConversationKind,
    policy: CompactionPolicy,
    most: int,
    model: Summariser | None,
    asked: str,
    failures: list[SummaryFailure],
) -> AsyncIterator[tuple[str, str]]:
    if model is not None:
        asked_for = min(most, _MOST_OF_MODEL)
        for stage, most_now in (("model", asked_for), ("model-terse", asked_for // 2)):
            text = await _ask_model(model, stage, asked, kind, most_now, policy, failures)
            if text is None:
                break  # one that failed or hung would take the turn as long again
            yield stage, text
    yield (
        "extract",
        await run_in_background(extract, sources, max_tokens=most, count_tokens=count_tokens, kind=kind, facts=facts),
    )
    yield "terse", extract_openings(sources, max_tokens=most, count_tokens=count_tokens)
    yield "terse", extract_openings(sources, max_tokens=max(most // 8, 40), count_tokens=count_tokens)


async def _ask_model(
    model: Summariser,
    stage: str,
    asked: str,
    kind: ConversationKind,
    max_tokens: int,
    policy: CompactionPolicy,
    failures: list[SummaryFailure],
) -> str | None:
    """The model's text, or None with the failure noted."""
    try:
        async with asyncio.timeout(policy.summary_timeout_seconds):
            text = await _call_model(model, asked, kind, max_tokens, is_terse=stage == "model-terse")
    except TimeoutError:
        failures.append(SummaryFailure(stage=stage, reason=f"timeout: no answer in {policy.summary_timeout_seconds} s"))
    except ModelError as problem:
        cause = type(problem.__cause__ or problem).__name__
        failures.append(SummaryFailure(stage=stage, reason=f"error: {problem}", cause=cause))
    else:
        if isinstance(text, str):
            return text
        failures.append(SummaryFailure(stage=stage, reason=f"error: wrote {type(text).__name__}, not text"))
    return None


async def _call_model(
    model: Summariser, asked: str, kind: ConversationKind, max_tokens: int, *, is_terse: bool
) -> object:
    """What the model writes, if it does. It is somebody else's code: whatever it raises is a ModelError here."""
    before = cancel_count()
    try:
        call = partial(model.summarise, asked, kind=kind, max_tokens=max_tokens, is_terse=is_terse)
        answer = call() if iscoroutinefunction(model.summarise) else await run_abandonable(call)
        return await answer if isawaitable(answer) else answer
    except ModelError:
        raise
    except asyncio.CancelledError as problem:
        if cancel_count() > before:  # by the time limit, or by whoever waits for us
            raise
        raise ModelError("the summary model was cancelled inside itself") from problem
    except Exception as problem:  # the edge of the port: no error of a model may break a turn
        raise ModelError(f"the summary model raised {type(problem).__name__}") from problem


async def condense_summaries(
    children: Sequence[ChildSummary], policy: CompactionPolicy, *, model: Summariser | None = None
) -> CheckedSummary | None:
    """One summary of several, by the model where there is one; None when it would not be shorter."""
    source_tokens = await run_in_background(lambda: sum(count_tokens(child.text) for child in children))
    most = summary_tokens(policy, source_tokens)
    written = None if model is None else await _condense_by_model(model, children, policy, source_tokens, most)
    return written or await run_in_background(_condense_by_rules, children, source_tokens, most)


async def _condense_by_model(
    model: Summariser, children: Sequence[ChildSummary], policy: CompactionPolicy, source_tokens: int, most: int
) -> CheckedSummary | None:
    """What the model makes of summaries, where everything it says stands in them; else None."""
    kind: ConversationKind = "chat" if policy.strategy == "auto" else policy.strategy
    asked = "\n\n".join(f"[#{child.first_seq}-{child.last_seq}]\n{child.text}" for child in children)
    text = await _ask_model(model, "model", asked, kind, min(most, _MOST_OF_MODEL), policy, [])
    if text is None:
        return None
    judged = await run_in_background(_check_condensed, text, children, source_tokens, most)
    if not isinstance(judged, Accepted):
        return None
    return CheckedSummary(
        text=judged.text,
        tokens=judged.tokens,
        made_by="condense:model",
        model=model.name,
        facts_total=judged.facts_total,
        facts_kept=judged.facts_kept,
        struck=tuple(map(str, judged.struck)),
    )


def _check_condensed(text: str, children: Sequence[ChildSummary], source_tokens: int, most: int) -> Accepted | Rejected:
    return check_summary(
        text,
        sources_of_summaries(children),
        [fact for fact in facts_of_summaries(children) if is_askable(fact)],
        count_tokens=count_tokens,
        source_tokens=source_tokens,
        max_tokens=most,
        by_model=True,
        orders=standing_of_summaries(children),
    )


def _condense_by_rules(children: Sequence[ChildSummary], source_tokens: int, most: int) -> CheckedSummary | None:
    text = condense(children, max_tokens=most, count_tokens=count_tokens)
    tokens = count_tokens(text)
    if not text or tokens >= source_tokens:
        return None
    facts = [fact for fact in facts_of_summaries(children) if is_askable(fact)]
    known = len({fact.normal for fact in facts})
    return CheckedSummary(
        text=text,
        tokens=tokens,
        made_by="condense",
        model=None,
        facts_total=known,
        facts_kept=min(known, len({fact.normal for fact in split_kept(text, facts)[0]})),
    )


class CircuitBreaker:
    """Counts failures in a row. Shared by all conversations of one open database."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures = 0
        self._opened_at: float | None = None

    def allows(self, policy: CompactionPolicy) -> bool:
        """Whether the model may be asked; after the pause one attempt is let through."""
        return self._opened_at is None or self._now() - self._opened_at >= policy.breaker_seconds

    def note(self, policy: CompactionPolicy, *, failed: bool) -> None:
        """How an attempt ended."""
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= policy.breaker_failures:
            self._opened_at = self._now()
        elif not failed:
            self._opened_at = None

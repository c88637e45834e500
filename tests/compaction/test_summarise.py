"""A summary comes of every attempt or none, and a model that misbehaves costs time and nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import cast

import pytest

from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.sources import ChildSummary, Source
from everthread.compaction.summarise import CheckedSummary, Summariser, condense_summaries, summarise
from everthread.context.tokens import count_tokens
from tests.compaction.spans import assistant, user
from tests.context.views.hostile import Hostile, Manner

POLICY = CompactionPolicy(summary_timeout_seconds=0.02, summary_max_tokens=200)
TALK: list[Source] = [
    said
    for at in range(0, 40, 2)
    for said in (
        user(at + 1, f"Please move order A-{at} to 2024-05-{at % 28 + 1:02d}, the budget is {at * 13} euro."),
        assistant(at + 2, f"Done: order A-{at} is moved. We decided to ship it by rail from depot {at}."),
    )
]
TOKENS = sum(count_tokens(source.text) for source in TALK)


async def test_without_a_model_the_summary_is_extracted() -> None:
    made = await summarise(TALK, TOKENS, POLICY)
    assert isinstance(made, CheckedSummary)
    assert (made.model, made.failures) == (None, ())
    assert made.made_by.startswith("extract:")
    assert made.tokens == count_tokens(made.text) <= 200
    assert 0 < made.facts_kept <= made.facts_total


async def test_a_good_model_writes_it_and_the_facts_it_dropped_are_listed() -> None:
    made = await summarise(TALK, TOKENS, POLICY, model=Hostile(["good"]))
    assert isinstance(made, CheckedSummary)
    assert (made.model, made.made_by.partition(":")[0]) == ("hostile", "model")
    assert "it was looked up" in made.text
    assert "euro [#39]" in made.text


@pytest.mark.parametrize("manner", ["fails", "hangs", "empty", "too long", "echo", "tool syntax"])
async def test_a_bad_answer_is_noted_and_the_extract_stands_in(manner: Manner) -> None:
    model = Hostile([manner])
    made = await summarise(TALK, TOKENS, POLICY, model=model)
    assert isinstance(made, CheckedSummary)
    assert made.model is None
    assert made.failures
    assert all(failure.stage.startswith("model") for failure in made.failures)
    assert model.asked == (1 if manner in ("fails", "hangs") else 2)


class Blocks:
    """A summary model that is no coroutine, and takes its time."""

    name = "blocks"

    def __init__(self, seconds: float) -> None:
        self._may_answer = threading.Event()
        self._seconds = seconds

    def summarise(self, text: str, *, kind: str, max_tokens: int, is_terse: bool) -> str:
        self._may_answer.wait(self._seconds)
        return "The user moved some orders, and the depots ship them by rail."


async def test_a_summariser_that_blocks_has_its_time_limit_like_any_other() -> None:
    made = await summarise(TALK, TOKENS, POLICY, model=cast(Summariser, Blocks(60)))
    assert isinstance(made, CheckedSummary)
    assert made.model is None
    assert [failure.kind for failure in made.failures] == ["timeout"]
    patient = replace(POLICY, summary_timeout_seconds=30.0)
    made = await summarise(TALK, TOKENS, patient, model=cast(Summariser, Blocks(0)))
    assert isinstance(made, CheckedSummary)
    assert made.model == "blocks"


async def test_after_a_refused_answer_a_terse_one_may_do() -> None:
    made = await summarise(TALK, TOKENS, POLICY, model=Hostile(["too long", "good"]))
    assert isinstance(made, CheckedSummary)
    assert made.made_by.startswith("model-terse:")
    assert [failure.stage for failure in made.failures] == ["model"]


async def test_what_is_too_short_to_be_summarised_is_left_alone() -> None:
    made = await summarise([user(1, "ok")], 1, POLICY)
    assert not isinstance(made, CheckedSummary)
    assert {failure.stage for failure in made} == {"extract", "terse"}


async def test_condensing_is_shorter_or_nothing() -> None:
    leaf = "## Facts\n" + "\n".join(f"- user: order A-{at} costs {at} euro [#{at}]" for at in range(1, 30))
    made = await condense_summaries(
        [ChildSummary(first_seq=1, last_seq=30, text=leaf), ChildSummary(first_seq=31, last_seq=60, text=leaf)], POLICY
    )
    assert made is not None
    assert made.tokens < 2 * count_tokens(leaf)
    assert made.facts_kept <= made.facts_total
    assert await condense_summaries([ChildSummary(first_seq=1, last_seq=2, text="ok [#1]")], POLICY) is None

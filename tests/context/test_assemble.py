"""A request holds the record whole or in whole summaries, the newest first, and names all it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from everthread.context import Budget, Message, find_violations
from everthread.context.assemble import Context, assemble
from everthread.context.ingredients import Ingredients, LogMessage, QuotedSummary, RecalledPassage
from everthread.context.manifest import dump, load
from everthread.core.errors import ContextOverflow
from tests.context.histories import budgets, forall, histories
from tests.context.openai_shape import user


def stored(messages: Sequence[Message], first: int = 1) -> list[LogMessage]:
    return [LogMessage(seq=seq, entry_seq=seq, payload=one, tokens=9) for seq, one in enumerate(messages, first)]


def summed(number: int, words: int = 60) -> QuotedSummary:
    text = f"Summary {number}. " + "more of it " * words
    return QuotedSummary(id=f"s{number}", first_seq=10 * number + 1, last_seq=10 * number + 10, text=text)


def tight(limit: int) -> Budget:
    return Budget(window=limit + 100, output_reserve=100)


def told(context: Context) -> tuple[str, ...]:
    return tuple(id for part in context.parts for id in part.summary_ids)


@forall(histories(), budgets(smallest=120), st.integers(0, 6), st.integers(0, 3))
def test_i7_i8_every_request_is_valid_and_within_the_limit(
    history: list[Message], budget: Budget, summaries: int, pins: int
) -> None:
    given = Ingredients(
        system="Be brief.",
        summaries=[summed(number) for number in range(summaries)],
        pinned=stored([user("remember this " * 30)] * pins, first=91),
        window=stored(history, first=101),
    )
    try:
        context = assemble(given, budget)
    except ContextOverflow:
        assert budget.limit < 200
        return
    assert find_violations(context.messages) == []
    assert context.tokens <= budget.limit
    assert sum(part.tokens for part in context.parts) == context.tokens
    left_out = {one.seq for one in context.omitted}
    shown = {seq for part in context.parts for seq in part.seqs}
    assert {one.seq for one in given.window} <= left_out | shown
    assert {one.id for one in given.summaries if one.first_seq not in left_out} == set(told(context))
    assert context == assemble(given, budget)
    assert load(dump(context.manifest)) == context.manifest


def test_a_record_over_the_room_keeps_the_newest_summaries_whole() -> None:
    given = Ingredients(summaries=[summed(number) for number in range(8)], window=stored([user("so?")], first=101))
    context = assemble(given, tight(900))
    assert 0 < len(told(context)) < 8
    assert told(context) == tuple(f"s{number}" for number in range(8))[-len(told(context)) :]
    record = context.messages[0]["content"]
    assert all(one.text.strip() in record for one in given.summaries if one.id in told(context))
    gone = [one for one in context.omitted if one.reason == "over_budget"]
    assert [(one.seq, one.last_seq) for one in gone] == [
        (10 * n + 1, 10 * n + 10) for n in range(8 - len(told(context)))
    ]


def test_a_record_that_leaves_no_room_for_the_question_is_left_out_and_named() -> None:
    given = Ingredients(summaries=[summed(0, words=300)], window=stored([user("so?")], first=101))
    context = assemble(given, tight(120))
    assert [message["content"] for message in context.messages] == ["so?"]
    assert [(one.seq, one.last_seq) for one in context.omitted] == [(1, 10)]


def asked(words: int, summaries: int, question: str = "so?") -> Ingredients:
    """A question that brings a passage back, after so many summaries."""
    (old,) = stored([user("the key is under the mat " * (words // 6))], first=3)
    passage = RecalledPassage(stored=old, start=0, end=len(old.payload["content"]))
    return Ingredients(
        summaries=[summed(number) for number in range(summaries)],
        window=stored([user(question)], first=101),
        recalled=(passage,),
    )


def kinds(context: Context) -> list[str]:
    return [part.kind for part in context.parts if part.tokens]


def test_what_is_recalled_stays_where_the_record_is_cut_anyway() -> None:
    given = asked(60, summaries=8)
    context = assemble(given, tight(900))
    assert "recalled" in kinds(context)
    assert "under the mat" in str(context.messages)
    bare = assemble(replace(given, recalled=()), tight(900))
    assert told(context) == told(bare)
    assert context.messages[0] == bare.messages[0]  # the record is the same, so a prompt cache stays warm


def test_what_is_recalled_goes_before_any_of_the_record() -> None:
    given = asked(300, summaries=3)
    bare = assemble(replace(given, recalled=()), Budget())
    context = assemble(given, tight(bare.tokens + 20))
    assert told(context) == ("s0", "s1", "s2")
    assert "recalled" not in kinds(context)


def test_of_what_is_recalled_the_least_goes_first() -> None:
    told = [f"the key number {number} is under mat {number}" for number in range(6)]
    passages = [
        RecalledPassage(stored=old, start=0, end=len(text), rank=5 - at)
        for at, (text, old) in enumerate(zip(told, stored([user(text) for text in told], first=3), strict=True))
    ]
    given = replace(asked(6, summaries=2), recalled=tuple(passages))
    whole = assemble(given, Budget())
    context = assemble(given, tight(whole.tokens - 60))
    shown = [text for text in told if text in str(context.messages)]
    assert 0 < len(shown) < 6
    assert shown == told[-len(shown) :]
    gone = [one.seq for one in context.omitted if one.reason == "recall_over_budget"]
    assert gone == [3 + at for at in range(6 - len(shown))]
    assert context.tokens <= context.limit


def test_what_is_recalled_goes_before_any_of_the_window() -> None:
    given = asked(60, summaries=8, question="and now? " * 300)
    context = assemble(given, tight(900))
    assert "recalled" not in kinds(context)


def test_what_was_repaired_away_is_named_with_what_was_wrong() -> None:
    odd: list[Message] = [
        user("hi"),
        {"role": "tool", "tool_call_id": "x", "content": "?"},
        {"role": "critic"},
        user(" "),
    ]
    context = assemble(Ingredients(window=stored(odd)), tight(900))
    assert [(one.seq, one.reason) for one in context.omitted] == [
        (2, "orphan_result"),
        (3, "unknown_role"),
        (4, "empty_message"),
    ]

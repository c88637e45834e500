"""The kind of a conversation is measured, not guessed."""

from __future__ import annotations

from hypothesis import given

from everthread.compaction.sources import CODING_SHARE, TOOL_SHARE, Source, SourceCall, conversation_kind
from tests.compaction.spans import assistant, result, spans, user


def _talk(count: int) -> list[Source]:
    return [user(seq, "How was the trip to the lake?") for seq in range(1, count + 1)]


def test_people_talking_is_chat() -> None:
    assert conversation_kind(_talk(10)) == "chat"


def test_nothing_said_is_chat() -> None:
    assert conversation_kind([]) == conversation_kind([user(1, "  \n")]) == "chat"


def test_enough_code_makes_it_coding() -> None:
    enough = int(10 * CODING_SHARE)
    code = [user(seq, "```\nx = 1\n```") for seq in range(20, 20 + enough)]
    assert conversation_kind(_talk(10 - enough) + code) == "coding"
    assert conversation_kind(_talk(30 - enough) + code) == "chat"


def test_file_names_tracebacks_and_diffs_are_code() -> None:
    for text in ("look at app/wave.py", "Traceback (most recent call last):", "--- a/x\n+++ b/x", "@@ -1,2 +1,2 @@"):
        assert conversation_kind([user(1, text)]) == "coding"


def test_enough_calls_make_it_tool_heavy() -> None:
    call = SourceCall(name="book_flight", arguments='{"cabin": "economy"}')
    turn = [assistant(50, "", call), result(51, "book_flight", "booked")]
    few, many = _talk(int(2 / TOOL_SHARE) - 2), _talk(int(2 / TOOL_SHARE))
    assert conversation_kind(few + turn) == "tool-heavy"
    assert conversation_kind(many + turn) == "chat"


def test_a_coding_agent_that_lives_on_tools_is_coding() -> None:
    call = SourceCall(name="edit", arguments='{"path": "src/wave.py"}')
    assert (
        conversation_kind([user(1, "fix it"), assistant(2, "", call), result(3, "edit", "src/wave.py changed")])
        == "coding"
    )


@given(spans())
def test_any_span_has_a_kind(sources: list[Source]) -> None:
    assert conversation_kind(sources) in ("chat", "tool-heavy", "coding")

"""Calls in OpenAI's older words, `function_call` and the role `function`, are calls and results like any other."""

from __future__ import annotations

from typing import Any

import pytest

from everthread.context import find_violations, repair, units
from everthread.context.message_format import to_openai

Payload = dict[str, Any]

OPENAI: list[Payload] = [
    {"role": "user", "content": "What is the weather in Turin?"},
    {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": '{"town": "Turin"}'}},
    {"role": "function", "name": "weather", "content": "11 degrees"},
    {"role": "assistant", "content": "It is 11 degrees."},
]
LANGCHAIN: list[Payload] = [
    {"type": "human", "content": "What is the weather in Turin?"},
    {
        "type": "ai",
        "content": "",
        "additional_kwargs": {"function_call": {"name": "weather", "arguments": '{"town": "Turin"}'}},
    },
    {"type": "function", "name": "weather", "content": "11 degrees"},
    {"type": "ai", "content": "It is 11 degrees."},
]


@pytest.mark.parametrize("history", [OPENAI, LANGCHAIN])
def test_an_older_call_and_its_result_are_one_unit(history: list[Payload]) -> None:
    assert [len(unit) for unit in units(history)] == [1, 2, 1]


@pytest.mark.parametrize("history", [OPENAI, LANGCHAIN])
def test_an_older_call_is_sent_in_the_newer_words(history: list[Payload]) -> None:
    sent = repair([message for one in history for message in to_openai(one)])
    assert find_violations(sent) == []
    (call,) = sent[1]["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": '{"town": "Turin"}'}
    assert (sent[2]["role"], sent[2]["tool_call_id"], sent[2]["content"]) == ("tool", call["id"], "11 degrees")


@pytest.mark.parametrize("history", [OPENAI, LANGCHAIN])
def test_older_calls_are_repaired_as_they_stand(history: list[Payload]) -> None:
    sent = repair(history)
    assert find_violations(sent) == []
    assert len(sent) == 4
    assert repair(sent) == sent


def test_an_older_call_of_a_dead_run_is_answered() -> None:
    sent = repair([*OPENAI[:2], OPENAI[0]])
    assert find_violations(sent) == []
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "user"]

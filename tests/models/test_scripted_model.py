"""ScriptedModel is a chat model like any other: called, streamed, given tools, and failing on cue."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.tools import tool

from everthread import Invalid
from everthread.testing import Reply, ScriptedModel
from everthread.testing.scripted import ScriptEnded

TWO_CALLS = Reply(text="let me see", calls=[("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})])


@tool
def add_up(a: int, b: int) -> int:
    """The sum."""
    return a + b


def whole(chunks: Sequence[AIMessageChunk]) -> AIMessageChunk:
    return reduce(add, chunks)


def without_index(content: Any) -> Any:
    """Streamed blocks carry their index; the blocks of a whole message do not."""
    if isinstance(content, str):
        return content
    return [{key: value for key, value in block.items() if key != "index"} for block in content]


def test_it_answers_step_by_step() -> None:
    model = ScriptedModel(["one", Reply(text="two"), AIMessage("three", id="m3")])
    answers = [model.invoke("go on") for _ in range(3)]
    assert [answer.text for answer in answers] == ["one", "two", "three"]
    assert answers[2].id == "m3"


async def test_it_answers_async_callers_the_same() -> None:
    model = ScriptedModel(["one", "two"])
    assert [(await model.ainvoke("go on")).text for _ in range(2)] == ["one", "two"]


def test_a_script_that_is_over_says_so() -> None:
    model = ScriptedModel(["one"])
    model.invoke("go on")
    with pytest.raises(ScriptEnded, match="1 steps, and this is request 2"):
        model.invoke("go on")


def test_a_step_may_be_written_as_in_a_file() -> None:
    model = ScriptedModel([{"calls": [{"name": "weather", "args": {"city": "昆明"}}]}, {"text": "Rain."}])
    assert model.invoke("?").tool_calls[0]["args"] == {"city": "昆明"}
    assert model.invoke("?").text == "Rain."


def test_a_step_that_is_none_is_refused_before_anything_is_asked() -> None:
    with pytest.raises(Invalid, match=r"steps\[1\]: must be a text or an object, not int"):
        ScriptedModel(["Hello.", 7])  # type: ignore[list-item]
    with pytest.raises(Invalid, match=r"steps\[0\]: has no field 'tools'"):
        ScriptedModel([{"tools": []}])
    with pytest.raises(Invalid, match=r"steps\[0\]\.calls: must be objects such as"):
        ScriptedModel([{"calls": [["weather", {"city": "昆明"}]]}])


def test_a_script_may_be_a_function_of_the_request() -> None:
    def echo(messages: Sequence[BaseMessage]) -> str:
        return messages[-1].text.upper()

    assert ScriptedModel(echo).invoke("quiet").text == "QUIET"
    assert ScriptedModel([echo, "two"]).invoke("quiet").text == "QUIET"


def test_parallel_calls_have_ids_of_their_own() -> None:
    model = ScriptedModel([TWO_CALLS, TWO_CALLS])
    first, second = model.invoke("x"), model.invoke("x")
    assert [call["args"] for call in first.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert len({call["id"] for call in (*first.tool_calls, *second.tool_calls)}) == 4


def test_thinking_is_a_block_before_the_text() -> None:
    answer = ScriptedModel([Reply(text="42", thinking="six times seven")]).invoke("x")
    assert [block["type"] for block in answer.content if isinstance(block, dict)] == ["thinking", "text"]
    assert answer.text == "42"


def test_usage_counts_what_was_read_and_written() -> None:
    usage = ScriptedModel(["hello there"]).invoke("one two three").usage_metadata
    assert usage == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_errors_come_on_cue_and_the_script_goes_on() -> None:
    model = ScriptedModel([TimeoutError("too slow"), "better now"])
    with pytest.raises(TimeoutError):
        model.invoke("x")
    assert model.invoke("x").text == "better now"


async def test_a_delay_is_waited_for() -> None:
    model = ScriptedModel([Reply(text="at last", delay_seconds=0.05)] * 2)
    start = time.monotonic()
    model.invoke("x")
    await model.ainvoke("x")
    assert time.monotonic() - start >= 0.1


STREAMED = [
    Reply(text="a somewhat longer text, in pieces 分成几块"),
    Reply(text="42", thinking="six times seven, that is"),
    TWO_CALLS,
    Reply(calls=[("add", {})]),
    AIMessage("", invalid_tool_calls=[{"name": "add", "args": "no JSON", "id": "c", "error": None}]),
    "",
]


@pytest.mark.parametrize("step", STREAMED, ids=repr)
async def test_the_pieces_of_a_stream_are_the_whole_answer(step: Any) -> None:
    model = ScriptedModel([step] * 3, chunk_characters=4)
    called = model.invoke("x")
    streams = [list(model.stream("x")), [chunk async for chunk in model.astream("x")]]
    for number, chunks in enumerate(streams, 2):
        streamed = whole(chunks)
        assert without_index(streamed.content) == called.content
        assert streamed.usage_metadata == called.usage_metadata
        assert streamed.response_metadata == called.response_metadata
        assert [call["args"] for call in streamed.tool_calls] == [call["args"] for call in called.tool_calls]
        assert [call["args"] for call in streamed.invalid_tool_calls] == [
            call["args"] for call in called.invalid_tool_calls
        ]
        assert len({chunk.id for chunk in chunks}) == 1, number


def test_a_text_is_streamed_in_more_than_one_piece() -> None:
    pieces = [chunk.text for chunk in ScriptedModel(["some twenty letters"], chunk_characters=4).stream("x")]
    assert len([piece for piece in pieces if piece]) == 5


def test_an_error_in_a_stream_comes_after_the_text() -> None:
    stream = ScriptedModel([Reply(text="half of an ans", error=ConnectionError("gone"))]).stream("x")
    heard = [next(stream).text, next(stream).text]
    with pytest.raises(ConnectionError):
        next(stream)
    assert "".join(heard) == "half of an ans"


def test_what_it_was_asked_and_offered_is_on_record() -> None:
    model = ScriptedModel(["one", "two"])
    model.bind_tools([add_up]).invoke([HumanMessage("first")])
    model.invoke("second")
    assert [(request.messages[-1].text, list(request.tools)) for request in model.requests] == [
        ("first", ["add_up"]),
        ("second", []),
    ]


async def test_an_agent_can_be_built_on_it() -> None:
    model = ScriptedModel([Reply(calls=[("add_up", {"a": 2, "b": 3}), ("add_up", {"a": 4, "b": 5})]), "5 and 9"])
    agent: Any = create_agent(model, [add_up])
    done = await agent.ainvoke({"messages": [HumanMessage("sums, please")]})
    assert [message.text for message in done["messages"]] == ["sums, please", "", "5", "9", "5 and 9"]
    assert list(model.requests[0].tools) == ["add_up"]


def test_two_models_do_not_share_their_records() -> None:
    first, second = ScriptedModel(["one"]), ScriptedModel(["one"])
    first.invoke("x")
    assert second.requests == []


WITHOUT_LANGCHAIN = """
import sys
sys.modules["langchain_core"] = None
import everthread, everthread.testing
assert everthread.testing.InMemoryStore
try:
    everthread.testing.ScriptedModel
except everthread.MissingExtra as problem:
    print(problem)
"""


def test_the_doubles_are_importable_without_langchain() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_LANGCHAIN], capture_output=True, text=True, check=True)
    assert "everthread[langchain]" in done.stdout


def test_the_package_does_not_import_langchain_by_itself() -> None:
    loaded = "[name for name in sys.modules if name.startswith(('langchain', 'langgraph'))]"
    code = f"import sys, everthread, everthread.testing; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

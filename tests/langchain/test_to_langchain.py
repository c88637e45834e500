"""Stored messages as LangChain's: equal to what was appended, and nothing stored ever runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
    convert_to_messages,
    message_chunk_to_message,
    message_to_dict,
)
from langchain_core.messages.tool import tool_call_chunk

from everthread import Everthread, Invalid, NotFound
from everthread.langchain import from_langchain, to_langchain

CALL = {"name": "weather", "args": {"city": "昆明", "days": [1, 2]}, "id": "call_1", "type": "tool_call"}
BROKEN_CALL = {"name": "weather", "args": '{"city": ', "id": "call_2", "error": "cut off", "type": "invalid_tool_call"}
THINKING = {"type": "thinking", "thinking": "Which city?", "signature": "EqQBCgIYAhIM"}

ORIGINALS: list[BaseMessage] = [
    HumanMessage("hello", id="m1", name="ada"),
    HumanMessage("a message without an id"),
    HumanMessage([{"type": "text", "text": "this"}, {"type": "image_url", "image_url": {"url": "data:,x"}}], id="m2"),
    HumanMessage("a field LangChain does not know", id="m3", mood="good", score=None),
    SystemMessage("be brief", id="m4", additional_kwargs={"cache": True}),
    ChatMessage(role="critic", content="too long", id="m5"),
    FunctionMessage(name="weather", content="rain", id="m6"),
    AIMessage("", id="m7", tool_calls=[CALL], invalid_tool_calls=[BROKEN_CALL]),
    AIMessage(
        [THINKING, {"type": "text", "text": "Rain."}, {"type": "tool_use", "id": "call_1", "name": "x", "input": {}}],
        id="m8",
        name="guide",
        usage_metadata={
            "input_tokens": 7,
            "output_tokens": 5,
            "total_tokens": 12,
            "input_token_details": {"cache_read": 3},
        },
        response_metadata={"model_name": "m", "logprobs": [0.5, None]},
        additional_kwargs={"refusal": None, "parsed": {"a": [1, {"b": 2.5}]}},
    ),
    AIMessage(
        "raw calls", additional_kwargs={"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    ),
    ToolMessage("19 degrees", tool_call_id="call_1", id="m9", name="weather", artifact={"rows": [[1, 2], [3, None]]}),
    ToolMessage([{"type": "text", "text": "x"}], tool_call_id="call_1", id="m10", status="error"),
]


async def stored(et: Everthread, message: object) -> Any:
    conversation = await et.conversations.create()
    await conversation.append([message])
    (kept,) = await conversation.tail(1)
    return kept


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda message: str(message.id))
async def test_a_message_comes_back_equal_to_what_was_appended(et: Everthread, original: BaseMessage) -> None:
    assert to_langchain(await stored(et, original)) == original


async def test_a_whole_history_comes_back_in_its_order(et: Everthread) -> None:
    conversation = await et.conversations.create()
    await conversation.append(ORIGINALS)
    assert to_langchain([message async for message in conversation.messages()]) == ORIGINALS


@pytest.mark.parametrize("original", ORIGINALS, ids=lambda message: str(message.id))
@pytest.mark.parametrize("shape", [message_to_dict, dumpd, from_langchain], ids=["type and data", "lc", "dump"])
def test_every_shape_of_a_message_comes_back_equal(original: BaseMessage, shape: Any) -> None:
    if shape is dumpd and original.model_extra:
        pytest.skip("LangChain's own envelope leaves such fields out")
    payload = json.loads(json.dumps(shape(original)))
    assert to_langchain(payload) == original


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, values, max_size=3)
blocks = st.lists(text | st.fixed_dictionaries({"type": text, "text": text}), max_size=3)
common = {
    "content": text | blocks,
    "id": st.none() | text.filter(bool),
    "name": st.none() | text,
    "additional_kwargs": objects.filter(lambda extra: "tool_calls" not in extra),
    "response_metadata": objects,
}
calls = st.lists(st.fixed_dictionaries({"name": text, "args": objects, "id": st.none() | text}), max_size=2)
messages = st.one_of(
    st.builds(HumanMessage, **common),
    st.builds(SystemMessage, **common),
    st.builds(AIMessage, tool_calls=calls, **common),
    st.builds(ToolMessage, tool_call_id=text, artifact=values, status=st.sampled_from(["success", "error"]), **common),
)


@given(messages)
def test_any_message_survives_the_way_through_json(original: BaseMessage) -> None:
    assert to_langchain(json.loads(json.dumps(from_langchain(original)))) == original


@pytest.mark.parametrize(
    "chunk",
    [
        HumanMessageChunk(content="hel", id="m1"),
        ToolMessageChunk(content="19", tool_call_id="call_1", id="m2"),
        AIMessageChunk(
            content="wait",
            id="m3",
            tool_call_chunks=[tool_call_chunk(name="weather", args='{"city": "x"}', id="call_1", index=0)],
            chunk_position="last",
        ),
    ],
    ids=lambda chunk: type(chunk).__name__,
)
async def test_a_chunk_becomes_a_whole_message(et: Everthread, chunk: BaseMessage) -> None:
    whole = to_langchain(await stored(et, chunk))
    assert whole == message_chunk_to_message(chunk)
    assert not type(whole).__name__.endswith("Chunk")


OPENAI: list[dict[str, Any]] = [
    {"role": "user", "content": "hi", "name": "ada", "id": "m1"},
    {"role": "system", "content": "be brief"},
    {"role": "developer", "content": "be brief"},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "昆明"}'}},
        {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
    ]},
    {"role": "tool", "content": "19", "tool_call_id": "c1"},
    {"role": "assistant", "content": "ok", "reasoning_content": "it is raining"},
]  # fmt: skip


@pytest.mark.parametrize("payload", OPENAI, ids=lambda payload: payload["role"])
def test_openai_messages_are_read_as_langchain_reads_them(payload: dict[str, Any]) -> None:
    assert to_langchain(payload) == convert_to_messages([payload])[0]


def test_a_role_of_the_callers_own_is_kept() -> None:
    assert to_langchain({"role": "critic", "content": "no"}) == ChatMessage(role="critic", content="no")


def test_a_call_whose_arguments_are_no_json_is_kept_as_an_invalid_one() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": '}}
    message = to_langchain({"role": "assistant", "content": None, "tool_calls": [call]})
    assert isinstance(message, AIMessage)
    assert message.tool_calls == []
    assert [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls] == [
        ("weather", '{"city": ', "c1")
    ]


def test_calls_in_anthropic_blocks_are_calls() -> None:
    block = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "x"}}
    message = to_langchain({"role": "assistant", "content": [block]})
    assert isinstance(message, AIMessage)
    assert message.content == [block]
    assert message.tool_calls == [{"name": "weather", "args": {"city": "x"}, "id": "c1", "type": "tool_call"}]


def test_calls_that_were_set_after_the_message_was_made_come_back_as_they_are() -> None:
    original = AIMessage("")
    original.tool_calls = [{**CALL, "extras": {"signature": "s"}}]  # type: ignore[typeddict-item]
    assert to_langchain(from_langchain(original)) == original


@pytest.mark.parametrize(
    "artifact",
    [
        b"\x00\xff",
        bytearray(b"x"),
        {"at": datetime(2030, 1, 2, 3, 4, tzinfo=UTC), "on": date(2030, 1, 2), "from": time(3, 4)},
        [Decimal("1.10"), UUID(int=7), {1, 2}, frozenset({"a"})],
        {1: "a", None: {"b": float("inf")}},
        {"__everthread__": "bytes", "value": "not ours"},
    ],
    ids=repr,
)
def test_what_json_has_no_word_for_comes_back_equal(artifact: Any) -> None:
    original = ToolMessage("x", tool_call_id="c", artifact=artifact)
    assert to_langchain(json.loads(json.dumps(from_langchain(original)))) == original


def test_an_object_of_any_other_class_leaves_a_note_of_what_it_was() -> None:
    original = ToolMessage("x", tool_call_id="c", artifact=[Path("a/b")])
    message = to_langchain(json.loads(json.dumps(from_langchain(original))))
    assert isinstance(message, ToolMessage)
    (note,) = message.artifact
    assert (note["class"], note["repr"]) == (f"{type(Path()).__module__}.PosixPath", "PosixPath('a/b')")


def test_the_same_set_is_written_the_same_way_in_every_process() -> None:
    letters = [chr(97 + place) for place in range(26)]
    written = from_langchain(ToolMessage("x", tool_call_id="c", artifact=set(letters)))["artifact"]
    assert written["value"] == letters


def test_a_message_in_a_circle_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(Invalid, match="m1"):
        from_langchain(ToolMessage("x", tool_call_id="c", id="m1", artifact=circle))


async def test_a_context_becomes_a_request_for_a_chat_model(et: Everthread) -> None:
    conversation = await et.conversations.create()
    call = AIMessage("", tool_calls=[CALL])
    await conversation.append([HumanMessage("weather?"), call, ToolMessage("19 degrees", tool_call_id="call_1")])
    context = await conversation.context(system="be brief")
    request = to_langchain(context)
    assert request == convert_to_messages(context.messages)
    assert [type(message) for message in request] == [SystemMessage, HumanMessage, AIMessage, ToolMessage]
    assert isinstance(request[2], AIMessage)
    assert request[2].tool_calls == [CALL]


async def test_a_message_without_an_id_gets_the_logs_when_asked(et: Everthread) -> None:
    kept = await stored(et, HumanMessage("hi"))
    assert to_langchain(kept).id is None
    assert to_langchain(kept, with_ids=True).id == kept.id
    assert [message.id for message in to_langchain([kept], with_ids=True)] == [kept.id]


async def test_an_erased_message_is_not_made_up(et: Everthread) -> None:
    kept = await stored(et, HumanMessage("hi"))
    blank = type(kept)(kept._entry._replace(raw=None, flags=4))
    with pytest.raises(NotFound):
        to_langchain(blank)


HARMFUL: list[dict[str, Any]] = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "llms", "openai", "OpenAI"], "kwargs": {"role": "user"}},
    {"lc": 1, "type": "constructor", "id": ["builtins", "eval"], "kwargs": {"content": "1/0"}},
    {"lc": 1, "type": "secret", "id": ["HOME"], "role": "user"},
    {"lc": 1, "type": "not_implemented", "id": ["os", "system"], "repr": "x", "role": "user"},
]


@pytest.mark.parametrize("payload", HARMFUL, ids=lambda payload: payload["id"][-1])
async def test_i25_an_envelope_that_names_no_message_class_is_refused(et: Everthread, payload: dict[str, Any]) -> None:
    kept = await stored(et, payload)
    with pytest.raises(Invalid):
        to_langchain(kept)


@pytest.mark.parametrize("payload", HARMFUL, ids=lambda payload: payload["id"][-1])
async def test_i25_an_envelope_inside_a_message_stays_a_dict(et: Everthread, payload: dict[str, Any]) -> None:
    original = ToolMessage([payload], tool_call_id="c", artifact=payload, additional_kwargs={"x": payload})
    revived = to_langchain(await stored(et, original))
    assert revived == original
    assert isinstance(revived, ToolMessage)
    assert type(revived.artifact) is dict


def test_an_instruction_to_remove_is_no_message() -> None:
    with pytest.raises(Invalid):
        to_langchain(from_langchain(RemoveMessage(id="m1")))


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "ai", "content": 5},
        {"type": "ai", "content": "x", "additional_kwargs": "y"},
        {"type": "ai", "content": "x", "additional_kwargs": None},
        {"type": "ai", "content": "x", "tool_calls": [None, {"args": []}]},
        {"type": "tool", "content": "x"},
        {"type": "function", "content": "x"},
        {"type": "human", "content": [7]},
        {"type": "chat"},
        {"role": "user"},
        {"role": 7, "content": "x"},
        {"role": "tool", "content": {"a": 1}},
        {"lc": 1},
        {},
    ],
    ids=json.dumps,
)
def test_a_strange_payload_becomes_a_message_or_a_clear_refusal(payload: dict[str, Any]) -> None:
    assert isinstance(_message_or_refusal(payload), BaseMessage | Invalid)


words = st.sampled_from(["ai", "human", "tool", "chat", "function", "constructor", "user", "assistant", "x"])
fields = {name: values for name in ["content", "additional_kwargs", "tool_calls", "name", "id", "kwargs", "data", "lc"]}


@given(st.fixed_dictionaries({}, optional={"type": words, "role": words | values, **fields}))
def test_no_payload_makes_it_fail_otherwise(payload: Mapping[str, Any]) -> None:
    assert isinstance(_message_or_refusal(payload), BaseMessage | Invalid)


def _message_or_refusal(payload: Mapping[str, Any]) -> BaseMessage | Invalid:
    try:
        return to_langchain(payload)
    except Invalid as refusal:
        return refusal

"""Payload shapes: OpenAI's, LangChain's, Anthropic's blocks and any other come back exactly as they came."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
)

from everthread import Conversation, Everthread, Invalid
from everthread.langchain import from_langchain, to_langchain
from tests.contracts.message_helpers import appended, history, says, texts

IMAGE = base64.b64encode(bytes(range(256)) * 20).decode()
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
BLOCKS: list[str | dict[Any, Any]] = [
    {"type": "thinking", "thinking": "Let me see …", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h=="},
    {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
    {"type": "text", "text": "Here it is.", "citations": None, "cache_control": {"type": "ephemeral"}},
    {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "x", "deep": [{"a": None}]}},
]

PAYLOADS: dict[str, dict[str, Any]] = {
    "openai text": {"role": "user", "content": "hi", "name": "Ann"},
    "openai system": {"role": "system", "content": "You are helpful."},
    "openai developer": {"role": "developer", "content": "Be brief."},
    "openai tool calls": {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
    "openai tool result": {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    "openai function": {"role": "function", "name": "f", "content": "{}"},
    "openai image": {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}", "detail": "high"}},
        ],
    },
    "openai audio": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": IMAGE, "format": "wav"}}],
    },
    "openai reasoning item": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB"},
    "anthropic blocks": {"role": "assistant", "content": BLOCKS, "stop_reason": "tool_use"},
    "anthropic tool result": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "found"}]}],
    },
    "langchain dump": {
        "content": "hi",
        "additional_kwargs": {},
        "response_metadata": {"model_name": "m"},
        "type": "ai",
        "name": None,
        "id": "run-1",
        "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}],
        "invalid_tool_calls": [
            {"name": "g", "args": "{broken", "id": "c2", "error": "no JSON", "type": "invalid_tool_call"}
        ],
        "usage_metadata": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    },
    "langchain dict": {"type": "human", "data": {"content": "hi", "type": "human", "id": "h1", "example": False}},
    "langchain envelope": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "hi", "type": "human", "id": "h2"},
    },
    "langchain chat": {"type": "chat", "role": "narrator", "content": "Once upon a time"},
    "unknown fields": {"role": "user", "content": "hi", "x-vendor": {"deep": [[[{"": 0}]]]}, "_private": 0.1},
    "unknown role": {"type": "critic", "content": "hm"},
    "no content": {"role": "assistant"},
    "odd content": {"role": "assistant", "content": {"parts": [1, 2]}},
    "odd blocks": {"role": "assistant", "content": [None, 5, "text", [], {"type": None}, {"text": 5}]},
    "odd calls": {"role": "assistant", "content": "", "tool_calls": [None, 5, {"function": "f"}, {}]},
    "odd everything": {
        "role": "assistant",
        "content": 0,
        "name": [],
        "created_at": "",
        "additional_kwargs": 5,
        "lc": [],
        "data": 1,
    },
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_i4_stored_bytes_equal_received_bytes(conv: Conversation, payload: dict[str, Any]) -> None:
    raw = json.dumps(payload, indent=1).encode()
    for given in (payload, raw):
        (receipt,) = await conv.append([given])
        if not receipt.new:  # its own id says that it is there already: then the first bytes stay
            continue
        message = await conv.message(receipt.id)
        assert message.payload == payload
        assert list(message.payload) == list(payload)
        assert json.loads(message.raw) == payload
        assert message.raw == raw or given is payload
        assert isinstance(message.text, str)
        assert message.name is None or isinstance(message.name, str)
        assert message.said_at is None


@pytest.mark.parametrize(
    ("name", "role", "text"),
    [
        ("openai text", "user", "hi"),
        ("openai developer", "developer", "Be brief."),
        ("openai tool calls", "assistant", ""),
        ("openai tool result", "tool", "sunny"),
        ("openai image", "user", "What is this?"),
        ("anthropic blocks", "assistant", "Here it is."),
        ("anthropic tool result", "user", "found"),
        ("langchain dump", "assistant", "hi"),
        ("langchain dict", "user", "hi"),
        ("langchain envelope", "user", "hi"),
        ("langchain chat", "narrator", "Once upon a time"),
        ("unknown role", "critic", "hm"),
        ("odd content", "assistant", '{"parts": [1, 2]}'),
        ("odd blocks", "assistant", "text"),
    ],
)
async def test_every_shape_is_read(conv: Conversation, name: str, role: str, text: str) -> None:
    (receipt,) = await conv.append([PAYLOADS[name]])
    message = await conv.message(receipt.id)
    assert (message.role, message.text) == (role, text)


@pytest.mark.parametrize(
    ("name", "id"), [("langchain dump", "run-1"), ("langchain dict", "h1"), ("langchain envelope", "h2")]
)
async def test_the_id_is_read_wherever_langchain_puts_it(conv: Conversation, name: str, id: str) -> None:
    for new in (True, False):
        (receipt,) = await conv.append([PAYLOADS[name]])
        assert (receipt.id, receipt.new) == (id, new)


async def test_empty_fields_inside_langchain_s_envelopes_make_no_difference(et: Everthread, conv: Conversation) -> None:
    empty: dict[str, Any] = {"name": None, "additional_kwargs": {}, "tool_calls": [], "example": False}
    for more in ({}, empty):
        inner = {"content": "hi", "type": "human", **more}
        (first,) = await conv.append([{"type": "human", "data": {**inner, "id": "h1"}}])
        (second,) = await conv.append(
            [{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {**inner, "id": "h2"}}]
        )
        assert (first.revision, second.revision) == (1, 1)
    assert await texts(conv) == ["hi", "hi"]


MESSAGES: dict[str, BaseMessage] = {
    "human": HumanMessage("hi", id="h1", name="Ann"),
    "human blocks": HumanMessage(
        [
            {"type": "text", "text": "look"},
            {"type": "image", "base64": IMAGE, "mime_type": "image/png"},
            {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
        ]
    ),
    "system": SystemMessage("Be kind."),
    "ai": AIMessage(
        [*BLOCKS[:3], {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}}],
        id="run-1",
        tool_calls=[{"name": "f", "args": {"x": 1, "y": [None]}, "id": "c1", "type": "tool_call"}],
        invalid_tool_calls=[
            {"name": "g", "args": "{broken", "id": "c2", "error": "no JSON", "type": "invalid_tool_call"}
        ],
        usage_metadata={
            "input_tokens": 5,
            "output_tokens": 2,
            "total_tokens": 7,
            "input_token_details": {"cache_read": 3},
        },
        response_metadata={"model_name": "m", "logprobs": None, "finish_reason": "stop"},
        additional_kwargs={"reasoning_content": "hm", "refusal": None},
    ),
    "tool": ToolMessage(
        "sunny",
        tool_call_id="c1",
        name="get_weather",
        status="error",
        artifact={"rows": [[1, 2.5, None]], "nested": {"": True}},
    ),
    "tool blocks": ToolMessage([{"type": "text", "text": "one"}, "two"], tool_call_id="c1", artifact=[1, "x"]),
    "chat": ChatMessage(content="Once", role="narrator"),
    "function": FunctionMessage(content="{}", name="f"),
    "chunk": AIMessageChunk(
        content="par", id="run-2", tool_call_chunks=[{"name": "f", "args": "{", "id": "1", "index": 0}]
    ),
    "unknown fields": HumanMessage("hi", vendor={"deep": [1]}, score=0.5),
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
async def test_i4_a_langchain_message_comes_back_equal(conv: Conversation, message: BaseMessage) -> None:
    for given in (message, [message], [says("before"), message]):
        receipts = await conv.append(given)
        stored = await conv.message(receipts[-1].id)
        assert stored.payload == message.model_dump()
        assert type(message)(**stored.payload) == message
        if message.id is not None:
            assert stored.id == message.id


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
async def test_i4_every_dump_of_a_langchain_message_comes_back(conv: Conversation, message: BaseMessage) -> None:
    dumps = [message.model_dump(), message_to_dict(message), dumpd(message)]
    for number, dump in enumerate(dumps):
        inner = dump.get("data") or dump.get("kwargs") or dump
        inner["id"] = f"m{number}"
        (receipt,) = await conv.append([dump])
        assert receipt.id == f"m{number}"
        assert (await conv.message(receipt.id)).payload == dump
    roles = {stored.role for stored in await history(conv)}
    assert len(roles) == 1
    if not isinstance(message, AIMessageChunk):
        (restored,) = messages_from_dict([(await conv.message("m1")).payload])
        assert restored.content == message.content


async def test_the_same_langchain_message_again_is_nothing_new(conv: Conversation) -> None:
    message = MESSAGES["ai"]
    assert [receipt.new for receipt in await conv.append([message])] == [True]
    assert [receipt.new for receipt in await conv.append([message])] == [False]
    assert [receipt.new for receipt in await conv.append([message.model_dump()])] == [False]
    changed = message.model_copy(update={"content": "other"})
    (receipt,) = await conv.append([changed])
    assert (receipt.revision, receipt.new) == (2, True)


@pytest.mark.parametrize(
    "artifact",
    [{1, 2}, b"bytes", {1: "key"}, date(2026, 1, 2), Decimal("1.5"), UUID(int=7), [{"deep": frozenset("ab")}]],
    ids=lambda artifact: type(artifact).__name__,
)
async def test_an_artifact_that_json_cannot_hold_comes_back(conv: Conversation, artifact: Any) -> None:
    message = ToolMessage("x", tool_call_id="c1", id="m1", artifact=artifact)
    await conv.append([HumanMessage("hi"), message])
    (restored,) = to_langchain([(await conv.tail(1))[0]])
    assert restored == message
    assert (await conv.message("m1")).payload == from_langchain(message)
    for again in (message, from_langchain(message)):
        assert [receipt.new for receipt in await conv.append([again])] == [False]


async def test_a_dict_with_what_json_cannot_hold_is_refused(conv: Conversation) -> None:
    with pytest.raises(Invalid, match=r"messages\[1\]\.artifact"):
        await conv.append([HumanMessage("hi"), {"role": "tool", "content": "x", "artifact": b"bytes"}])
    assert await texts(conv) == []


async def test_a_langchain_message_that_holds_itself_is_refused(conv: Conversation) -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(Invalid, match=r"messages\[0\]"):
        await conv.append([HumanMessage("hi", additional_kwargs=circle)])


async def test_a_list_of_langchain_messages_is_a_turn(conv: Conversation) -> None:
    turn = [MESSAGES["human"], MESSAGES["ai"], MESSAGES["tool"]]
    await conv.append(turn)
    assert [message.role for message in await history(conv)] == ["user", "assistant", "tool"]


# -- recorded trajectories ---------------------------------------------------------------------------------


def recorded(shared: Path) -> Iterator[list[dict[str, Any]]]:
    """Real tool-using conversations: the first of one benchmark, and all runs of an agent on code."""
    airline = json.loads((shared / "data/trajectories/tau-bench-airline.json").read_text())
    yield from (run["traj"] for run in airline[:20])
    for file in sorted((shared / "data/trajectories/swe-agent").glob("*.traj")):
        yield json.loads(file.read_text())["history"]


async def test_i4_recorded_trajectories_come_back_exactly(et: Everthread, shared: Path) -> None:
    written = 0
    for number, trajectory in enumerate(recorded(shared)):
        conv = await et.conversations.create(id=str(number))
        await conv.append(trajectory)
        assert [message.payload for message in await history(conv)] == trajectory
        written += len(trajectory)
    assert written > 500
    assert (await et.verify()).messages == written


# -- data is data ------------------------------------------------------------------------------------------


class Trap:
    """Leaves a file behind when something revives it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.file,))


async def test_i25_loading_stored_data_runs_nothing(et: Everthread, conv: Conversation, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps(Trap(sprung))
    pickle.loads(pickled)
    assert sprung.exists(), "the trap works"
    sprung.unlink()
    revived_by_msgpack = ormsgpack.packb(ormsgpack.Ext(5, pickled))
    payloads: list[dict[str, Any]] = [
        says(pickled.decode("latin-1")),
        says(base64.b64encode(pickled).decode(), artifact={"__pickle__": base64.b64encode(pickled).decode()}),
        {"role": "tool", "content": {"__type__": "msgpack", "data": revived_by_msgpack.decode("latin-1")}},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["pathlib", "Path", "touch"],
            "kwargs": {"content": "hi", "self": str(sprung)},
        },
        {"lc": 1, "type": "constructor", "id": ["builtins", "exec"], "kwargs": {"content": "1/0"}, "args": ["1/0"]},
        {"lc": 1, "type": "secret", "id": ["OPENAI_API_KEY"], "kwargs": {"content": "x"}},
        says("{{7*7}} ${7*7} %(x)s {0.__class__} <!ENTITY x SYSTEM 'file:///etc/passwd'>"),
        {"role": "user", "content": "x", "__class__": "Trap", "py/object": "tests.Trap", "$type": "System.Object"},
    ]
    receipts = await conv.append(payloads)
    copy = await conv.copy()
    for source in (conv, copy):
        for receipt, payload in zip(receipts, payloads, strict=True):
            assert (await source.message(receipt.id)).payload == payload
    await et.search("touch")
    assert (await et.verify()).ok
    assert not sprung.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
async def test_i25_pickled_bytes_are_refused_unread(conv: Conversation, tmp_path: Path, protocol: int) -> None:
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps(Trap(sprung), protocol=protocol)
    for raw in (pickled, ormsgpack.packb(ormsgpack.Ext(5, pickled)), ormsgpack.packb({"role": "user"})):
        with pytest.raises(Invalid):
            await conv.append(raw)
    await appended(conv, "fine")
    assert not sprung.exists()

"""What a graph streams, as the protocol's events; and what LangGraph holds, as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langgraph.types import Interrupt, Send

from everthread.core.errors import Invalid
from everthread.http.protocol.graph_stream import Frame, StreamFramer, error_body, graph_modes
from everthread.http.protocol.run_request import Mode
from everthread.http.protocol.serialization import dumps, interrupt_out, parse_command


def _frames(modes: list[Mode], *messages: BaseMessage) -> list[Frame]:
    framing = StreamFramer(modes)
    return [frame for message in messages for frame in framing.frames((), "messages", (message, {"node": "ask"}))]


def test_messages_tell_all_so_far_and_what_is_known_once() -> None:
    chunks = [AIMessageChunk(content="one", id="m"), AIMessageChunk(content=" two", id="m")]
    frames = _frames(["messages"], *chunks)
    assert [frame.event for frame in frames] == ["messages/metadata", "messages/partial", "messages/partial"]
    assert [frame.data[0].content for frame in frames[1:]] == ["one", "one two"]
    assert isinstance(frames[1].data[0], AIMessage)


def test_a_whole_message_is_complete() -> None:
    assert [frame.event for frame in _frames(["messages"], AIMessage("one", id="m"))][-1] == "messages/complete"


def test_tuples_go_before_whole_messages_where_both_are_asked_for() -> None:
    frames = _frames(["messages", "messages-tuple"], AIMessageChunk(content="one", id="m"))
    assert [frame.event for frame in frames] == ["messages"]


def test_what_a_subgraph_says_carries_its_namespace() -> None:
    framing = StreamFramer(["values"])
    assert list(framing.frames(("inner:1", "deep:2"), "values", {})) == [Frame("values|inner:1|deep:2", {})]


def test_whole_messages_of_a_subgraph_have_the_names_that_clients_look_for() -> None:
    message = (AIMessage("one", id="m"), {"langgraph_checkpoint_ns": "inner:1"})
    told = [frame.event for frame in StreamFramer(["messages"]).frames(("inner:1",), "messages", message)]
    assert told == ["messages/metadata", "messages/complete"]
    told = [frame.event for frame in StreamFramer(["messages-tuple"]).frames(("inner:1",), "messages", message)]
    assert told == ["messages|inner:1"]


def test_a_graph_is_asked_for_messages_once() -> None:
    assert graph_modes(["messages", "messages-tuple", "events", "values"]) == ["messages", "values"]


@dataclass
class Thing:
    when: datetime
    id: UUID


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            Thing(datetime(2026, 1, 1, tzinfo=UTC), UUID(int=7)),
            {"when": "2026-01-01T00:00:00+00:00", "id": str(UUID(int=7))},
        ),
        ({1: {2}}, {"1": [2]}),
        ("half \ud800 pair, a whole one \U0001f600", "half ? pair, a whole one \U0001f600"),
        (2**70, 2**70),
        (b"\x00\xff", "AP8="),
        (ValueError("boom"), "boom"),
    ],
)
def test_whatever_a_state_holds_becomes_json(value: object, shown: object) -> None:
    assert json.loads(dumps(value)) == shown


def test_an_interrupt_is_told_by_the_id_that_answers_it() -> None:
    assert interrupt_out(Interrupt(value="sure?", id="i")) == {"id": "i", "value": "sure?"}


def test_a_command_is_read_with_its_steps_and_writes() -> None:
    command = parse_command({"goto": ["a", {"node": "b", "input": 1}], "update": [["x", 1], ["x", 2]], "resume": "yes"})
    assert command.goto == ["a", Send("b", 1)]
    assert command.update == [("x", 1), ("x", 2)]
    assert command.resume == "yes"


@pytest.mark.parametrize("given", [{"jump": 1}, {"goto": 7}, {"goto": [{"input": 1}]}])
def test_what_is_no_command_is_refused_by_its_part(given: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="command"):
        parse_command(given)


def test_an_error_is_told_in_its_own_words_but_no_secret_in_them() -> None:
    key = "ghp_" + "a1B2" * 9
    told = error_body(ValueError(f"401 for {key}"))
    assert told["error"] == "ValueError"
    assert told["message"].startswith("401 for ")
    assert key not in told["message"]

"""The messages of a graph's state, joined as LangGraph joins them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from everthread.turn.state import MessagesChannel

WINDOW: list[Any] = [HumanMessage("one"), AIMessage("two", id="m2"), HumanMessage("one")]


def joined(*values: Any) -> list[Any]:
    channel = MessagesChannel(list)
    for value in values:
        channel.update([value])
    return channel.get()


@pytest.mark.parametrize(
    "added",
    [
        [AIMessage("three", id="m3")],
        [AIMessage("another two", id="m2")],
        [AIMessage("three", id="m3"), AIMessage("three again", id="m3")],
        [AIMessage("no id")],
        AIMessage("alone", id="m3"),
        [RemoveMessage("m2")],
        [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("anew", id="m9")],
        [AIMessageChunk(content="a piece", id="m3")],
        [{"role": "assistant", "content": "a dict", "id": "m3"}],
        [],
    ],
)
def test_messages_are_joined_as_langgraph_does(added: Any) -> None:
    ours = joined(list(WINDOW), added)
    theirs: Any = add_messages(list(WINDOW), added)
    assert [(type(one), one.text) for one in ours] == [(type(one), one.text) for one in theirs]


def test_messages_of_the_window_stay_the_same_objects() -> None:
    window = [HumanMessage("one"), AIMessage("two")]
    ours = joined(window, [AIMessage("three", id="m3")])
    assert ours[0] is window[0]
    assert [one.id for one in ours] == [None, None, "m3"]

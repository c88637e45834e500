"""What an event of a graph's stream holds, in each of its forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from everthread.core.errors import Invalid
from everthread.langgraph.stream import StateEvent, messages_in, state_in

STATE: dict[str, list[object]] = {"messages": []}


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (STATE, StateEvent((), STATE)),
        (((), STATE), StateEvent((), STATE)),
        ((("a:1", "b:2"), STATE), StateEvent(("a:1", "b:2"), STATE)),
        (("values", STATE), StateEvent((), STATE)),
        ((("a:1",), "values", STATE), StateEvent(("a:1",), STATE)),
        ({"type": "values", "ns": ("a:1",), "data": STATE, "interrupts": ()}, StateEvent(("a:1",), STATE)),
        (("updates", STATE), None),
        (((), "updates", STATE), None),
        ({"type": "updates", "ns": (), "data": STATE}, None),
    ],
    ids=repr,
)
def test_every_form_of_an_event_is_understood(event: object, state: StateEvent | None) -> None:
    assert state_in(event) == state


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"messages": [1, 2]}, [1, 2]),
        ({"messages": (1, 2)}, (1, 2)),
        ({"messages": None}, None),
        ({"other": 1}, None),
        ({"messages": {"role": "user"}}, [{"role": "user"}]),
        (SimpleNamespace(messages=[1]), [1]),
        (SimpleNamespace(), None),
        (["not", "a", "state"], None),
    ],
    ids=repr,
)
def test_only_the_channel_messages_is_read(values: Any, messages: Any) -> None:
    assert messages_in(values) == messages


def test_a_channel_of_another_kind_is_refused() -> None:
    with pytest.raises(Invalid):
        messages_in({"messages": "hi"})

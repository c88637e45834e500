"""What an event of `graph.astream` holds: the state of a (sub)graph, or something that is not for the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everthread.core.errors import Invalid

Namespace = tuple[str, ...]
"""Which subgraph an event comes from, as LangGraph writes it; `()` is the graph itself."""


class State(NamedTuple):
    """The state that an event of the mode `values` carries."""

    namespace: Namespace
    values: Any


def state_in(event: object) -> State | None:
    """The state of a `values` event, in each form `astream` gives it; None for an event of another mode.

    One mode: `state`, with subgraphs `(namespace, state)`. Several: `(mode, data)`, `(namespace, mode, data)`.
    With `version="v2"`: `{"type": mode, "ns": namespace, "data": data}`.
    """
    match event:
        case (tuple() as namespace, str() as mode, data):
            return State(namespace, data) if mode == "values" else None
        case (str() as mode, data):
            return State((), data) if mode == "values" else None
        case (tuple() as namespace, data):
            return State(namespace, data)
        case {"type": str() as mode, "ns": tuple() as namespace, "data": data}:
            return State(namespace, data) if mode == "values" else None
    return State((), event)


def messages_in(values: object) -> Sequence[object] | None:
    """The channel `messages` of a state that is a mapping or an object; None when it has none."""
    found = values.get("messages") if isinstance(values, Mapping) else getattr(values, "messages", None)
    if found is None or isinstance(found, list | tuple):
        return found
    if isinstance(found, Mapping) or hasattr(found, "model_dump"):
        return [found]
    raise Invalid(f"the channel holds a {type(found).__name__}, not a list of messages", field="messages")

"""`archive_stream`, the capture that needs no change to a graph: wrap its stream, and what it says is in the log before
you see it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, NamedTuple, TypeVar

from everthread.core.errors import Invalid
from everthread.core.ids import LOCAL
from everthread.instance import Everthread
from everthread.langgraph.capture import Namespace, RunCapture


class StateEvent(NamedTuple):
    """The state that an event of the mode `values` carries."""

    namespace: Namespace
    values: Any


def state_in(event: object) -> StateEvent | None:
    """The state of a `values` event, in each form `astream` gives it; None for an event of another mode.

    One mode: `state`, with subgraphs `(namespace, state)`. Several: `(mode, data)`, `(namespace, mode, data)`.
    With `version="v2"`: `{"type": mode, "ns": namespace, "data": data}`.
    """
    match event:
        case (tuple() as namespace, str() as mode, data):
            return StateEvent(namespace, data) if mode == "values" else None
        case (str() as mode, data):
            return StateEvent((), data) if mode == "values" else None
        case (tuple() as namespace, data):
            return StateEvent(namespace, data)
        case {"type": str() as mode, "ns": tuple() as namespace, "data": data}:
            return StateEvent(namespace, data) if mode == "values" else None
    return StateEvent((), event)


def messages_in(values: object) -> Sequence[object] | None:
    """The channel `messages` of a state that is a mapping or an object; None when it has none."""
    found = values.get("messages") if isinstance(values, Mapping) else getattr(values, "messages", None)
    if found is None or isinstance(found, list | tuple):
        return found
    if isinstance(found, Mapping) or hasattr(found, "model_dump"):
        return [found]
    raise Invalid(f"the channel holds {type(found).__name__}, not a list of messages", field="messages")


Event = TypeVar("Event")


async def archive_stream(
    et: Everthread, stream: AsyncIterable[Event], thread_id: str, *, owner: str = LOCAL
) -> AsyncGenerator[Event, None]:
    """Log every message of a graph's stream when it first appears, and pass every event on, the same object.

        stream = graph.astream(input, config, stream_mode="values", subgraphs=True)
        async for namespace, state in archive_stream(et, stream, "thread-1"):
            ...

    - Only events of the mode `values` are read, and of them the channel `messages`. `subgraphs=False`, a list of
      modes that has `values` in it, and `version="v2"` work too.
    - A message is in the log before its event is passed on. When the log fails, the stream fails: nothing goes on
      unlogged. When the graph fails, all that it had said before is in the log.
    - Messages are known by id, so a second run, a retry or another capture doubles nothing. A message that changed
      under its id is a revision. What the graph removes from its list stays in the log, and a summary that LangChain
      puts there is kept as a summary, not as history.
    - LangGraph's `add_messages` gives every message an id. In a plain list a message may have none: it gets one made
      from the thread, its position and what it says, so a second run over the same list makes the same ids. (Were
      the beginning of such a list removed between two runs, the rest would be logged again.)
    - What is first seen in a subgraph goes to a child conversation of the thread's, one for each namespace and first
      message, with `{"namespace": […]}` in its metadata. What a subgraph was handed down is not copied there. What
      it hands up appears in the thread's list later and is then logged there too: the thread's history is complete
      without its children.
    - The log's order is the order in which messages first appeared.

    Invalid at the end of a stream in which no event had a channel `messages`: it would have archived nothing.
    """
    if not isinstance(stream, AsyncIterable):
        raise Invalid(
            f"must be what `agent.astream(…)` gives, not {type(stream).__name__}: a program without asyncio keeps what "
            "is said with EverthreadSaver, ArchivingSaver or EverthreadMiddleware over `open_sync`",
            field="stream",
        )
    scopes = RunCapture(et, thread_id, owner)
    is_empty, has_messages = True, False
    async with AsyncExitStack() as closing:
        if isinstance(
            stream, AsyncGenerator
        ):  # a reader that stops also stops the graph, and at once, not at the next garbage collection
            closing.push_async_callback(stream.aclose)
        async for event in stream:
            is_empty = False
            state = state_in(event)
            messages = None if state is None else messages_in(state.values)
            if state is not None and messages is not None:
                has_messages = True
                await scopes.log(state.namespace, messages)
            yield event
    if not is_empty and not has_messages:
        raise Invalid(
            'no event had a channel "messages", so nothing was archived; call astream with stream_mode="values", '
            "or with a list of modes that has it",
            field="stream",
        )

"""What a graph streams, as the events of the protocol's first version.

    values, updates, custom, tasks, checkpoints, debug    as the graph says them
    messages-tuple                                        `messages`: a chunk and what is known of it
    messages                                              `messages/metadata` once, then `messages/partial`: all so far

What comes from a subgraph carries its namespace: `values|inner:8d3b…`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message

from everthread.http.protocol.wire import Json, checkpoint_of
from everthread.text.secrets import redact_secrets

Mode = Literal["values", "messages", "messages-tuple", "updates", "events", "tasks", "checkpoints", "debug", "custom"]
MESSAGES = ("messages", "messages-tuple")
END = "end"
ERROR = "error"
METADATA = "metadata"


class Frame(NamedTuple):
    """One event: its name, and what it says."""

    event: str
    data: Any


def asked_of_graph(modes: Sequence[Mode]) -> list[str]:
    """The modes that a graph knows, for those that were asked for."""
    return list(dict.fromkeys("messages" if mode in MESSAGES else mode for mode in modes if mode != "events"))


class Framing:
    """Makes events of what one run streams. Partial messages grow here, so each run has its own."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        self._modes = frozenset(modes)
        self._partial: dict[str | None, BaseMessage] = {}

    def frames(self, namespace: Sequence[str], mode: str, chunk: Any) -> Iterator[Frame]:
        """The events for one piece of a graph's stream."""
        suffix = "".join(f"|{step}" for step in namespace)
        if mode == "messages":
            yield from self._messages(suffix, *chunk)
        elif mode in ("debug", "checkpoints"):
            yield Frame(mode + suffix, _with_checkpoints(mode, chunk))
        else:
            yield Frame(mode + suffix, chunk)

    def _messages(self, suffix: str, message: BaseMessage, metadata: Mapping[str, Any]) -> Iterator[Frame]:
        if "messages-tuple" in self._modes:
            yield Frame("messages" + suffix, [message, metadata])
            return
        known = self._partial.get(message.id)
        if known is None:
            yield Frame("messages/metadata" + suffix, {message.id: {"metadata": metadata}})
        grown = message if known is None else known + message
        assert isinstance(grown, BaseMessage)
        self._partial[message.id] = grown
        is_chunk = isinstance(grown, BaseMessageChunk)
        shown = message_chunk_to_message(grown) if isinstance(grown, BaseMessageChunk) else grown
        yield Frame(("messages/partial" if is_chunk else "messages/complete") + suffix, [shown])


def _with_checkpoints(mode: str, chunk: Json) -> Json:
    """What a graph says of its checkpoints, with their addresses as the protocol writes them."""
    if mode == "checkpoints":
        return _addressed(chunk)
    if chunk.get("type") == "checkpoint":
        return {**chunk, "payload": _addressed(chunk["payload"])}
    return chunk


def _addressed(payload: Json) -> Json:
    return {
        **payload,
        "checkpoint": checkpoint_of(payload.get("config")),
        "parent_checkpoint": checkpoint_of(payload.get("parent_config")),
        "tasks": [{**task, "checkpoint": checkpoint_of(task.get("state"))} for task in payload.get("tasks", ())],
    }


def error_of(problem: BaseException) -> Json:
    """What went wrong in a run: the kind of error, and its own words without what looks like a secret in them."""
    return {"error": type(problem).__name__, "message": redact_secrets(str(problem))}

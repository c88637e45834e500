"""One run: the graph's stream becomes the protocol's events.

Version 1 of the protocol:

    values, updates, custom, tasks, checkpoints, debug    as the graph streams them
    messages-tuple                                        `messages`: a chunk and its metadata
    messages                                              `messages/metadata` once, then `messages/partial`: all so far

Events of a subgraph carry its namespace: `values|inner:8d3b…`; for `messages` their metadata do. Version 2 has the same
kinds, with a prefix and with the namespace and the time among the data (see `thread_events`).
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core._api import LangChainBetaWarning
from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langgraph.constants import TAG_HIDDEN

from everthread.core.turn_events import END, ERROR
from everthread.http.protocol.graphs import Graph
from everthread.http.protocol.run_events import RunEvent, RunEventLog
from everthread.http.protocol.run_request import Mode, RunRequest
from everthread.http.protocol.serialization import JsonObject, checkpoint_out, dumps, parse_command
from everthread.text.secrets import redact_secrets

METADATA = "metadata"
LIFECYCLE = frozenset({METADATA, ERROR, END})
"""The kinds of events about the run itself, which every reader gets."""

VERSION_2 = "2/"
"""Prefix of the kinds of version 2's events."""
NAMESPACE, TIMESTAMP, INTERRUPTS = "@namespace", "@timestamp", "@interrupts"
"""Members that version 2 adds to the data, so that a state is still stored member by member."""


class Frame(NamedTuple):
    """One event: its kind and its data."""

    event: str
    data: Any


async def run_graph(graph: Graph, request: RunRequest, config: JsonObject, log: RunEventLog) -> None:
    """Run the graph to its end, or to an interrupt. Raises whatever the graph raises."""
    if request.version == 2:
        async for frame in _stream_v2(graph, request, config):
            _emit(log, frame)
        return
    _emit(log, Frame(METADATA, {"run_id": str(config["run_id"]), "attempt": 1}))
    framer = StreamFramer(request.modes)
    async for namespace, mode, chunk in _stream_v1(graph, request, config):
        for frame in framer.frames(namespace, mode, chunk):
            _emit(log, frame)


def _emit(log: RunEventLog, frame: Frame) -> None:
    """Store a frame, encoded at once because the graph may change what it has streamed."""
    log.append(RunEvent(log.last + 1, frame.event, dumps(frame.data)))


def error_body(problem: BaseException) -> JsonObject:
    """A run's error for its followers: its type and its text, without anything that looks like a secret."""
    return {"error": type(problem).__name__, "message": redact_secrets(str(problem))}


# -- version 1 -------------------------------------------------------------------------------------------------------

Chunk = tuple[tuple[str, ...], str, Any]
"""Namespace, mode, data."""


def graph_modes(modes: Sequence[Mode]) -> list[str]:
    """LangGraph's stream modes for the requested modes of the protocol."""
    return list(
        dict.fromkeys(
            "messages" if mode in ("messages", "messages-tuple") else mode for mode in modes if mode != "events"
        )
    )


async def _stream_v1(graph: Graph, request: RunRequest, config: JsonObject) -> AsyncIterator[Chunk]:
    # A dict, because `astream` and `astream_events` both take these; the price is that mypy does not check them.
    options: JsonObject = {
        "stream_mode": graph_modes(request.modes) or ["values"],
        "subgraphs": request.subgraphs,
        "interrupt_before": request.interrupt_before,
        "interrupt_after": request.interrupt_after,
        "durability": request.durability,
        "context": request.graph_context(graph.context_schema),
        "output_keys": graph.output_channels,  # what its `output_schema` says, as from `invoke`
    }
    stream = _stream_with_events if "events" in request.modes else _stream_chunks
    # LangGraph must be asked for some mode even where only `events` is wanted.
    wanted = {*graph_modes(request.modes), "events"}
    async for chunk in stream(graph, _graph_input(request), config, options):
        if chunk[1] in wanted:
            yield chunk


async def _stream_chunks(graph: Graph, given: Any, config: JsonObject, options: JsonObject) -> AsyncIterator[Chunk]:
    async for streamed in graph.astream(given, config, **options):  # type: ignore[call-overload]
        yield _chunk(streamed, options)


async def _stream_with_events(
    graph: Graph, given: Any, config: JsonObject, options: JsonObject
) -> AsyncIterator[Chunk]:
    """The events of every runnable inside the graph; the graph's own stream is among them."""
    run_id = str(config["run_id"])
    async for event in graph.astream_events(given, config, version="v2", **options):  # type: ignore[call-overload]
        if event["event"] == "on_chain_stream" and event["run_id"] == run_id:
            yield _chunk(event["data"]["chunk"], options)
        elif TAG_HIDDEN not in (event.get("tags") or ()):
            yield (), "events", event


def _chunk(streamed: Any, options: JsonObject) -> Chunk:
    namespace, mode, data = streamed if options["subgraphs"] else ((), *streamed)
    return namespace, mode, data


def _graph_input(request: RunRequest) -> Any:
    return parse_command(request.command) if request.command is not None else request.input


class StreamFramer:
    """Makes events of one run's stream. Partial messages are put together here, so each run has its own."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        self._modes = frozenset(modes)
        self._partial: dict[str | None, BaseMessage] = {}

    def frames(self, namespace: Sequence[str], mode: str, chunk: Any) -> Iterator[Frame]:
        """The events for one chunk of the graph's stream."""
        suffix = "".join(f"|{step}" for step in namespace)
        if mode == "messages":
            yield from self._messages(suffix, *chunk)
        elif mode == "checkpoints":
            yield Frame(mode + suffix, _with_checkpoint_refs(chunk))
        elif mode == "debug" and chunk.get("type") == "checkpoint":
            yield Frame(mode + suffix, {**chunk, "payload": _with_checkpoint_refs(chunk["payload"])})
        else:
            yield Frame(mode + suffix, chunk)

    def _messages(self, suffix: str, message: BaseMessage, metadata: Mapping[str, Any]) -> Iterator[Frame]:
        if "messages-tuple" in self._modes:
            yield Frame("messages" + suffix, [message, metadata])
            return
        before = self._partial.get(message.id)
        if before is None:
            yield Frame("messages/metadata", {message.id: {"metadata": metadata}})
        whole = message if before is None else before + message
        assert isinstance(whole, BaseMessage)
        self._partial[message.id] = whole
        if isinstance(whole, BaseMessageChunk):
            yield Frame("messages/partial", [message_chunk_to_message(whole)])
        else:
            yield Frame("messages/complete", [whole])


def _with_checkpoint_refs(payload: JsonObject) -> JsonObject:
    """LangGraph streams configs; the protocol also wants each as a reference to its checkpoint."""
    return {
        **payload,
        "checkpoint": checkpoint_out(payload.get("config")),
        "parent_checkpoint": checkpoint_out(payload.get("parent_config")),
        "tasks": [{**task, "checkpoint": checkpoint_out(task.get("state"))} for task in payload.get("tasks", ())],
    }


# -- version 2 -------------------------------------------------------------------------------------------------------


async def _stream_v2(graph: Graph, request: RunRequest, config: JsonObject) -> AsyncIterator[Frame]:
    options: JsonObject = {"durability": request.durability, "context": request.graph_context(graph.context_schema)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)  # our reference says that this is experimental
        stream: Any = await graph.astream_events(  # type: ignore[call-overload]
            _graph_input(request), config, version="v3", **options
        )
    async with stream:
        async for event in stream:
            yield _frame_v2(event["method"], event["params"])


def _frame_v2(method: str, params: JsonObject) -> Frame:
    data = params["data"]
    if method == "messages" and isinstance(data, tuple):
        data = data[0]  # the second part is metadata of the run
    namespace = params["namespace"]
    extra = {NAMESPACE: namespace, TIMESTAMP: params["timestamp"]}
    if params.get("interrupts") is not None:
        extra[INTERRUPTS] = params["interrupts"]
    body = data if isinstance(data, dict) else {"@data": data}
    return Frame(VERSION_2 + method + "".join(f"|{step}" for step in namespace), {**extra, **body})

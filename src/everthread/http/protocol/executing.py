"""One run: what is asked becomes what the graph says, frame by frame, into the run's journal."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator
from typing import Any

from langchain_core._api import LangChainBetaWarning

from everthread.http.journal import Journal
from everthread.http.protocol.asked import Asked
from everthread.http.protocol.folding import Folding
from everthread.http.protocol.frames import METADATA, Frame, Framing, asked_of_graph
from everthread.http.protocol.graphs import Graph
from everthread.http.protocol.wire import Json, command_of, dumps


class Telling:
    """Writes frames into a journal, folded."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._folding = Folding()

    def tell(self, frame: Frame) -> None:
        shown = dumps(frame.data)
        self._journal.tell(frame.event, shown, self._folding.fold(frame.event, json.loads(shown)))


async def execute(graph: Graph, asked: Asked, config: Json, journal: Journal) -> None:
    """Run the graph to its end, or to where it stops to ask. Whatever the graph raises is raised."""
    telling = Telling(journal)
    if asked.version == 2:
        await _execute_2(graph, asked, config, telling)
        return
    telling.tell(Frame(METADATA, {"run_id": str(config["run_id"]), "attempt": 1}))
    framing = Framing(asked.modes)
    async for namespace, mode, chunk in _streamed(graph, asked, config):
        for frame in framing.frames(namespace, mode, chunk):
            telling.tell(frame)


Piece = tuple[tuple[str, ...], str, Any]
"""Where in the graph, in which mode, what."""


async def _streamed(graph: Graph, asked: Asked, config: Json) -> AsyncIterator[Piece]:
    options: Json = {
        "stream_mode": asked_of_graph(asked.modes) or ["values"],
        "subgraphs": asked.subgraphs,
        "interrupt_before": asked.interrupt_before,
        "interrupt_after": asked.interrupt_after,
        "durability": asked.durability,
        "context": asked.context,
    }  # as a dict, because both streams take them: so their types are not checked
    given = command_of(asked.command) if asked.command is not None else asked.input
    stream = _with_events if "events" in asked.modes else _plainly
    wanted = {*asked_of_graph(asked.modes), "events"}
    async for piece in stream(graph, given, config, options):
        if piece[1] in wanted:  # a graph must be asked for something, also where only its events are wanted
            yield piece


async def _plainly(graph: Graph, given: Any, config: Json, options: Json) -> AsyncIterator[Piece]:
    async for piece in graph.astream(given, config, **options):  # type: ignore[call-overload]
        yield _piece(piece, options)


async def _with_events(graph: Graph, given: Any, config: Json, options: Json) -> AsyncIterator[Piece]:
    """The events of everything inside; what the graph itself streams is among them."""
    run_id = str(config["run_id"])
    async for event in graph.astream_events(given, config, version="v2", **options):  # type: ignore[call-overload]
        if event["event"] == "on_chain_stream" and event["run_id"] == run_id:
            yield _piece(event["data"]["chunk"], options)
        else:
            yield (), "events", event


def _piece(piece: Any, options: Json) -> Piece:
    namespace, mode, chunk = piece if options["subgraphs"] else ((), *piece)
    return namespace, mode, chunk


# -- the second version ----------------------------------------------------------------------------------------------

VERSION_2 = "2/"
"""Before the names of its events."""
NAMESPACE, TIMESTAMP, INTERRUPTS = "@namespace", "@timestamp", "@interrupts"
"""Beside the members of what an event says, so that a state is folded by its members."""


async def _execute_2(graph: Graph, asked: Asked, config: Json, telling: Telling) -> None:
    given = command_of(asked.command) if asked.command is not None else asked.input
    options: Json = {"durability": asked.durability, "context": asked.context}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LangChainBetaWarning)  # it is said in the reference
        stream: Any = await graph.astream_events(given, config, version="v3", **options)  # type: ignore[call-overload]
    async with stream:
        async for event in stream:
            telling.tell(_event_2(event["method"], event["params"]))


def _event_2(method: str, params: Json) -> Frame:
    data = params["data"]
    if method == "messages" and isinstance(data, tuple):
        data = data[0]  # beside it stands what is known of the run
    place = params["namespace"]
    about = {NAMESPACE: place, TIMESTAMP: params["timestamp"]}
    if params.get("interrupts") is not None:
        about[INTERRUPTS] = params["interrupts"]
    body = data if isinstance(data, dict) else {"@data": data}
    return Frame(VERSION_2 + method + "".join(f"|{step}" for step in place), {**about, **body})

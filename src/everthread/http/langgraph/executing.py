"""One run: what is asked becomes what the graph says, frame by frame, into the run's journal."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from everthread.http.journal import Journal
from everthread.http.langgraph.asked import Asked
from everthread.http.langgraph.folding import Folding
from everthread.http.langgraph.frames import METADATA, Frame, Framing, asked_of_graph
from everthread.http.langgraph.graphs import Graph
from everthread.http.langgraph.wire import Json, command_of, dumps


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

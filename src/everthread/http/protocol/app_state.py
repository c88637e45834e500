"""What an app holds for the LangGraph protocol: its graphs and its runs, and how these start and stop with the app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

from fastapi import FastAPI

from everthread.http.protocol.builtin_assistant import NAME, BuiltinAssistant
from everthread.http.protocol.graphs import (
    GraphCatalog,
    GraphSpec,
    OpenGraphs,
    load_graphs,
    locations_in_file,
    locations_in_settings,
)
from everthread.http.protocol.run_engine import RunEngine
from everthread.http.turn_service import TurnService
from everthread.instance import Everthread
from everthread.settings import Settings

STOP_SECONDS = 2.0
"""How long runs that nobody follows may go on when the app stops; the server has already waited for the others."""


class ProtocolState:
    """Created with the app, which may be before any event loop runs; what needs a loop is created on first use."""

    def __init__(self, et: Everthread, catalog: GraphCatalog, turns: TurnService) -> None:
        self._et = et
        self._builtin = BuiltinAssistant(et, turns)
        builtin = GraphSpec(id=NAME, source=self._builtin.graph, description="Our own agent: it never forgets.")
        self._catalog = GraphCatalog(specs={NAME: builtin, **catalog.specs})

    @cached_property
    def graphs(self) -> OpenGraphs:
        """The graphs, for any owner."""
        return OpenGraphs(self._et, self._catalog)

    @cached_property
    def engine(self) -> RunEngine:
        """The runs of this process. A graph that users named `everthread` takes the built-in assistant's place."""
        is_builtin = self._catalog.get(NAME).source == self._builtin.graph
        return RunEngine(self.graphs, self._builtin if is_builtin else None)

    async def close(self, seconds: float) -> None:
        """Give runs some seconds to end, then close the rest as interrupted."""
        if "engine" in self.__dict__:
            await self.engine.close(seconds)


def install(app: FastAPI, et: Everthread, settings: Settings, turns: TurnService) -> None:
    """Load the graphs that `langgraph.json` and the settings name; Invalid when one cannot be found."""
    config = settings.langgraph_config
    locations = [] if config is None else locations_in_file(config)
    catalog = load_graphs([*locations, *locations_in_settings(settings.graphs, Path.cwd())])
    app.state.langgraph = ProtocolState(et, catalog, turns)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the runs of processes that died, and at the end those that still run here."""
    state: ProtocolState = app.state.langgraph
    state.engine.open()
    try:
        yield
    finally:
        await state.close(STOP_SECONDS)

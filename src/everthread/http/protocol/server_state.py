"""What an app holds for the LangGraph protocol: its graphs and their runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from fastapi import FastAPI

from everthread.http.admission import Admission
from everthread.http.protocol.builtin_assistant import NAME, BuiltinAssistant
from everthread.http.protocol.document_options import document_options
from everthread.http.protocol.graph_runs import GraphRuns
from everthread.http.protocol.graphs import (
    DocumentOptions,
    GraphCatalog,
    GraphSpec,
    OpenGraphs,
    load_graphs,
    load_types,
    locations_in_file,
    locations_in_settings,
    read_config,
)
from everthread.http.turn_service import TurnService
from everthread.instance import Everthread
from everthread.settings import Settings

_LOG = logging.getLogger(__name__)
_UNUSED = frozenset({"auth", "checkpointer", "encryption", "http", "webhooks"})
"""Parts of a `langgraph.json` that configure LangGraph's own server and have no effect here."""


class ProtocolState:
    """Created with the app, which may be before any event loop runs; what needs a loop is created on first use."""

    def __init__(
        self,
        et: Everthread,
        catalog: GraphCatalog,
        turns: TurnService,
        admission: Admission,
        allowed: Sequence[type] = (),
        documents: DocumentOptions | None = None,
    ) -> None:
        self._et = et
        self._documents = documents
        self._allowed = allowed
        self._admission = admission
        self._builtin = BuiltinAssistant(et, turns)
        builtin = GraphSpec(id=NAME, source=self._builtin.graph, description="Our own agent: it never forgets.")
        self._catalog = GraphCatalog(specs={NAME: builtin, **catalog.specs})

    @cached_property
    def graphs(self) -> OpenGraphs:
        """The graphs, for any owner."""
        return OpenGraphs(self._et, self._catalog, self._allowed, self._documents)

    @cached_property
    def crons_changed(self) -> asyncio.Event:
        """Set when a cron was made or changed in this process, since another may be due next."""
        return asyncio.Event()

    @cached_property
    def graph_runs(self) -> GraphRuns:
        """The runs of this process. A graph that users named `everthread` takes the built-in assistant's place."""
        is_builtin = self._catalog.get(NAME).source == self._builtin.graph
        return GraphRuns(self.graphs, self._admission, self._builtin if is_builtin else None)


def install(app: FastAPI, et: Everthread, settings: Settings, turns: TurnService) -> None:
    """Load the graphs that `langgraph.json` and the settings name; Invalid when one cannot be found."""
    config = settings.langgraph_config
    if config is not None and (unused := sorted(_UNUSED & read_config(config).keys())):
        _LOG.warning("not used of %s: %s; see docs/how-to/serve-a-langgraph-app.md", config.name, ", ".join(unused))
    locations = [] if config is None else locations_in_file(config)
    catalog = load_graphs([*locations, *locations_in_settings(settings.graphs, Path.cwd())])
    documents = None if config is None else document_options(config)
    allowed = load_types(settings.allowed_types)
    app.state.langgraph = ProtocolState(et, catalog, turns, app.state.admission, allowed, documents)

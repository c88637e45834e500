"""How the protocol comes into an app: its routes, its graphs, and the end of its runs when the app stops."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from everthread.http.protocol import assistants, events, graphs, info, joining, runs, states, store, threads
from everthread.http.protocol.office import Office
from everthread.http.talking import Talk
from everthread.instance import Everthread
from everthread.settings import Settings

PARTS = (info, assistants, threads, states, runs, joining, events, store)
"""Whose routes are the protocol's."""
STOP_SECONDS = 2.0
"""How long runs that nobody follows may go on when the app stops; those that are followed were waited for before."""


def mount(app: FastAPI, et: Everthread, settings: Settings, talk: Talk) -> None:
    """Let an app speak the protocol. Invalid when a graph that is named is not there."""
    app.state.langgraph = Office(et, graphs_of(settings), talk)


def graphs_of(settings: Settings) -> graphs.Graphs:
    """Those of `langgraph.json`, and those of the settings over them."""
    config = settings.langgraph_config
    named = [] if config is None else graphs.named_in_file(config)
    return graphs.load([*named, *graphs.named_in_settings(settings.graphs, Path.cwd())])


@asynccontextmanager
async def while_serving(app: FastAPI) -> AsyncIterator[None]:
    """Close the runs that died before, and at the end those that go on."""
    office: Office = app.state.langgraph
    office.running.open()
    try:
        yield
    finally:
        await office.close(STOP_SECONDS)

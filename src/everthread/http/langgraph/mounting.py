"""How the protocol comes into an app: its routes, what they need, and its runs' end when the app stops."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from everthread.http.langgraph import assistants, info, runs, states, store, threads
from everthread.http.langgraph.graphs import Graphs
from everthread.http.langgraph.running import Running
from everthread.http.langgraph.served import Served
from everthread.instance import Everthread

ROUTERS = (info.router, assistants.router, threads.router, states.router, runs.router, store.router)


@asynccontextmanager
async def serving(app: FastAPI, et: Everthread, graphs: Graphs, stop_seconds: float = 10.0) -> AsyncIterator[None]:
    """While the app runs, its protocol does; then runs end, or are closed as interrupted."""
    app.state.served = served = Served(et, graphs)
    app.state.running = running = Running(served).open()
    try:
        yield
    finally:
        await running.close(stop_seconds)

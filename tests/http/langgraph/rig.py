"""A real server on a real socket, with the graphs of agents.py, for clients as people use them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from starlette.responses import JSONResponse, Response

import everthread
from everthread.core import errors
from everthread.http.langgraph import graphs, mounting

HERE = Path(__file__).parent
CONFIG = HERE / "langgraph.json"


def says(text: str) -> dict[str, Any]:
    """An input of one message."""
    return {"messages": [{"role": "user", "content": text}]}


class Server:
    """Where it listens, and clients for it."""

    def __init__(self, address: str, app: FastAPI) -> None:
        self.address = address
        self.app = app

    def sdk(self, owner: str = "local") -> LangGraphClient:
        return get_client(url=self.address, headers={"X-Owner": owner})

    def http(self, owner: str = "local") -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.address, headers={"X-Owner": owner}, timeout=30)


def _app() -> FastAPI:
    app = FastAPI()

    @app.middleware("http")
    async def who(request: Request, go_on: Any) -> Response:
        request.state.caller = SimpleNamespace(owner=request.headers.get("x-owner", "local"))
        response: Response = await go_on(request)
        return response

    @app.exception_handler(errors.EverthreadError)
    async def told(request: Request, problem: errors.EverthreadError) -> Response:
        kinds = ((errors.NotFound, 404), (errors.Conflict, 409), (errors.Invalid, 422))
        status = next((status for kind, status in kinds if isinstance(problem, kind)), 500)
        return JSONResponse({"detail": str(problem)}, status)

    for router in mounting.ROUTERS:
        app.include_router(router)
    return app


@asynccontextmanager
async def serving(url: str, config: Path = CONFIG, stop_seconds: float = 5.0) -> AsyncIterator[Server]:
    """The server over a database."""
    async with everthread.open(url, worker=False) as et:
        app = _app()
        found = graphs.load(graphs.named_in_file(config))
        async with mounting.serving(app, et, found, stop_seconds), _listening(app) as address:
            yield Server(address, app)


@asynccontextmanager
async def _listening(app: FastAPI) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as here:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        task = asyncio.create_task(server.serve([here]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{here.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task

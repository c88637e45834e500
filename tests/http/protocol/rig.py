"""A real server on a real socket, with the graphs of agents.py, for clients as people use them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

import everthread
from everthread import Everthread
from everthread.http.app import create_app
from everthread.settings import Settings

HERE = Path(__file__).parent
CONFIG = HERE / "langgraph.json"


def says(text: str) -> dict[str, Any]:
    """An input of one message."""
    return {"messages": [{"role": "user", "content": text}]}


class Server:
    """Where it listens, and clients for it."""

    def __init__(self, address: str, et: Everthread) -> None:
        self.address = address
        self.et = et

    def sdk(self, key: str | None = None) -> LangGraphClient:
        return get_client(url=self.address, api_key=key)

    def http(self, key: str | None = None) -> httpx.AsyncClient:
        headers = {} if key is None else {"X-Api-Key": key}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=30)


@asynccontextmanager
async def serving(url: str, config: Path = CONFIG, **settings: Any) -> AsyncIterator[Server]:
    """The server over a database."""
    async with everthread.open(url, worker=False) as et:
        chosen = Settings(database=url, langgraph_config=config, requests_per_minute=0, **settings)
        async with _listening(create_app(et, chosen, needs_key=False)) as address:
            yield Server(address, et)


@asynccontextmanager
async def _listening(app: FastAPI) -> AsyncIterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as here:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        task = asyncio.create_task(server.serve([here]))
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{here.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


CHANNELS = ["values", "messages", "custom", "lifecycle", "input"]


async def told_by(http: httpx.AsyncClient, until: str, since: int = 0, **asked: Any) -> list[dict[str, Any]]:
    """The events of the thread `t`, in the protocol's second version, until its graph has come to this, or the one
    inside that is asked for."""
    seen: list[dict[str, Any]] = []
    body = {"channels": CHANNELS, "since": since, **asked}
    async with http.stream("POST", "/threads/t/stream/events", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
                params = seen[-1]["params"]
                is_asked_for = not params["namespace"] or "namespaces" in asked
                if seen[-1]["method"] == "lifecycle" and is_asked_for and params["data"]["event"] == until:
                    break
    return seen


async def commanded(http: httpx.AsyncClient, method: str, **params: Any) -> Any:
    """A command on the thread `t`, and what is answered."""
    answer = await http.post("/threads/t/commands", json={"id": 1, "method": method, "params": params})
    return answer.json()

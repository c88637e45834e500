"""The service on a real socket, in this process or in one of its own that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import httpx
import uvicorn
from fastapi import FastAPI

from tests.forkserver import ROOT, SERVING, Child, ForkServer

API = "/api/v1"


class Event(NamedTuple):
    """One event of a stream."""

    number: int
    kind: str
    data: dict[str, Any]


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_listening = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.is_listening.set()


@asynccontextmanager
async def listening(app: FastAPI, protocol: type[asyncio.Protocol] | None = None) -> AsyncIterator[str]:
    """The app on a port of its own, in this loop."""
    config = uvicorn.Config(
        app,
        port=0,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
        ws="none",
        http=protocol or "auto",
    )
    server = _Server(config)
    task = asyncio.create_task(server._serve())
    await server.is_listening.wait()
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await task


@contextmanager
def starting(
    forkserver: ForkServer, database: str, *options: str, needs: Sequence[str] = (), **environment: str
) -> Iterator[tuple[Child, TextIO]]:
    """`everthread serve` as a process of its own, and what it says: one line of JSON once it listens. What else it
    `needs` is imported before."""
    command = ("-m", "everthread", "serve", "--database", database, "--port", "0", "--json", *options)
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    modules = (*SERVING, *needs)
    with forkserver.talking_program(*command, folder=ROOT, env=kept | environment, needs=modules) as started:
        yield started


@contextmanager
def process(forkserver: ForkServer, database: str, *options: str, **environment: str) -> Iterator[tuple[Child, str]]:
    """The same once it listens, and its address."""
    with starting(forkserver, database, *options, **environment) as (server, said):
        first = said.readline()
        assert first, server.said()
        yield server, str(json.loads(first)["listening"])


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    """The events of a stream, as they come."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif fields:
            yield Event(int(fields.get("id", 0)), fields["event"], json.loads(fields["data"]))
            fields = {}


def text_of(told: list[Event]) -> str:
    return "".join(str(one.data["text"]) for one in told if one.kind == "token")


def scripted(folder: Path, text: str, *, pace_seconds: float = 0.0, error: str | None = None) -> str:
    """The name of a model that says this, again and again, at this pace."""
    script = folder / "script.json"
    step = {"text": text, "pace_seconds": pace_seconds} | ({} if error is None else {"error": error})
    script.write_text(json.dumps({"steps": [step], "repeat": True}))
    return f"scripted:{script}"

"""The service in a process of its own, and readers so light that they measure it and not themselves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import psutil

CHAT = "/api/v1/chat/stream"
_TOKEN = b"event: token\n"
_END = b"0\r\n\r\n"
_REFUSED = b"HTTP/1.1 503"


@dataclass(frozen=True, slots=True)
class Server:
    """One that listens."""

    pid: int
    host: str
    port: int

    def cpu_seconds(self) -> float:
        """Of all its threads and processes, since it began."""
        return processes_cpu_seconds(self.pid)


def processes_cpu_seconds(pid: int) -> float:
    """Of a process and all below it."""
    first = psutil.Process(pid)
    spent = [process.cpu_times() for process in (first, *first.children(recursive=True))]
    return float(sum(times.user + times.system for times in spent))


@contextmanager
def serving(
    folder: Path, *options: str, text: str, pace_seconds: float = 0.0, database: str | None = None, **variables: str
) -> Iterator[Server]:
    """`everthread serve` on a database, one in this folder by default, with a model that says this text each time, at
    this pace."""
    script = folder / "script.json"
    script.write_text(json.dumps({"steps": [{"text": text, "pace_seconds": pace_seconds}], "repeat": True}))
    place = database or f"sqlite:///{folder}/et.db"
    command = (sys.executable, "-m", "everthread", "serve", "--database", place, "--port", "0", "--json", *options)
    with _listening(command, EVERTHREAD_MODEL=f"scripted:{script}", **variables) as server:
        yield server


@contextmanager
def bare(*, tokens: int, pace_seconds: float) -> Iterator[Server]:
    """What streams as many events and does nothing else."""
    with _listening((sys.executable, "-m", "benchmarks.bare", str(tokens), str(pace_seconds))) as server:
        yield server


@contextmanager
def bare_sse(*, tokens: int) -> Iterator[Server]:
    """An app of sse-starlette that streams the same events and keeps nothing."""
    with _listening((sys.executable, "-m", "benchmarks.bare_sse", str(tokens))) as server:
        yield server


@contextmanager
def _listening(command: Sequence[str], **variables: str) -> Iterator[Server]:
    environment = os.environ | {"EVERTHREAD_REQUESTS_PER_MINUTE": "0"} | variables
    running = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert running.stdout is not None
        address = urlsplit(json.loads(running.stdout.readline())["listening"])
        yield Server(running.pid, str(address.hostname), int(address.port or 0))
    finally:
        running.terminate()  # processes that it started would go on without it
        running.communicate()


@dataclass(slots=True, eq=False)
class Stream(asyncio.Protocol):
    """One answer as it arrives: only times and bytes are kept; what they say is read when all is over."""

    request: bytes
    began: float = 0.0
    refusals: int = 0
    arrived: list[tuple[float, bytes]] = field(default_factory=list)
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.began = time.perf_counter()
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.arrived.append((time.perf_counter(), data))
        is_refused = len(self.arrived) == 1 and data.startswith(_REFUSED)
        if (is_refused or data.endswith(_END)) and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or ConnectionError("the answer broke off"))

    def first_seconds(self) -> float:
        """From the request to its first event."""
        seen = b""
        for moment, data in self.arrived:
            seen += data
            if b"\r\n\r\n" in seen and b"data: " in seen:
                return moment - self.began
        raise ValueError(f"no event in {seen[:200]!r}")

    def whole_seconds(self) -> float:
        """From the request to its end."""
        return self.arrived[-1][0] - self.began

    def gaps_seconds(self) -> list[float]:
        """Between one arrival of tokens and the next."""
        moments = [moment for moment, data in self.arrived if _TOKEN in data]
        return [later - earlier for earlier, later in pairwise(moments)]

    def events(self) -> int:
        """How many events of text came; a reader that is behind gets several pieces as one."""
        return b"".join(data for _, data in self.arrived).count(_TOKEN)

    def retry_seconds(self) -> float | None:
        """How long a server that has too much to do asks its client to wait; None where it began to answer."""
        head = self.arrived[0][1]
        if not head.startswith(_REFUSED):
            return None
        return float(head.partition(b"retry-after: ")[2].split(b"\r")[0])

    def is_whole(self) -> bool:
        return b"event: done\n" in b"".join(data for _, data in self.arrived[-3:])


def asking(server: Server, conversation: str) -> bytes:
    """The request that begins a turn and follows it."""
    return written(server, "POST", CHAT, json.dumps({"message": "Go on.", "conversation_id": conversation}).encode())


def reading(server: Server, path: str) -> bytes:
    """A request that reads."""
    return written(server, "GET", path, b"")


def written(server: Server, method: str, path: str, body: bytes) -> bytes:
    """A request as it goes over the wire."""
    head = f"{method} {path} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def streamed(server: Server, conversation: str, *, after_seconds: float = 0.0) -> Stream:
    """One answer, to its end. Told to come back later, a client does; its waiting counts."""
    await asyncio.sleep(after_seconds)
    transport, stream = await asyncio.get_running_loop().create_connection(
        lambda: Stream(asking(server, conversation)), server.host, server.port
    )
    await stream.ended
    transport.close()
    if (seconds := stream.retry_seconds()) is not None:
        later = await streamed(server, conversation, after_seconds=seconds)
        later.began, later.refusals = stream.began, later.refusals + 1
        return later
    assert stream.is_whole(), stream.arrived[-1]
    return stream

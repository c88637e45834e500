"""`everthread serve`: the service on an address, until it is told to stop.

On a loopback address a request without a key is the owner `local`'s; any other address is served only when there is a
key or a way to verify tokens.

When told to stop, it says so at `/readyz` and accepts no more connections. On those it has, no new turn is started;
running turns may go on until two seconds before `stop_seconds` are over (for half of them, where they are fewer than
four), then they are ended with what they have said; then every stream is ended, and the database is closed last.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import uvicorn
from fastapi import FastAPI
from sse_starlette.sse import AppStatus
from uvicorn.loops.auto import auto_loop_factory

from everthread.core.errors import Conflict, Invalid
from everthread.http.app import McpApp, create_app, drain
from everthread.http.auth import TokenVerifier
from everthread.http.connections import limited_protocol, most_connections
from everthread.http.v1.about import Demo
from everthread.http.v1.agent_sessions import Following
from everthread.instance import Everthread
from everthread.settings import Settings

T = TypeVar("T")
_LOG = logging.getLogger("everthread.http")
_BACKLOG = 2048
"""How many connections the system keeps until they are accepted."""
_DRAIN_SECONDS = 0.7
"""How long it may take after `stop_seconds` until turns have written down their end and streams have delivered it."""
_RESPOND_SECONDS = 0.1
"""How long responses may take to end, once their turns and streams have."""
_GC_THRESHOLDS = (20_000, 2, 60)
"""For `gc.set_threshold`. With Python's ten young collections to a middle one, the middle ones stopped a busy machine
for 0.12 s in 64 turns of 1,000 tokens; with these for 0.04 to 0.07 s, and all collections took a quarter less."""


def run(service: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, in uvloop where that is installed."""
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(service)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def needs_key(et: Everthread, settings: Settings) -> bool:
    """Whether requests need a key or a token; Invalid where they do and nobody could have one."""
    if is_loopback(settings.host) and not settings.require_key:
        return False
    has_keys = any(key.revoked_at is None for key in await et.store.api_keys.list(None))
    if not has_keys and TokenVerifier.from_settings(settings) is None:
        raise Invalid(
            f"{settings.host} is reachable from other machines, and there is no API key yet; create one first: "
            "everthread key create --owner NAME",
            field="host",
        )
    return True


async def asks_for_key(et: Everthread, settings: Settings) -> bool:
    """Whether a caller on this machine needs a key or a token too."""
    if not is_loopback(settings.host) or settings.require_key is not None:
        return not is_loopback(settings.host) or settings.require_key is True
    has_keys = any(key.revoked_at is None for key in await et.store.api_keys.list(None))
    return has_keys or TokenVerifier.from_settings(settings) is not None


OnListening = Callable[["Server"], None]
"""Called with the address once the server listens."""


class Server(uvicorn.Server):
    """Reports its address when it listens, and stops in the order described above; a second Ctrl-C does not wait."""

    def __init__(
        self, config: uvicorn.Config, et: Everthread, settings: Settings, on_listening: OnListening, *, has_parent: bool
    ) -> None:
        super().__init__(config)
        assert isinstance(config.app, FastAPI)
        self._app = config.app
        self._et = et
        self._stop_seconds = settings.stop_seconds
        self._on_listening = on_listening
        self._stop_requested_at = 0.0
        self._has_parent = has_parent

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            tune_gc()
            self._on_listening(self)

    @property
    def address(self) -> str:
        return address_of(self.servers[0].sockets[0])

    def stop(self) -> None:
        """Stop as after a SIGTERM."""
        self.handle_exit(signal.SIGTERM, None)

    def _stop_accepting(self) -> None:
        for server in self.servers:
            server.close()
        self._app.state.admission.close()

    def handle_exit(self, sig: int, frame: object) -> None:
        if sig == signal.SIGINT and self._has_parent and not self.should_exit:
            return  # Ctrl-C in a terminal: the parent gets it too, and will say so
        if not self._stop_requested_at:
            self._stop_requested_at = time.monotonic()
            if self.started:  # at once, not at uvicorn's next tick
                self._loop.call_soon_threadsafe(self._stop_accepting)
        self._app.state.is_stopping = True
        super().handle_exit(sig, frame)  # type: ignore[arg-type]  # uvicorn names its frames' type
        if not self.force_exit:  # uvicorn would raise the signal again once all is closed: an exit code for a failure
            self._captured_signals.clear()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stop_accepting()
        for one in sockets or ():
            one.close()
        until = (self._stop_requested_at or time.monotonic()) + self._stop_seconds
        seconds = max(0.0, until - time.monotonic())
        _LOG.info("stopping", extra={"seconds": round(seconds, 3)})
        # Idle connections stay open meanwhile: a request on one of them gets a 503 instead of a reset.
        draining = asyncio.gather(drain(self._app, seconds), self._et.stop_worker())
        await self._wait_unless_forced(draining, until + _DRAIN_SECONDS)
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._responses_end()
        for connection in list(self.server_state.connections):  # of clients that send or read no further
            connection.transport.abort()
        await self._responses_end()
        for task in self.server_state.tasks:
            task.cancel()
        if not self.force_exit:
            await self.lifespan.shutdown()

    async def _responses_end(self) -> None:
        """Wait a moment for responses to end."""
        if self.server_state.tasks and not self.force_exit:
            await asyncio.wait(set(self.server_state.tasks), timeout=_RESPOND_SECONDS)

    async def _wait_unless_forced(self, work: asyncio.Future[Any], until: float) -> None:
        """Wait for some work until a time, or until a second Ctrl-C."""
        while not work.done() and not self.force_exit and time.monotonic() < until:
            await asyncio.wait((work,), timeout=min(0.1, until - time.monotonic()))
        if work.cancel():
            await asyncio.wait((work,), timeout=_RESPOND_SECONDS)
        problem = None if not work.done() or work.cancelled() else work.exception()
        if problem is not None:  # what could not be written down is closed by the next process
            why = "it took too long" if isinstance(problem, asyncio.CancelledError) else problem
            _LOG.warning("some turns did not save their final state: %s", why)


def address_of(listener: socket.socket) -> str:
    """The address to open in a browser on this machine: 0.0.0.0 cannot be opened."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def outside_address(settings: Settings, port: int) -> str | None:
    """The address for other machines, if the server listens on all addresses and one of them is reachable from
    outside."""
    try:
        if not ipaddress.ip_address(settings.host.strip("[]")).is_unspecified:
            return None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way_out:
            way_out.connect(("192.0.2.1", 9))  # an address of documentation: nothing is sent, only a route is chosen
            host = way_out.getsockname()[0]
    except (OSError, ValueError):
        return None
    return None if ipaddress.ip_address(host).is_loopback else f"http://{host}:{port}"


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of this host, all on one port; Conflict when it is in use."""
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            chosen = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((address[0], chosen), family=family, backlog=_BACKLOG))
    except OSError as problem:
        for one in sockets:
            one.close()
        raise Conflict(f"cannot listen on {host}:{port}; is it in use? try --port") from problem
    return sockets


def tune_gc() -> None:
    """Exclude what is loaded by now from garbage collection: it stays loaded, and would be scanned again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def serve(
    et: Everthread,
    settings: Settings,
    on_listening: OnListening,
    demo: Demo | None = None,
    mcp: McpApp | None = None,
    watcher: Following | None = None,
    sockets: Sequence[socket.socket] | None = None,
) -> None:
    """Serve until Ctrl-C or SIGTERM; on these sockets, if some listen already."""
    app = create_app(et, settings, needs_key=await needs_key(et, settings), demo=demo, mcp=mcp, watcher=watcher)
    AppStatus.enable_automatic_graceful_drain = False  # it would break streams off as soon as there is a signal
    config = uvicorn.Config(
        app,
        log_config=None,  # the command line sets up logging
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        ws="none",
        http=limited_protocol(most_connections(settings.max_connections)),
    )
    # Listening is ours, so that an address in use is one error, and not also a line that uvicorn logs.
    own = listen(settings.host, settings.port) if sockets is None else list(sockets)
    server = Server(config, et, settings, on_listening, has_parent=sockets is not None)
    await server.serve(own)

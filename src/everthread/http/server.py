"""`everthread serve`: the service on an address, until it is told to stop.

On a loopback address a request without a key is the owner `local`'s; any other address is served only when there is a
key or a way to verify tokens. When told to stop, it takes no new requests, gives the running ones some time to end, and
closes the database last.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import uvicorn
from uvicorn.loops.auto import auto_loop_factory

from everthread.core.errors import Conflict, Invalid
from everthread.http.app import create_app
from everthread.http.auth import TokenVerifier
from everthread.http.v1.about import LoadDemo
from everthread.instance import Everthread
from everthread.settings import Settings

STOP_SECONDS = 10
"""Process managers kill after 10 to 30 seconds."""


_GC_THRESHOLDS = (20_000, 2, 60)
"""For `gc.set_threshold`. With Python's ten young collections to a middle one, the middle ones stopped a busy machine
for 0.12 s in 64 turns of 1,000 tokens; with these for 0.04 to 0.07 s, and all collections took a quarter less."""


def run(service: Coroutine[Any, Any, None]) -> None:
    """Run it in uvloop where that is installed."""
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        runner.run(service)


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


class _Server(uvicorn.Server):
    """Reports its address when it listens, and tells the app when it must stop; a second Ctrl-C does not wait."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            tune_gc()
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_listening(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    def handle_exit(self, sig: int, frame: object) -> None:
        app = self.config.app
        app.state.is_stopping = True  # type: ignore[union-attr]  # ours
        super().handle_exit(sig, frame)  # type: ignore[arg-type]  # uvicorn names its frames' type
        if not self.force_exit:  # uvicorn would raise the signal again once all is closed: an exit code for a failure
            self._captured_signals.clear()


def tune_gc() -> None:
    """What is loaded by now stays loaded: spare the garbage collector going through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def serve(
    et: Everthread, settings: Settings, on_listening: Callable[[str], None], load_demo: LoadDemo | None = None
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    app = create_app(et, settings, needs_key=await needs_key(et, settings), load_demo=load_demo)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,  # the command line sets up logging
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        ws="none",
    )
    server = _Server(config, on_listening)
    try:
        await server.serve()
    except SystemExit as problem:  # how uvicorn reports that the address is in use
        raise Conflict(f"cannot listen on {settings.host}:{settings.port}; is it in use? try --port") from problem

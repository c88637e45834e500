"""`create_app(et, settings)`: the middleware in its order, and the routers behind it.

A request gets an id and a log line, is authenticated, is checked for its size, and, where it carries an idempotency key
that was answered before, gets the same response again; only then a route sees it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from importlib.metadata import version
from typing import Protocol

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from everthread.http import errors, health, page, protocol, v1
from everthread.http.admission import Admission, AdmissionLimits
from everthread.http.auth import AuthMiddleware, RateLimiter, TokenVerifier
from everthread.http.idempotency import IdempotencyMiddleware
from everthread.http.middleware import (
    BodyLimitMiddleware,
    BodyLimits,
    EncodedSlashMiddleware,
    EventStreamMiddleware,
    EventStreams,
    RequestLogMiddleware,
    SecurityHeadersMiddleware,
)
from everthread.http.protocol import server_state as protocol_state
from everthread.http.protocol.cron_runner import CronRunner
from everthread.http.request_metrics import RequestMetrics
from everthread.http.turn_service import TurnService
from everthread.http.v1 import shares
from everthread.http.v1.about import Demo
from everthread.http.v1.agent_sessions import Following
from everthread.instance import Everthread
from everthread.settings import Settings, seconds_to_go_on

_FLUSH_SECONDS = 0.5
"""How long streams may take to deliver the ends of their turns, once these have ended; a run polls its row."""
_EXPOSED_HEADERS = (
    "Content-Location", "Idempotent-Replayed", "Location", "Retry-After", "X-Pagination-Next", "X-Pagination-Total",
    "X-Request-Id",
)  # fmt: skip
"""What a page from elsewhere may read."""

MCP_PATH = "/mcp"


class McpApp(Protocol):
    """Answers MCP clients over HTTP while it runs, for the caller that was authenticated."""

    def run(self) -> AbstractAsyncContextManager[None]: ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


# Built once for all apps: what FastAPI works out of a route at its first request takes half a second for all of them,
# and stays with the route.
_ROUTES = APIRouter()
for module in (health, v1, protocol):
    _ROUTES.include_router(module.router)
_ROUTES.include_router(shares.open_router)


def create_app(
    et: Everthread,
    settings: Settings,
    *,
    needs_key: bool = True,
    demo: Demo | None = None,
    mcp: McpApp | None = None,
    watcher: Following | None = None,
) -> FastAPI:
    """The service over an open database. Without `needs_key`, a request without a key is the owner `local`'s, as long
    as there are no keys: only for an address that no other machine reaches. `demo` gives the page something to
    show, `mcp` answers MCP clients at `/mcp`, and `watcher` follows the files of coding agents meanwhile."""
    metrics = RequestMetrics()
    limits = AdmissionLimits(
        running=settings.max_running_turns, waiting=settings.max_waiting_turns, wait_seconds=settings.max_wait_seconds
    )
    admission = Admission(limits, metrics.count_admission)
    streams = EventStreams(settings.max_streams, settings.max_streams_per_owner)
    metrics.watch(admission, lambda: streams.open)
    app = FastAPI(
        title="everthread",
        version=version("everthread"),
        summary="Conversations of LLM agents that never end and never forget.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # its spans hold queries; ours do not
        middleware=_middleware(et, settings, metrics, streams, needs_key=needs_key),
        lifespan=_lifespan,
    )
    app.state.et = et
    app.state.settings = settings
    app.state.admission = admission
    app.state.streams = streams
    app.state.metrics = metrics
    app.state.is_stopping = False
    app.state.database_probe = None
    app.state.import_lock = asyncio.Lock()
    app.state.demo = demo
    app.state.watcher = watcher
    app.state.mcp = mcp
    app.state.turns = turns = TurnService(et, settings)
    errors.install(app)
    app.router.routes.extend(_ROUTES.routes)
    protocol_state.install(app, et, settings, turns)
    if mcp is not None:
        app.router.routes.append(Route(MCP_PATH, mcp, include_in_schema=False))
    page.install(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Watch over the runs of processes that died, clean idle workspaces, start what crons say, and at the end let what
    runs finish."""
    et: Everthread = app.state.et
    app.state.is_stopping = False
    app.state.admission.open()
    app.state.streams.start()
    app.state.import_lock = asyncio.Lock()
    await et.runs.close_dead()
    et.runs.open()
    await et.workspaces.clean()
    crons = asyncio.create_task(CronRunner(app.state.langgraph).run(), name="crons")
    try:
        async with app.state.mcp.run() if app.state.mcp is not None else nullcontext():
            yield
    finally:
        crons.cancel()
        await asyncio.wait([crons])
        if not app.state.is_stopping:  # else the server has done it
            await drain(app, app.state.settings.stop_seconds)


async def drain(app: FastAPI, seconds: float) -> None:
    """Start no new turns, let those that run go on for most of the time, and end the others with what they have said:
    the rest is for writing that down. Then end the streams: those of turns have delivered their end by now, the others
    never end by themselves."""
    app.state.is_stopping = True
    app.state.admission.close()
    try:
        goes_on = seconds_to_go_on(seconds)
        until = time.monotonic() + goes_on
        with suppress(TimeoutError):
            async with asyncio.timeout(goes_on):
                await app.state.admission.wait_for_blocks()
        left = max(0.0, until - time.monotonic())
        await app.state.et.runs.close(left)
        await app.state.streams.wait_for_ends(_FLUSH_SECONDS)
    finally:
        app.state.streams.close()


def _middleware(
    et: Everthread, settings: Settings, metrics: RequestMetrics, streams: EventStreams, *, needs_key: bool
) -> list[Middleware]:
    """The outermost first."""
    tokens = TokenVerifier.from_settings(settings)
    rate_limiter = RateLimiter(settings.requests_per_minute) if settings.requests_per_minute else None
    limits = BodyLimits(body_bytes=settings.max_body_bytes, upload_bytes=settings.max_upload_bytes)
    origins = settings.allowed_origins
    cors = Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=_EXPOSED_HEADERS
    )
    return [
        Middleware(RequestLogMiddleware, metrics=metrics),
        Middleware(SecurityHeadersMiddleware),
        *([cors] if origins else []),
        Middleware(EventStreamMiddleware, streams=streams, metrics=metrics),
        Middleware(
            AuthMiddleware,
            keys=et.store.api_keys,
            tokens=tokens,
            needs_key=needs_key,
            is_local_trusted=settings.require_key is False,
            rate_limiter=rate_limiter,
            trusted_origins=frozenset(origins),
        ),
        Middleware(BodyLimitMiddleware, limits=limits),
        Middleware(IdempotencyMiddleware, replies=et.store.replies),
        Middleware(EncodedSlashMiddleware),
    ]

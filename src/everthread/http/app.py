"""`create_app(et, settings)`: the doors in their order, and the routes behind them.

A request passes the edge (id, log, counts, span), gets safe headers, is sized before it is let in, asked who it is,
and, where it carries a key of its own, answered as before; only then a route sees it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from everthread.http import errors, health, page, protocol, v1
from everthread.http.auth import AuthMiddleware, RateLimiter, TokenVerifier
from everthread.http.idempotency import IdempotencyMiddleware
from everthread.http.middleware import (
    BodyLimitMiddleware,
    BodyLimits,
    EncodedSlashMiddleware,
    RequestLogMiddleware,
    RequestMetrics,
    SecurityHeadersMiddleware,
)
from everthread.http.protocol import app_state as langgraph
from everthread.http.turn_service import TurnService
from everthread.http.v1.about import LoadDemo
from everthread.instance import Everthread
from everthread.settings import Settings

STOP_SECONDS = 5.0
"""How long turns may go on when the app stops; then they end with what they have said."""

_ROUTES = APIRouter()
"""The same in every app: what FastAPI works out of them at a first request, in half a second, is kept with them."""
for part in (health, v1, protocol):
    _ROUTES.include_router(part.router)


def create_app(
    et: Everthread, settings: Settings, *, needs_key: bool = True, load_demo: LoadDemo | None = None
) -> FastAPI:
    """The service over an open database. Without `needs_key`, whoever comes without one is the owner `local`: only for
    an address that no other machine reaches. `load_demo` gives a page something to show."""
    counts = RequestMetrics()
    app = FastAPI(
        title="everthread",
        version=version("everthread"),
        summary="Conversations of LLM agents that never end and never forget.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # it tells queries: the edge's spans tell none
        middleware=_doors(et, settings, counts, needs_key=needs_key),
        lifespan=_while_serving,
    )
    app.state.et = et
    app.state.settings = settings
    app.state.counts = counts
    app.state.load_demo = load_demo
    app.state.talk = talk = TurnService(et, settings)
    errors.install(app)
    app.router.routes.extend(_ROUTES.routes)
    langgraph.install(app, et, settings, talk)
    page.install(app)
    return app


@asynccontextmanager
async def _while_serving(app: FastAPI) -> AsyncIterator[None]:
    """Close the turns whose process died, clean workspaces that are idle, and at the end let the turns that run end."""
    talk: TurnService = app.state.talk
    await talk.close_dead()
    await app.state.et.workspaces.clean()
    async with langgraph.lifespan(app):
        try:
            yield
        finally:
            await talk.close(STOP_SECONDS)


def _doors(et: Everthread, settings: Settings, counts: RequestMetrics, *, needs_key: bool) -> list[Middleware]:
    """The outermost first."""
    limits = BodyLimits(body_bytes=settings.max_body_bytes, upload_bytes=settings.max_upload_bytes)
    rates = RateLimiter(settings.requests_per_minute) if settings.requests_per_minute else None
    return [
        Middleware(RequestLogMiddleware, counts=counts),
        Middleware(SecurityHeadersMiddleware),
        *_cors(settings),
        Middleware(
            AuthMiddleware, keys=et.store.api_keys, tokens=token_verifier(settings), needs_key=needs_key, rates=rates
        ),
        Middleware(BodyLimitMiddleware, limits=limits),
        Middleware(IdempotencyMiddleware, replies=et.store.replies),
        Middleware(EncodedSlashMiddleware),
    ]


def _cors(settings: Settings) -> list[Middleware]:
    origins = [origin for origin in map(str.strip, settings.cors_origins.split(",")) if origin]
    if not origins:
        return []
    exposed = ["Content-Location", "Idempotent-Replayed", "Location", "Retry-After", "X-Request-Id"]
    return [
        Middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"], expose_headers=exposed
        )
    ]


def token_verifier(settings: Settings) -> TokenVerifier | None:
    """How tokens are checked, where that is set."""
    secret = settings.jwt_secret.get_secret_value() if settings.jwt_secret else None
    if secret is None and settings.jwt_jwks_url is None:
        return None
    return TokenVerifier(
        secret=secret, jwks_url=settings.jwt_jwks_url, audience=settings.jwt_audience, issuer=settings.jwt_issuer
    )

"""The service: conversations over HTTP, for many users.

    server         `everthread serve`: which addresses need a key, uvicorn, and how it stops
    app            `create_app(et, settings)`: the middleware in its order, and the routers behind it
    middleware     request log, event streams, security headers, body limits, encoded slashes
    auth           who calls: API keys, tokens, or this machine's own user; and how often
    idempotency    the same Idempotency-Key, the same response
    dependencies   what every route takes: the caller, the database, a conversation, pages
    errors         status codes, and problem details (RFC 9457)
    responses      JSON out, whatever a message holds
    sse            server-sent events
    turn_service   turns as clients follow them, detached from connections
    health         /healthz, /readyz, /metrics (with `request_metrics`), and what LangGraph's clients ask first
    page           the page at /
    v1/            /api/v1
    protocol/      the LangGraph server protocol, at the root
    full_history   everything ever said in a thread; `full_history_router` for other apps

To add a route, write it in the module of its resource in v1/ or protocol/: see their `__init__`.
"""

from __future__ import annotations

from everthread.http.full_history import full_history_router

__all__ = ["full_history_router"]

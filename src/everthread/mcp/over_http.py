"""The same tools over HTTP, at `/mcp` of `everthread serve`: the key says whose history it is.

Each request stands alone, so that any process of the service can answer it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.fastmcp import Context
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from everthread.instance import Everthread
from everthread.mcp.server import History, mcp_server

PROJECT = "project"
"""The parameter of the address that names a folder: answers come from the sessions in it."""


class McpOverHttp:
    """The transport, as an ASGI app behind the service's authentication."""

    def __init__(self, et: Everthread) -> None:
        self._et = et
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Answer for as long as this is entered."""
        # Hosts and origins are checked by the service's authentication.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server = mcp_server(self._history, stateless_http=True, json_response=True, transport_security=security)
        server.streamable_http_app()  # makes the manager; its routes are not needed
        self._manager = server.session_manager
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager is not None, "the service runs it before it listens"
        await self._manager.handle_request(scope, receive, send)

    def _history(self, context: Context[Any, Any, Request]) -> History:
        request = context.request_context.request
        assert request is not None, "a tool is called by a request"
        return History(self._et, request.state.caller.owner, request.query_params.get(PROJECT))

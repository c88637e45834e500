"""Ids in addresses: any that a conversation may have, percent-encoded.

A server decodes an address before it is matched, so an id with a slash would fall apart. An encoded slash is hidden
from the routes as half of a surrogate pair, which no decoded address can hold, and shown again where an id is read.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_HIDDEN = "\udc2f"
_ENCODED = re.compile(rb"%2f", re.IGNORECASE)


class WholeIds:
    """The innermost door: only routes see hidden slashes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and _ENCODED.search(raw) is not None:
            await self._hiding(raw, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _hiding(self, raw: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """In a scope of its own: the server and the log write the address as it came."""
        parts = _ENCODED.split(raw.partition(b"?")[0])
        inner = {**scope, "path": _HIDDEN.join(unquote(part.decode("latin-1")) for part in parts)}
        try:
            await self._app(inner, receive, send)
        finally:
            scope["route"] = inner.get("route")


def shown(id: str) -> str:
    """An id as it was before it was hidden."""
    return id.replace(_HIDDEN, "/") if isinstance(id, str) else id


def in_address(id: str) -> str:
    """An id as an address has it."""
    return quote(id, safe="")

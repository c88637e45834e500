"""What browsers are told: guess no types, frame nothing, load nothing from elsewhere."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_ON_HTML = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        b"font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class SafeHeaders:
    """Adds them to each answer that does not set its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _with_safe(message.get("headers", []))}
            await send(message)

        await self._app(scope, receive, told if scope["type"] == "http" else send)


def _with_safe(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    present = {name.lower(): value for name, value in headers}
    is_html = present.get(b"content-type", b"").startswith(b"text/html")
    added = (*_ALWAYS, *(_ON_HTML if is_html else ()))
    return [*headers, *((name, value) for name, value in added if name not in present)]

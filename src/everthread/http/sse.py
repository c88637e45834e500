"""Server-sent events. The only module that touches a private part of sse-starlette.

`EventStreamResponse._send_with_timeout` overrides a private method, which saves an eighth of what a token costs: the
library starts and ends a timer around every write, though we set no `send_timeout`. To remove the trick, delete the
method; nothing else depends on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from sse_starlette import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

ENDS_BY_ITSELF = "stream_ends_by_itself"
"""The key in a scope's state that marks a stream with a last event."""


class EventStreamResponse(EventSourceResponse):
    """Sends events that are encoded already; the library adds pings and watches for disconnects and shutdown."""

    DEFAULT_PING_INTERVAL = 15
    """Seconds. Proxies give up on a silent connection after 30 to 60."""
    DEFAULT_SEPARATOR = "\n"

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        headers: Mapping[str, str] | None = None,
        *,
        ends_by_itself: bool = True,
        status_code: int = 200,  # FastAPI reads the default for the OpenAPI
    ) -> None:
        super().__init__(frames, status_code, headers)
        self._ends_by_itself = ends_by_itself

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[ENDS_BY_ITSELF] = self._ends_by_itself
        await super().__call__(scope, receive, send)

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        await send(message)


def encode_frame(event: str, data: bytes, id: str) -> bytes:
    """One event; `data` is JSON, so it has no line breaks."""
    return b"event: %b\ndata: %b\nid: %b\n\n" % (event.encode(), data, id.encode())


def is_event_stream(start: Message) -> bool:
    """Whether a response that begins is one."""
    return any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in start["headers"])


async def receive_until(ending: asyncio.Event, receive: Receive) -> Message:
    """The client's next message; once a stream is to end, a disconnect."""
    message, ended = asyncio.ensure_future(receive()), asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait((message, ended), return_when=asyncio.FIRST_COMPLETED)
        return message.result() if message.done() else {"type": "http.disconnect"}
    finally:
        message.cancel()
        ended.cancel()

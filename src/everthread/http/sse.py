"""Answers that go out event by event."""

from __future__ import annotations

from sse_starlette import EventSourceResponse
from starlette.types import Message, Send


class EventStreamResponse(EventSourceResponse):
    """Events that are written out already, each with its end."""

    DEFAULT_PING_INTERVAL = 15
    """How often a silent stream says that it lives: proxies give up after 30 to 60 seconds."""
    DEFAULT_SEPARATOR = "\n"

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        """Without a timer: none is asked for, and starting and ending one was an eighth of what a token cost."""
        await send(message)

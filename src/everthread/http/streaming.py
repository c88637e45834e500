"""Answers that go out event by event."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from sse_starlette import EventSourceResponse
from starlette.types import Message, Send

PING_SECONDS = 15
"""How often a silent stream says that it lives: proxies give up after 30 to 60 seconds."""


class EventStream(EventSourceResponse):
    """Events that are written out already, each with its end."""

    def __init__(self, frames: AsyncIterator[bytes], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(frames, headers=headers, ping=PING_SECONDS, sep="\n")

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        """Without a timer: none is asked for, and starting and ending one was an eighth of what a token cost."""
        await send(message)

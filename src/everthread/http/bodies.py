"""A request's body, read whole by a door, and then as if it came in only now."""

from __future__ import annotations

from starlette.types import Message, Receive


async def whole_body(receive: Receive) -> bytes:
    """All of it, or what came before the caller went away."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The same body for the next door; after it, what else comes in."""
    ahead: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal ahead
        if ahead is None:
            return await receive()
        message, ahead = ahead, None
        return message

    return replay

"""The same `Idempotency-Key`, the same response: a POST whose response was lost can be sent again.

- The same request again gets the stored response, with `Idempotent-Replayed: true`.
- Another request with the same key is refused (422), and so is a repeat while the first is still running (409).
- Only success is stored. A request that was refused changed nothing, so the next attempt counts as the first.
- An erase blanks the responses that may hold what was erased; their keys stay refused (409).

A response is stored before it is sent. Of a turn's stream only its head is: a turn keeps its own events, and the same
request again follows it, also while it runs. A new share link, whose secret is kept nowhere, is not stored: the same
request again makes another.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.errors import Erased, EverthreadError, KeyReused
from everthread.core.ids import check_id
from everthread.core.replies import Replies, Reply
from everthread.http.errors import HttpProblem, problem_response
from everthread.http.middleware import read_body, replay_body

_LOG = logging.getLogger("everthread.http")
LEASE_SECONDS = 10.0
"""After this time without a renewal, a request is taken to have died with its process."""
_RENEW_SECONDS = 3.0
_MAX_STORED_BYTES = 4 * 1024 * 1024
_NOT_STORED = ("/runs/stream", "/stream/events", "/demo/replay", "/share")
_CHAT_STREAM = "/api/v1/chat/stream"
_TURN_STREAMS = (_CHAT_STREAM, "/regenerate")
"""Where a stream is a turn's. Its id comes of the key, so the same request finds it again."""
_EVENTS = "text/event-stream"
_KEPT_HEADERS = (b"content-type", b"location", b"content-location")
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)")


class IdempotencyMiddleware:
    """Sends the stored response to a request that was answered before."""

    def __init__(self, app: ASGIApp, replies: Replies) -> None:
        self._app = app
        self._replies = replies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key") if scope["type"] == "http" else None
        caller = scope.get("state", {}).get("caller")
        if key is None or caller is None or scope["method"] != "POST" or scope["path"].endswith(_NOT_STORED):
            await self._app(scope, receive, send)
            return
        try:
            await self._respond(check_id(key, "Idempotency-Key"), caller.owner, scope, receive, send)
        except HttpProblem as problem:
            await problem.response()(scope, receive, send)
        except EverthreadError as problem:
            await problem_response(problem)(scope, receive, send)

    async def _respond(self, key: str, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        request = _hash(scope, body)
        stored = await self._replies.begin(owner, key, request, lease_seconds=LEASE_SECONDS)
        if stored is not None and not _is_followed(stored, request, scope["path"]):
            await _replay(stored, request)(scope, receive, send)
            return
        scope["state"]["idempotency_key"] = key
        if stored is not None and stored.status is not None:
            await self._app(scope, replay_body(body, receive), _say_replayed(send))
            return
        await self._handle(key, owner, request, scope, replay_body(body, receive), send, is_first=stored is None)

    async def _handle(
        self, key: str, owner: str, request: bytes, scope: Scope, receive: Receive, send: Send, *, is_first: bool
    ) -> None:
        """Handle a request and store its reply. One that is not the first with its key leaves the first its lease."""
        messages: list[Message] = []
        is_stored = False
        renewing = asyncio.create_task(self._renew(owner, key, request)) if is_first else None

        async def begin_stream(start: Message) -> None:
            nonlocal is_stored
            if scope["path"].endswith(_TURN_STREAMS):
                reply = _to_reply([start], request, scope["state"].get("conversation"))
                if reply is not None:
                    await self._replies.keep(owner, key, reply)
                    is_stored = True
            elif is_first:
                await self._replies.drop(owner, key, request)
            if renewing is not None:
                renewing.cancel()

        try:
            await self._app(scope, receive, _collect(messages, send, begin_stream))
            if (
                not is_stored
                and (reply := _to_reply(messages, request, scope["state"].get("conversation"))) is not None
            ):
                await self._replies.keep(owner, key, reply)
                is_stored = True
        finally:
            if renewing is not None:
                renewing.cancel()
            if is_first and not is_stored:
                await self._replies.drop(owner, key, request)
        for message in messages:
            await send(message)

    async def _renew(self, owner: str, key: str, request: bytes) -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                await self._replies.renew(owner, key, request, lease_seconds=LEASE_SECONDS)
            except EverthreadError as problem:  # the request itself may succeed all the same, and the next try too
                _LOG.warning("idempotency key not renewed: %s", problem)


def _hash(scope: Scope, body: bytes) -> bytes:
    """A hash of the whole request, without a form's boundary: clients draw a new one for each attempt."""
    kind = Headers(scope=scope).get("content-type", "")
    if (found := _BOUNDARY.search(kind)) is not None:
        body = body.replace(found[1].encode(), b"")
        kind = kind.partition(";")[0]
    parts = (scope["method"].encode(), scope["path"].encode(), scope["query_string"], kind.encode(), body)
    return sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()


def _is_followed(stored: Reply, request: bytes, path: str) -> bool:
    """Whether the request asks for the stream of a turn again, which the turn itself tells."""
    if stored.request != request:
        return False
    if stored.status is None:
        return path == _CHAT_STREAM
    headers: dict[str, str] = dict(orjson.loads(stored.headers))
    return headers.get("content-type", "").startswith(_EVENTS)


def _say_replayed(send: Send) -> Send:
    async def say(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(raw=message["headers"])["Idempotent-Replayed"] = "true"
        await send(message)

    return say


def _replay(stored: Reply, request: bytes) -> Response:
    if stored.is_erased:
        raise Erased("the response to this key was erased; use a new key for a new request")
    if stored.request != request:
        raise KeyReused("this key was already used with a different request", field="Idempotency-Key")
    if stored.status is None:
        raise HttpProblem(
            409,
            "still_running",
            "the first request with this key is still running",
            safe="The first request goes on, and this one stored nothing.",
            next_step="Wait a moment, then send the same request again.",
            retryable=True,
            headers={"Retry-After": "1"},
        )
    response = Response(stored.body, stored.status)
    for name, value in orjson.loads(stored.headers):
        response.headers[name] = value
    response.headers["Idempotent-Replayed"] = "true"
    return response


def _collect(messages: list[Message], send: Send, begin_stream: Callable[[Message], Awaitable[None]]) -> Send:
    """Hold a response back until it is stored. One that is too large to store goes out as it comes, and so does a
    stream, which is told of before."""
    size = 0
    is_stream = False

    async def collect(message: Message) -> None:
        nonlocal size, is_stream
        if message["type"] == "http.response.start" and _is_stream(message):
            is_stream = True
            await begin_stream(message)
        size += len(message.get("body", b""))
        messages.append(message)
        if is_stream or size > _MAX_STORED_BYTES:
            for one in messages:
                await send(one)
            messages.clear()

    return collect


def _is_stream(start: Message) -> bool:
    return Headers(raw=start.get("headers", [])).get("content-type", "").startswith(_EVENTS)


def _to_reply(messages: Sequence[Message], request: bytes, conversation: str | None) -> Reply | None:
    """What to store of a response; None for one that failed, or was too large and is gone already."""
    if not messages or messages[0]["type"] != "http.response.start" or messages[0]["status"] >= 400:
        return None
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in messages[0].get("headers", [])
        if name.lower() in _KEPT_HEADERS
    ]
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Reply(request, conversation, messages[0]["status"], orjson.dumps(headers), body, 0)

"""The same `Idempotency-Key`, the same answer: a POST whose answer was lost can be sent again.

- The same request again gets the stored answer, with `Idempotent-Replayed: true`.
- Another request with the key of an earlier one is refused (422), one whose first sending still runs too (409).
- Only success is stored. What was refused changed nothing, so the next attempt is a first one.
- An erase blanks the answers that may hold what was erased; their keys go on refusing (409).

An answer is stored before it is sent. Streams are not stored: a turn has its own memory of what it said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from everthread.core.errors import Erased, EverthreadError, KeyReused
from everthread.core.ids import check_id
from everthread.core.replies import Replies, Reply
from everthread.http.errors import HttpProblem, problem_response
from everthread.http.middleware import read_body, replay_body

LEASE_SECONDS = 120.0
"""A request that gave no answer for so long has died with its process."""
_MOST_BYTES = 4 * 1024 * 1024
_STREAMS = ("/stream", "/stream/events")
_KEPT_HEADERS = (b"content-type", b"location", b"content-location")
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)")


class IdempotencyMiddleware:
    """Gives the stored answer to a request that was answered before."""

    def __init__(self, app: ASGIApp, replies: Replies) -> None:
        self._app = app
        self._replies = replies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = Headers(scope=scope).get("idempotency-key") if scope["type"] == "http" else None
        caller = scope.get("state", {}).get("caller")
        if key is None or caller is None or scope["method"] != "POST" or scope["path"].endswith(_STREAMS):
            await self._app(scope, receive, send)
            return
        try:
            await self._answer(check_id(key, "Idempotency-Key"), caller.owner, scope, receive, send)
        except HttpProblem as problem:
            await problem.response()(scope, receive, send)
        except EverthreadError as problem:
            await problem_response(problem)(scope, receive, send)

    async def _answer(self, key: str, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        request = _hash(scope, body)
        stands = await self._replies.begin(owner, key, request, lease_seconds=LEASE_SECONDS)
        if stands is not None:
            await _again(stands, request)(scope, receive, send)
            return
        scope["state"]["idempotency_key"] = key
        made: list[Message] = []
        is_kept = False
        try:
            await self._app(scope, replay_body(body, receive), _gathered(made, send))
            if (reply := _reply(made, request, scope["state"].get("conversation"))) is not None:
                await self._replies.keep(owner, key, reply)
                is_kept = True
        finally:
            if not is_kept:
                await self._replies.drop(owner, key, request)
        for message in made:
            await send(message)


def _hash(scope: Scope, body: bytes) -> bytes:
    """Of all that is asked. The boundary of a form is drawn anew for each sending, and asks for nothing."""
    kind = Headers(scope=scope).get("content-type", "")
    if (found := _BOUNDARY.search(kind)) is not None:
        body = body.replace(found[1].encode(), b"")
        kind = kind.partition(";")[0]
    asked = (scope["method"].encode(), scope["path"].encode(), scope["query_string"], kind.encode(), body)
    return sha256(b"".join(len(part).to_bytes(8, "big") + part for part in asked)).digest()


def _again(stands: Reply, request: bytes) -> Response:
    if stands.is_erased:
        raise Erased("what this key was answered was erased; use a new key for a new request")
    if stands.request != request:
        raise KeyReused("this key came with another request before", field="Idempotency-Key")
    if stands.status is None:
        raise HttpProblem(
            409,
            "still_running",
            "the first request with this key is still being answered",
            next_step="Wait a moment, then send the same again.",
            retryable=True,
            headers={"Retry-After": "1"},
        )
    response = Response(stands.body, stands.status)
    for name, value in orjson.loads(stands.headers):
        response.headers[name] = value
    response.headers["Idempotent-Replayed"] = "true"
    return response


def _gathered(made: list[Message], send: Send) -> Send:
    """Holds an answer back until it is stored; one too large to store goes out as it comes."""
    size = 0

    async def gathered(message: Message) -> None:
        nonlocal size
        size += len(message.get("body", b""))
        made.append(message)
        if size > _MOST_BYTES:
            for one in made:
                await send(one)
            made.clear()

    return gathered


def _reply(made: Sequence[Message], request: bytes, conversation: str | None) -> Reply | None:
    """What is to be stored of an answer; None for one that failed, or that is gone already."""
    if not made or made[0]["type"] != "http.response.start" or made[0]["status"] >= 400:
        return None
    headers = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in made[0].get("headers", [])
        if name.lower() in _KEPT_HEADERS
    ]
    body = b"".join(message.get("body", b"") for message in made[1:])
    return Reply(request, conversation, made[0]["status"], orjson.dumps(headers), body, 0)

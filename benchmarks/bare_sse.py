"""What a service would cost that keeps nothing: sse-starlette with the events of a turn, as most apps write them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from benchmarks.served import CHAT

_ID = "019a8a3c-7c3e-7d5e-9f00-5b1c2d3e4f50"
_PIECE = "a token "


class _Server(uvicorn.Server):
    """Tells where it listens, as `everthread serve --json` does."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(json.dumps({"listening": f"http://{host}:{port}"}), flush=True)


Told = tuple[str, dict[str, Any]]


def _turn(conversation: str, tokens: int) -> list[Told]:
    """The events of a turn of our agent."""
    ids = {"turn_id": _ID, "conversation_id": conversation, "question_id": _ID, "answer_id": _ID, "question_seq": 1}
    before: list[Told] = [
        ("state", {"node": node, "loops": 0, "details": {}}) for node in ("route", "retrieve", "recall")
    ]
    pieces: list[Told] = [("token", {"text": _PIECE, "message_id": _ID})] * tokens
    after: list[Told] = [
        ("state", {"node": node, "loops": 1, "details": {}}) for node in ("plan", "finalize", "persist")
    ]
    done = {"state": "complete", "answer_id": _ID, "text": _PIECE * tokens, "usage": {}, "loops": 1}
    return [("accepted", ids), *before, *pieces, *after, ("done", done)]


def main(tokens: int) -> None:
    """Serve until killed."""

    async def chat(request: Request) -> EventSourceResponse:
        asked = await request.json()

        async def told() -> AsyncIterator[dict[str, Any]]:
            for number, (event, data) in enumerate(_turn(asked["conversation_id"], tokens), 1):
                yield {"id": str(number), "event": event, "data": json.dumps(data, separators=(",", ":"))}
                await asyncio.sleep(0)  # as after a piece of a model that never makes it wait

        return EventSourceResponse(told(), sep="\n")

    app = Starlette(routes=[Route(CHAT, chat, methods=["POST"])])
    _Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none", lifespan="off")).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The floor: a bare ASGI app that streams as many events of the same size, with no turn, no JSON and no database."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvicorn

_EVENT = b'id: %d\nevent: token\ndata: {"text":"a token ","message_id":"019a8a3c-7c3e-7d5e-9f00-5b1c2d3e4f50"}\n\n'


class _Server(uvicorn.Server):
    """Tells where it listens, as `everthread serve --json` does."""

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        print(json.dumps({"listening": f"http://{host}:{port}"}), flush=True)


def main(tokens: int, pace_seconds: float) -> None:
    """Serve until killed."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        head = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(head)
        for number in range(tokens):
            await send({"type": "http.response.body", "body": _EVENT % number, "more_body": True})
            await asyncio.sleep(pace_seconds)
        await send({"type": "http.response.body", "body": b"event: done\ndata: {}\n\n", "more_body": False})

    _Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, ws="none", lifespan="off")).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))

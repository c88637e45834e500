"""A server that speaks OpenAI's `/v1/chat/completions`, with streams, as Ollama, vLLM or llama.cpp do: real HTTP on
loopback, answering by a list of what to do next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """An answer, streamed."""

    pieces: Sequence[str] = ()
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    input_tokens: int = 100
    hang_after: int | None = None
    """After so many pieces nothing more comes."""
    break_after: int | None = None
    """After so many pieces the connection breaks off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """A failure, as OpenAI writes one."""

    status: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Provider:
    """What it does next, and what it was asked."""

    steps: list[Says | Fails]
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)

    def app(self) -> FastAPI:
        app = FastAPI()
        app.post("/v1/chat/completions", response_model=None)(self.complete)
        return app

    async def complete(self, request: Request) -> Response:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("authorization", ""))
        self.asked_at.append(asyncio.get_running_loop().time())
        step = self.steps.pop(0)
        if isinstance(step, Fails):
            return JSONResponse({"error": {"message": step.message}}, step.status, dict(step.headers))
        if not self.asked[-1].get("stream"):
            return JSONResponse(_whole(step))
        return StreamingResponse(self._lines(step), media_type="text/event-stream")

    async def _lines(self, step: Says) -> AsyncIterator[str]:
        for number, piece in enumerate([*step.pieces, None]):
            if number == step.hang_after:
                await asyncio.sleep(3600)
            if number == step.break_after:
                raise ConnectionResetError("the line breaks")
            if piece is not None:
                yield _line({"role": "assistant", "content": piece})
        for index, (name, args) in enumerate(step.calls):
            function = {"name": name, "arguments": ""}
            yield _line({"tool_calls": [{"index": index, "id": f"call_{index}", "function": function}]})
            for part in _halves(json.dumps(args)):
                yield _line({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield _line({}, finish="tool_calls" if step.calls else "stop")
        if (self.asked[-1].get("stream_options") or {}).get("include_usage"):
            yield _data({"choices": [], "usage": _usage(step)})
        yield "data: [DONE]\n\n"


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _usage(step: Says) -> dict[str, int]:
    output = len(step.pieces) + 5 * len(step.calls)
    return {
        "prompt_tokens": step.input_tokens,
        "completion_tokens": output,
        "total_tokens": step.input_tokens + output,
    }


def _whole(step: Says) -> dict[str, Any]:
    message = {"role": "assistant", "content": "".join(step.pieces)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": _usage(step)}


def _line(delta: Mapping[str, Any], finish: str | None = None) -> str:
    return _data({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _data(chunk: Mapping[str, Any]) -> str:
    return f"data: {json.dumps({'id': 'c1', 'object': 'chat.completion.chunk', 'model': 'm', **chunk})}\n\n"

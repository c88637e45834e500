"""What the page asks first: the server and the caller; and a demo conversation for a database without any."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal, Protocol

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import MissingExtra
from everthread.http.dependencies import CallerDep, EverthreadDep
from everthread.http.errors import problem_responses
from everthread.http.model_names import configured_models
from everthread.http.responses import JsonResponse
from everthread.http.sse import EventStreamResponse, encode_frame
from everthread.http.v1.chat import EVENT_STREAM
from everthread.http.v1.schemas import ConversationOut, conversation_out
from everthread.instance import Everthread

router = APIRouter(tags=["about"])


class ReplayedStep(Protocol):
    """What has happened in a replay."""

    @property
    def kind(self) -> str: ...

    @property
    def details(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What the page shows to somebody who has nothing yet."""

    load: Callable[[Everthread, str], Awaitable[Conversation]]
    """Gives an owner the demo conversation."""
    replay: Callable[[Everthread, str], AsyncIterator[ReplayedStep]]
    """Writes one while the owner watches."""


class About(BaseModel):
    """The server, and who you are to it."""

    version: str
    owner: str
    is_admin: bool = Field(description="Whether you may see and change what concerns all owners.")
    via: Literal["local", "key", "token"] = Field(description="How the server knows you.")
    model: str | None = Field(description="The model that answers; null for the small one on the server's own machine.")
    is_toy_model: bool
    models: list[str] = Field(description="The models that are set, the one that answers first.")


@router.get("/about", response_model=About)
async def about(request: Request, caller: CallerDep) -> Response:
    """The model that answers, and the owner you are."""
    settings = request.app.state.settings
    body = {
        "version": version("everthread"),
        "owner": caller.owner,
        "is_admin": caller.is_admin,
        "via": caller.via,
        "model": settings.model,
        "is_toy_model": settings.model is None,
        "models": configured_models(settings),
    }
    return JsonResponse(body)


@router.post("/demo", status_code=201, response_model=ConversationOut, responses=problem_responses(501))
async def load_demo(request: Request, et: EverthreadDep, caller: CallerDep) -> Response:
    """A long conversation to look at: created unless you have it already."""
    return JsonResponse(conversation_out(await _demo(request).load(et, caller.owner)), 201)


@router.post("/demo/replay", responses=EVENT_STREAM | problem_responses(501), response_class=EventStreamResponse)
async def replay_demo(request: Request, et: EverthreadDep, caller: CallerDep) -> Response:
    """Write a demo conversation while you watch: an event for every step. Disconnecting stops it there."""
    return EventStreamResponse(_frames(_demo(request).replay(et, caller.owner)))


async def _frames(steps: AsyncIterator[ReplayedStep]) -> AsyncIterator[bytes]:
    number = 0
    async for step in steps:
        number += 1
        yield encode_frame(step.kind, json.dumps(step.details).encode(), str(number))


def _demo(request: Request) -> Demo:
    demo: Demo | None = request.app.state.demo
    if demo is None:
        raise MissingExtra("this server has no demo conversation")
    return demo

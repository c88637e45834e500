"""What a page wants to know before it shows anything, and something to show where there is nothing yet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import MissingExtra
from everthread.http.dependencies import CallerDep, EverthreadDep
from everthread.http.errors import problem_responses
from everthread.http.responses import JsonResponse
from everthread.http.v1.schemas import ConversationOut, conversation_out
from everthread.instance import Everthread

router = APIRouter(tags=["about"])

LoadDemo = Callable[[Everthread, str], Awaitable[Conversation]]
"""Gives an owner the demo conversation."""


class About(BaseModel):
    """This server, and who you are to it."""

    version: str
    owner: str
    model: str | None = Field(description="The model that answers; null: the small one on the server's own machine.")
    is_toy_model: bool


@router.get("/about", response_model=About)
async def about(request: Request, caller: CallerDep) -> Response:
    """What answers here, and as whom you ask."""
    model = request.app.state.settings.model
    shown = {"version": version("everthread"), "owner": caller.owner, "model": model, "is_toy_model": model is None}
    return JsonResponse(shown)


@router.post("/demo", status_code=201, response_model=ConversationOut, responses=problem_responses(501))
async def load_demo(request: Request, et: EverthreadDep, caller: CallerDep) -> Response:
    """A long conversation to look at: made if you have none, else the one you have."""
    load: LoadDemo | None = request.app.state.load_demo
    if load is None:
        raise MissingExtra("this server has no demo conversation to give")
    return JsonResponse(conversation_out(await load(et, caller.owner)), 201)

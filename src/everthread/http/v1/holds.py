"""Legal holds: what must not be erased. For admins only, because whose text it is may want it gone."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.history.holds import MAX_REASON_CHARACTERS
from everthread.http.dependencies import AdminDep, ConversationId, EverthreadDep, PathId, RequestModel
from everthread.http.responses import JsonResponse

router = APIRouter(tags=["maintenance"], prefix="/holds")


class NewHold(RequestModel):
    """What is not to be erased, and why."""

    owner: str = Field(min_length=1, max_length=MAX_ID_CHARACTERS)
    conversation_id: ConversationId | None = Field(default=None, description="null for everything of the owner.")
    reason: str = Field(min_length=1, max_length=MAX_REASON_CHARACTERS)


class HoldOut(BaseModel):
    """A hold. Its record stays when it is released."""

    id: str
    owner: str
    conversation_id: str | None
    reason: str
    held_by: str = Field(description="The id of the admin key, or whom the token speaks for.")
    held_at: datetime
    released_by: str | None
    released_at: datetime | None


class HoldsOut(BaseModel):
    """Holds, newest first."""

    items: list[HoldOut]


@router.get("", response_model=HoldsOut)
async def list_holds(
    et: EverthreadDep,
    admin: AdminDep,
    owner: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
    released: Annotated[bool, Query(description="Whether to list released ones too.")] = False,
) -> Response:
    """The legal holds on what any owner has."""
    found = await et.holds.list(owner, include_released=released)
    return JsonResponse({"items": [asdict(one) for one in found]})


@router.post("", status_code=201, response_model=HoldOut)
async def add_hold(et: EverthreadDep, admin: AdminDep, new: NewHold) -> Response:
    """Refuse every erase of a conversation, or of anything of an owner, until the hold is released."""
    by = admin.key_id or admin.owner
    made = await et.holds.add(new.owner, new.conversation_id, reason=new.reason, by=by)
    return JsonResponse(asdict(made), 201)


@router.post("/{hold_id}/release", response_model=HoldOut)
async def release_hold(hold_id: PathId, et: EverthreadDep, admin: AdminDep) -> Response:
    """Let go. The record of the hold stays."""
    return JsonResponse(asdict(await et.holds.release(hold_id, by=admin.key_id or admin.owner)))

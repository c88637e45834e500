"""Branches: every way that a conversation went."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from everthread.conversation import MAX_TITLE_CHARACTERS
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http.asking import Body, Id, Named
from everthread.http.json import Json
from everthread.http.v1.messages import MAX_SEQ
from everthread.http.v1.shapes import Branches, BranchOut, ConversationOut, branch_out, conversation_out

router = APIRouter(tags=["branches"], prefix="/conversations/{conversation_id}")


class Fork(Body):
    """Where another way begins."""

    at_seq: int = Field(ge=0, le=MAX_SEQ, description="The last message that it shares; 0: none.")
    activate: bool = False


class Copy(Body):
    """What the copy is called."""

    id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARACTERS)


@router.get("/branches", response_model=Branches)
async def list_branches(conversation: Named) -> Response:
    """Every branch, oldest first."""
    return Json({"items": [branch_out(one) async for one in conversation.branches()]})


@router.post("/fork", status_code=201, response_model=BranchOut)
async def fork(conversation: Named, where: Fork) -> Response:
    """A new branch that shares everything up to a message."""
    return Json(branch_out(await conversation.fork(where.at_seq, activate=where.activate)), 201)


@router.put("/branches/{branch_id}/active", response_model=BranchOut)
async def activate_branch(conversation: Named, branch_id: Id) -> Response:
    """Show and extend this branch when no other is named."""
    return Json(branch_out(await conversation.set_active(branch_id)))


@router.post("/copy", status_code=201, response_model=ConversationOut)
async def copy_conversation(conversation: Named, new: Copy, request: Request) -> Response:
    """A new conversation with entries of its own: the same messages, revisions, marks and branches."""
    made = await conversation.copy(id=new.id, title=new.title)
    request.state.conversation = None  # it speaks of both: an erase of either is to reach this answer
    return Json(conversation_out(made), 201)

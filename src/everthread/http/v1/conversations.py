"""Conversations: create, list, update, delete, restore, copy; and their branches."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.ports import ListOrder
from everthread.history.arguments import MAX_TITLE_CHARACTERS
from everthread.http.dependencies import (
    CallerDep,
    ConversationDep,
    ConversationId,
    Cursor,
    EverthreadDep,
    Limit,
    PathId,
    RequestModel,
)
from everthread.http.responses import JsonResponse
from everthread.http.v1.messages import MAX_SEQ
from everthread.http.v1.schemas import (
    Branches,
    BranchOut,
    ConversationOut,
    ConversationPage,
    branch_out,
    conversation_out,
)

router = APIRouter(tags=["conversations"])
branch_router = APIRouter(tags=["branches"], prefix="/conversations/{conversation_id}")

Title = Annotated[str | None, Field(max_length=MAX_TITLE_CHARACTERS)]
ParentId = Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)]


class NewConversationIn(RequestModel):
    """A conversation to create."""

    id: ConversationId | None = None
    title: Title = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    parent_id: ConversationId | None = None
    off_record: bool = Field(default=False, description="Not indexed, and erased when the server stops.")


class ConversationChanges(RequestModel):
    """The fields to set; the others stay as they are."""

    title: Title = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    is_active: bool = True


@router.post("/conversations", status_code=201, response_model=ConversationOut)
async def create_conversation(
    new: NewConversationIn, et: EverthreadDep, caller: CallerDep, request: Request
) -> Response:
    """Create a conversation; 409 if you have one with this id."""
    created = await et.conversations.create(
        owner=caller.owner,
        id=new.id,
        title=new.title,
        metadata=new.metadata,
        parent_id=new.parent_id,
        off_record=new.off_record,
    )
    request.state.conversation = created.id
    return JsonResponse(conversation_out(created), 201)


@router.get("/conversations", response_model=ConversationPage)
async def list_conversations(
    et: EverthreadDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    include_deleted: bool = False,
    parent_id: ParentId = None,
    order: Annotated[
        ListOrder, Query(description="By their creation, or by when something was said last.")
    ] = "created",
) -> Response:
    """Your conversations, newest first."""
    page = await et.conversations.list(
        caller.owner, limit=limit, cursor=cursor, include_deleted=include_deleted, parent_id=parent_id, order=order
    )
    return JsonResponse({"items": [conversation_out(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/conversations/{conversation_id}", response_model=ConversationOut)
async def get_conversation(conversation: ConversationDep) -> Response:
    """One conversation, deleted or not."""
    return JsonResponse(conversation_out(conversation))


@router.patch("/conversations/{conversation_id}", response_model=ConversationOut)
async def update_conversation(conversation: ConversationDep, changes: ConversationChanges) -> Response:
    """Set the title, the metadata, or whether it is active."""
    given = changes.model_fields_set
    changed = await conversation.update(
        title=changes.title if "title" in given else ...,
        metadata=changes.metadata if "metadata" in given else ...,
        is_active=changes.is_active if "is_active" in given else ...,
    )
    return JsonResponse(conversation_out(changed))


@router.delete("/conversations/{conversation_id}", response_model=ConversationOut)
async def delete_conversation(conversation: ConversationDep) -> Response:
    """Hide it from lists and searches. Nothing is removed: restore undoes it; only erase destroys."""
    return JsonResponse(conversation_out(await conversation.delete()))


@router.post("/conversations/{conversation_id}/restore", response_model=ConversationOut)
async def restore_conversation(conversation: ConversationDep) -> Response:
    """Undo a delete."""
    return JsonResponse(conversation_out(await conversation.restore()))


@router.get("/conversations/{conversation_id}/children", response_model=ConversationPage)
async def list_children(
    conversation: ConversationDep, et: EverthreadDep, caller: CallerDep, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The conversations of its subagents, newest first."""
    page = await et.conversations.list(caller.owner, limit=limit, cursor=cursor, parent_id=conversation.id)
    return JsonResponse({"items": [conversation_out(one) for one in page.items], "next_cursor": page.next_cursor})


class Fork(RequestModel):
    """Where a new branch begins."""

    at_seq: int = Field(ge=0, le=MAX_SEQ, description="The last message that both share; 0 for none.")
    activate: bool = False


class CopyRequest(RequestModel):
    """The id and title of the copy."""

    id: ConversationId | None = None
    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARACTERS)


@branch_router.get("/branches", response_model=Branches)
async def list_branches(conversation: ConversationDep) -> Response:
    """Every branch, oldest first."""
    return JsonResponse({"items": [branch_out(one) async for one in conversation.branches()]})


@branch_router.post("/fork", status_code=201, response_model=BranchOut)
async def fork(conversation: ConversationDep, where: Fork) -> Response:
    """A new branch that shares everything up to a message."""
    return JsonResponse(branch_out(await conversation.fork(where.at_seq, activate=where.activate)), 201)


@branch_router.put("/branches/{branch_id}/active", response_model=BranchOut)
async def activate_branch(conversation: ConversationDep, branch_id: PathId) -> Response:
    """Make this the branch that is read and extended by default."""
    return JsonResponse(branch_out(await conversation.set_active(branch_id)))


@branch_router.post("/copy", status_code=201, response_model=ConversationOut)
async def copy_conversation(conversation: ConversationDep, new: CopyRequest, request: Request) -> Response:
    """A new conversation with the same messages, revisions, marks and branches."""
    copied = await conversation.copy(id=new.id, title=new.title)
    request.state.conversation = None  # the response shows both: an erase of either must reach a stored one
    return JsonResponse(conversation_out(copied), 201)

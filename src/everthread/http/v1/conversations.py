"""Conversations: made, listed, renamed, put aside and brought back."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from everthread.conversation import MAX_TITLE_CHARACTERS, UNSET
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http.asking import Asker, Body, Cursor, Et, Limit, Named
from everthread.http.json import Json
from everthread.http.v1.shapes import ConversationOut, ConversationPage, conversation_out

router = APIRouter(tags=["conversations"])

Title = Annotated[str | None, Field(max_length=MAX_TITLE_CHARACTERS)]
ParentId = Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)]


class NewConversationIn(Body):
    """What a conversation starts with."""

    id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    title: Title = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    parent_id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    off_record: bool = Field(default=False, description="Indexed nowhere, and erased when the server stops.")


class ConversationChanges(Body):
    """What is to be set; what is left out stays."""

    title: Title = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    is_active: bool = True


@router.post("/conversations", status_code=201, response_model=ConversationOut)
async def create_conversation(new: NewConversationIn, et: Et, caller: Asker, request: Request) -> Response:
    """Make a conversation; 409 when you have one by this id."""
    made = await et.conversations.create(
        owner=caller.owner,
        id=new.id,
        title=new.title,
        metadata=new.metadata,
        parent_id=new.parent_id,
        off_record=new.off_record,
    )
    request.state.conversation = made.id
    return Json(conversation_out(made), 201)


@router.get("/conversations", response_model=ConversationPage)
async def list_conversations(
    et: Et,
    caller: Asker,
    limit: Limit = 50,
    cursor: Cursor = None,
    include_deleted: bool = False,
    parent_id: ParentId = None,
) -> Response:
    """Your conversations, the newest first."""
    page = await et.conversations.list(
        caller.owner, limit=limit, cursor=cursor, include_deleted=include_deleted, parent_id=parent_id
    )
    return Json({"items": [conversation_out(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/conversations/{conversation_id}", response_model=ConversationOut)
async def get_conversation(conversation: Named) -> Response:
    """One conversation, deleted or not."""
    return Json(conversation_out(conversation))


@router.patch("/conversations/{conversation_id}", response_model=ConversationOut)
async def update_conversation(conversation: Named, changes: ConversationChanges) -> Response:
    """Set a title, metadata, or whether it is active."""
    given = changes.model_fields_set
    changed = await conversation.update(
        title=changes.title if "title" in given else UNSET,
        metadata=changes.metadata if "metadata" in given else UNSET,
        is_active=changes.is_active if "is_active" in given else UNSET,
    )
    return Json(conversation_out(changed))


@router.delete("/conversations/{conversation_id}", response_model=ConversationOut)
async def delete_conversation(conversation: Named) -> Response:
    """Take it out of lists and searches. Nothing is removed: restore brings it back, only erase destroys."""
    return Json(conversation_out(await conversation.delete()))


@router.post("/conversations/{conversation_id}/restore", response_model=ConversationOut)
async def restore_conversation(conversation: Named) -> Response:
    """Undo a delete."""
    return Json(conversation_out(await conversation.restore()))


@router.get("/conversations/{conversation_id}/children", response_model=ConversationPage)
async def list_children(
    conversation: Named, et: Et, caller: Asker, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The conversations of its subagents, the newest first."""
    page = await et.conversations.list(caller.owner, limit=limit, cursor=cursor, parent_id=conversation.id)
    return Json({"items": [conversation_out(one) for one in page.items], "next_cursor": page.next_cursor})

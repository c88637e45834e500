"""Feedback: what a person thinks of an answer, with a reason if they gave one.

It is kept in the conversation's metadata, with the turn that gave the answer: so backups, archives and JSON exports
have it, and `verify` covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field, StringConstraints
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.http.dependencies import ConversationDep, PathId, RequestModel
from everthread.http.responses import JsonResponse

router = APIRouter(tags=["messages"], prefix="/conversations/{conversation_id}")

_KEY: Final = "feedback"
"""In the metadata: by the id of the message."""
MAX_REASON_CHARACTERS: Final = 2_000
_TURNS_READ: Final = 1_000
"""An answer of a turn before these is kept without its turn."""


class NewFeedback(RequestModel):
    """What the person thinks of an answer."""

    rating: Literal["good", "bad"]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON_CHARACTERS)] | None = None


class FeedbackOut(BaseModel):
    """Feedback on one answer."""

    message_id: str
    turn_id: str | None = Field(description="The turn that gave the answer; null for a message that no turn wrote.")
    rating: str
    reason: str | None
    given_at: datetime


class FeedbackList(BaseModel):
    """All feedback in a conversation, oldest first."""

    items: list[FeedbackOut]


class FeedbackRemoved(BaseModel):
    """Whether there was any."""

    removed: bool


@router.get("/feedback", response_model=FeedbackList)
async def list_feedback(conversation: ConversationDep) -> Response:
    """What was thought of this conversation's answers."""
    return JsonResponse({"items": [{"message_id": id, **one} for id, one in _feedback(conversation).items()]})


@router.put("/messages/{message_id}/feedback", response_model=FeedbackOut)
async def give_feedback(conversation: ConversationDep, message_id: PathId, new: NewFeedback) -> Response:
    """Say what you think of an answer; it takes the place of what you said before."""
    message = await conversation.message(message_id)
    if message.role != "assistant":
        raise Invalid("only an answer can be rated", field="message_id")
    given = {
        "turn_id": await _turn_of(conversation, message_id),
        "rating": new.rating,
        "reason": new.reason or None,
        "given_at": datetime.now(UTC).isoformat(),
    }
    others = {id: one for id, one in _feedback(conversation).items() if id != message_id}
    await conversation.update(metadata={**conversation.metadata, _KEY: {**others, message_id: given}})
    return JsonResponse({"message_id": message_id, **given})


@router.delete("/messages/{message_id}/feedback", response_model=FeedbackRemoved)
async def remove_feedback(conversation: ConversationDep, message_id: PathId) -> Response:
    """Take back what you said of an answer."""
    given = _feedback(conversation)
    if message_id in given:
        others = {id: one for id, one in given.items() if id != message_id}
        await conversation.update(metadata={**conversation.metadata, _KEY: others})
    return JsonResponse({"removed": message_id in given})


def _feedback(conversation: Conversation) -> Mapping[str, dict[str, Any]]:
    """What is of another shape is the caller's own data, and not feedback."""
    kept = conversation.metadata.get(_KEY)
    fields = FeedbackOut.model_fields.keys() - {"message_id"}
    found = kept.items() if isinstance(kept, dict) else ()
    return {id: one for id, one in found if isinstance(one, dict) and one.keys() == fields}


async def _turn_of(conversation: Conversation, message_id: str) -> str | None:
    turns = await conversation.turns(limit=_TURNS_READ)
    return next((turn.id for turn in turns if turn.answer_id == message_id), None)

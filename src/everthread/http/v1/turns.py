"""Turns: the state of an answer, its stream, how to cancel it, and exactly what the model saw."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core.errors import Invalid, NotFound
from everthread.core.turns import MESSAGE_KEY, Turn, TurnState
from everthread.http.dependencies import ConversationDep, Limit, PathId, TurnServiceDep
from everthread.http.responses import JsonResponse
from everthread.http.sse import EventStreamResponse
from everthread.http.v1.chat import EVENT_STREAM, stream_response
from everthread.http.v1.context import OmittedOut, PartOut, PieceOut, context_out, messages_out

router = APIRouter(tags=["turns"], prefix="/conversations/{conversation_id}/turns")


class TurnOut(BaseModel):
    """One question, and the state of its answer."""

    id: str
    number: int
    state: TurnState
    is_complete: bool
    kind: str
    model: str | None
    question_id: str
    question_seq: int | None
    answer_id: str
    error: str | None
    usage: dict[str, int]
    received_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class TurnPage(BaseModel):
    """Turns, newest first."""

    items: list[TurnOut]
    next_before: int | None = Field(description="`before` for the next page; null on the last one.")


class SeenRequest(BaseModel):
    """A request that was sent to a model, rendered again from the log."""

    manifest_id: str
    is_same: bool = Field(description="Whether it is byte for byte what was sent.")
    erased: list[int] = Field(description="Seqs of messages that were in it and have been erased since.")
    tokens: int
    limit: int
    usage_percent: float
    wanted_tokens: int
    parts: list[PartOut]
    omitted: list[OmittedOut]
    messages: list[dict[str, Any]]
    message_tokens: list[int] = Field(description="The tokens of each message.")
    pieces: list[PieceOut] = Field(description="Where each message and quotation comes from.")


class SeenRequests(BaseModel):
    """Exactly what models saw in a turn, request by request."""

    turn_id: str
    requests: list[SeenRequest]


def turn_out(turn: Turn) -> dict[str, Any]:
    fields = {name: getattr(turn, name) for name in TurnOut.model_fields}
    return {**fields, "state": turn.state.value}


@router.get("", response_model=TurnPage)
async def list_turns(
    conversation: ConversationDep,
    limit: Limit = 50,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only turns with a smaller number.")] = None,
) -> Response:
    """The turns of a conversation, newest first."""
    page = await conversation.turns(cursor=None if before is None else str(before), limit=limit)
    next_before = None if page.next_cursor is None else int(page.next_cursor)
    return JsonResponse({"items": [turn_out(turn) for turn in page], "next_before": next_before})


@router.get("/{turn_id}", response_model=TurnOut)
async def get_turn(conversation: ConversationDep, turn_id: PathId) -> Response:
    """The state of a turn."""
    return JsonResponse(turn_out(await conversation.turn(turn_id)))


@router.get("/{turn_id}/context", response_model=SeenRequests)
async def get_turn_context(conversation: ConversationDep, turn_id: PathId) -> Response:
    """Exactly what models saw in a turn."""
    turn = await conversation.turn(turn_id)
    answer = await conversation.message(turn.answer_id)
    extra = answer.payload.get("additional_kwargs")
    kept = extra.get(MESSAGE_KEY) if isinstance(extra, dict) else None
    manifests = kept.get("manifests", []) if isinstance(kept, dict) else []
    if not manifests:
        raise NotFound(f"no stored requests for turn {turn_id!r}")
    requests = []
    for manifest in manifests:
        seen = await conversation.seen_context(manifest)
        context = {**context_out(seen.context), **messages_out(seen.context)}
        requests.append({"manifest_id": manifest, "is_same": seen.is_same, "erased": list(seen.erased), **context})
    return JsonResponse({"turn_id": turn_id, "requests": requests})


@router.post("/{turn_id}/cancel", response_model=TurnOut)
async def cancel_turn(conversation: ConversationDep, turn_id: PathId, turns: TurnServiceDep) -> Response:
    """Cancel a turn, wherever it runs; the partial answer is kept. A turn that has ended stays as it is."""
    await conversation.turn(turn_id)
    return JsonResponse(turn_out(await turns.stop(conversation, turn_id)))


@router.get("/{turn_id}/stream", responses=EVENT_STREAM, response_class=EventStreamResponse)
async def follow_turn(
    conversation: ConversationDep,
    turn_id: PathId,
    turns: TurnServiceDep,
    last_event_id: Annotated[str | None, Header(max_length=32, description="The last event you have received.")] = None,
) -> Response:
    """A turn's events from the first, or after `Last-Event-ID`, to its end; also of a turn that has ended."""
    await conversation.turn(turn_id)
    if last_event_id and not (last_event_id.isascii() and last_event_id.isdigit()):
        raise Invalid("must be the number of an event", field="Last-Event-ID")
    return stream_response(turns, conversation, turn_id, after=int(last_event_id or 0))

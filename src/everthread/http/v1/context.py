"""The context: what a model would see of a conversation now, and how full that is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.context.assemble import Context
from everthread.context.budget import Budget, changed_budget
from everthread.context.tokens import message_tokens
from everthread.conversation import Conversation
from everthread.core.errors import EverthreadError, MissingExtra
from everthread.history.arguments import check_branch
from everthread.http.dependencies import ConversationDep, TurnServiceDep
from everthread.http.model_names import check_model
from everthread.http.responses import JsonResponse
from everthread.http.turn_service import TurnService
from everthread.http.v1.messages import BranchParameter
from everthread.models import AnsweringModel, answering_model
from everthread.turn.listing import AgentPart, agent_part
from everthread.turn.request import TurnOptions

router = APIRouter(tags=["context"], prefix="/conversations/{conversation_id}")

ModelName = Annotated[
    str | None, Query(max_length=300, description="The model that is to answer; by default the one that is set.")
]
Window = Annotated[
    int | None,
    Query(ge=1, le=100_000_000, description="A context window, in tokens; by default that of the model."),
]
Reserve = Annotated[int | None, Query(ge=0, le=100_000_000, description="Tokens kept free for the answer.")]
Factor = Annotated[float | None, Query(ge=0.5, le=4.0, description="The model's tokens per token of our count.")]


class PartOut(BaseModel):
    """One part of the request."""

    kind: str
    tokens: int
    seqs: list[int] = Field(description="The messages that it shows or comes from.")
    summary_ids: list[str]
    memory_ids: list[str]
    exact: bool = Field(description="Whether the count is the model's own, not an estimate.")


class OmittedOut(BaseModel):
    """A message, or a range of them, that the model does not see."""

    seq: int
    last_seq: int | None = Field(description="The end of a range; null for a single message.")
    reason: str
    memory_id: str | None = Field(default=None, description="The memory that is left out, where it is one.")


class PieceOut(BaseModel):
    """A piece of the request, and where it comes from."""

    message: int = Field(description="Which message of the request it is in, from 0.")
    kind: str
    tokens: int
    seqs: list[int] = Field(description="The messages that it is or comes from; of a summary the first and the last.")
    summary_ids: list[str]
    memory_id: str | None
    form: str = Field(description="`whole`, `in_part`, or `merged`: several summaries shortened into one text.")
    text: str | None = Field(description="The quotation; null where the piece is the whole message.")


class Gauge(BaseModel):
    """How full a request would be, part by part."""

    model: str | None = Field(description="The model that the figures are for; null where a window was given instead.")
    exact: bool = Field(description="Whether the count is the model's own, not an estimate.")
    tokens: int
    limit: int = Field(description="The most tokens a request may have.")
    usage_percent: float
    mark_tokens: int = Field(description="Where compaction begins.")
    due: str | None = Field(description="Why a compaction is due now, if one is.")
    uncovered: int = Field(description="Messages that no summary covers.")
    wanted_tokens: int = Field(description="The tokens with nothing shortened or left out.")
    window: int
    output_reserve: int
    parts: list[PartOut]
    omitted: list[OmittedOut]
    messages: list[dict[str, Any]] | None = Field(default=None, description="The request itself, where requested.")
    message_tokens: list[int] | None = Field(default=None, description="The tokens of each message.")
    pieces: list[PieceOut] | None = Field(default=None, description="Where each message and quotation comes from.")


@router.get("/context", response_model=Gauge)
async def get_context(
    conversation: ConversationDep,
    turns: TurnServiceDep,
    request: Request,
    model: ModelName = None,
    window: Window = None,
    reserve: Reserve = None,
    factor: Factor = None,
    branch: BranchParameter = None,
    question: Annotated[
        str | None, Query(max_length=10_000, description="As if this was asked now, with what it recalls.")
    ] = None,
    messages: Annotated[bool, Query(description="Whether to include the request itself.")] = False,
    sent_as: Annotated[
        Literal["turn"] | None,
        Query(alias="as", description="`turn`: with the system prompt and the tools of the agent's next turn."),
    ] = None,
) -> Response:
    """What a model would see now, and how full that is, for the model that answers: the conversation alone, or with
    what our own agent adds to it. Changes nothing."""
    check_model(model, request.app.state.settings)
    answering = await _answering(turns, model) if window is None else None
    usual = Budget() if answering is None else answering.budget
    budget = changed_budget(usual, window=window, output_reserve=reserve, factor=factor)
    agent = await _agent_part(turns, conversation, model, question) if sent_as == "turn" else AgentPart("", ())
    found = await conversation.preview_context(
        system=agent.system or None,
        tools=agent.tools,
        question=question,
        budget=budget,
        branch=check_branch(branch),
    )
    body = {
        "model": answering and answering.name,
        "exact": found.is_exact,
        **context_out(found.context),
        "mark_tokens": found.mark_tokens,
        "due": found.due,
        "uncovered": found.uncovered,
        "window": budget.window,
        "output_reserve": budget.output_reserve,
    }
    return JsonResponse({**body, **messages_out(found.context)} if messages else body)


async def _answering(turns: TurnService, model: str | None) -> AnsweringModel | None:
    """None where no model can answer, since what a model needs is not installed."""
    try:
        return await answering_model(turns.agent.models, model)
    except MissingExtra:
        return None


async def _agent_part(
    turns: TurnService, conversation: Conversation, model: str | None, question: str | None
) -> AgentPart:
    """None of it where no model can answer: then there is no next turn."""
    try:
        return await agent_part(turns.agent, conversation, TurnOptions(model=model), question or "")
    except EverthreadError:
        return AgentPart("", ())


def messages_out(context: Context) -> dict[str, Any]:
    """A request, the tokens of each of its messages, and where each piece of it comes from."""
    return {
        "messages": context.messages,
        "message_tokens": list(map(message_tokens, context.messages)),
        "pieces": [asdict(piece) for piece in context.pieces],
    }


def context_out(context: Context) -> dict[str, Any]:
    """How full a request is, part by part."""
    return {
        "tokens": context.tokens,
        "limit": context.limit,
        "usage_percent": round(100 * context.tokens / context.limit, 1),
        "wanted_tokens": context.wanted_tokens,
        "parts": [asdict(part) for part in context.parts],
        "omitted": [asdict(one) for one in context.omitted],
    }

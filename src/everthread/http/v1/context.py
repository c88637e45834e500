"""The context: what a model would see of a conversation now, and how full that is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.compaction.due import due_trigger
from everthread.context import read_view
from everthread.context.assemble import Context
from everthread.context.budget import Budget, output_reserve_of
from everthread.context.tokens import message_tokens
from everthread.core.nouns import Ref
from everthread.history.arguments import check_branch
from everthread.http.dependencies import ConversationDep, EverthreadDep
from everthread.http.responses import JsonResponse
from everthread.http.v1.messages import BranchParameter

router = APIRouter(tags=["context"], prefix="/conversations/{conversation_id}")
_DEFAULT = Budget()

Window = Annotated[int, Query(ge=1, le=100_000_000, description="The model's context window, in its tokens.")]
Reserve = Annotated[int | None, Query(ge=0, le=100_000_000, description="Tokens kept free for the answer.")]
Factor = Annotated[float, Query(ge=0.5, le=4.0, description="The model's tokens per token of our count.")]


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


class Gauge(BaseModel):
    """How full a request would be, part by part."""

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


@router.get("/context", response_model=Gauge)
async def get_context(
    conversation: ConversationDep,
    et: EverthreadDep,
    window: Window = _DEFAULT.window,
    reserve: Reserve = None,
    factor: Factor = _DEFAULT.factor,
    branch: BranchParameter = None,
    messages: Annotated[bool, Query(description="Whether to include the request itself.")] = False,
) -> Response:
    """What a model would see now, and how full that is. Changes nothing."""
    budget = Budget(window=window, output_reserve=output_reserve_of(window, reserve), factor=factor)
    policy = await et.compaction_config.get(conversation)
    ref = Ref(conversation.owner, conversation.id)
    view = await read_view.read_view(et.store, ref, check_branch(branch), policy)
    context = read_view.render(view, budget)
    body = {
        **context_out(context),
        "mark_tokens": int(policy.threshold * context.limit),
        "due": due_trigger(view, context, budget),
        "uncovered": view.uncovered,
        "window": window,
        "output_reserve": budget.output_reserve,
    }
    return JsonResponse({**body, **messages_out(context)} if messages else body)


def messages_out(context: Context) -> dict[str, Any]:
    """A request, and the tokens of each of its messages."""
    return {"messages": context.messages, "message_tokens": list(map(message_tokens, context.messages))}


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

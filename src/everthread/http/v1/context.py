"""What a model would see of a conversation now, and how full that is."""

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
_ORDINARY = Budget()

Window = Annotated[int, Query(ge=1, le=100_000_000, description="The model's context window, in its tokens.")]
Reserve = Annotated[int | None, Query(ge=0, le=100_000_000, description="Kept free for the answer.")]
Factor = Annotated[float, Query(ge=0.5, le=4.0, description="The model's tokens per token of our count.")]


class PartOut(BaseModel):
    """One piece of the request."""

    kind: str
    tokens: int
    seqs: list[int] = Field(description="The messages that it shows, or is known from.")
    summary_ids: list[str]
    memory_ids: list[str]
    exact: bool = Field(description="Whether the count is the model's own; else it is an estimate.")


class OmittedOut(BaseModel):
    """A message that the model does not see, or a stretch of them."""

    seq: int
    last_seq: int | None = Field(description="Where the stretch ends, when it is one.")
    reason: str


class Gauge(BaseModel):
    """How full a request would be, part by part. Looking changes nothing."""

    tokens: int
    limit: int = Field(description="What a request may count to.")
    usage_percent: float
    mark_tokens: int = Field(description="Where compaction begins.")
    due: str | None = Field(description="Why a compaction is due now, if one is.")
    uncovered: int = Field(description="Messages that no summary stands for.")
    wanted_tokens: int = Field(description="With nothing shortened or left out.")
    window: int
    output_reserve: int
    parts: list[PartOut]
    omitted: list[OmittedOut]
    messages: list[dict[str, Any]] | None = Field(default=None, description="The request itself, where asked for.")
    message_tokens: list[int] | None = Field(default=None, description="What each of its messages counts to.")


@router.get("/context", response_model=Gauge)
async def get_context(
    conversation: ConversationDep,
    et: EverthreadDep,
    window: Window = _ORDINARY.window,
    reserve: Reserve = None,
    factor: Factor = _ORDINARY.factor,
    branch: BranchParameter = None,
    messages: Annotated[bool, Query(description="Whether to show the request itself.")] = False,
) -> Response:
    """What a model would see now, and how full that is; nothing is changed."""
    budget = Budget(window=window, output_reserve=output_reserve_of(window, reserve), factor=factor)
    policy = await et.compaction_config.get(conversation)
    ref = Ref(conversation.owner, conversation.id)
    view = await read_view.read_view(et.store, ref, check_branch(branch), policy)
    made = read_view.render(view, budget)
    shown = {
        **context_out(made),
        "mark_tokens": int(policy.threshold * made.limit),
        "due": due_trigger(view, made, budget),
        "uncovered": view.uncovered,
        "window": window,
        "output_reserve": budget.output_reserve,
    }
    return JsonResponse({**shown, **messages_out(made)} if messages else shown)


def messages_out(made: Context) -> dict[str, Any]:
    """A request itself, and what each of its messages counts to."""
    return {"messages": made.messages, "message_tokens": list(map(message_tokens, made.messages))}


def context_out(made: Context) -> dict[str, Any]:
    """A request by its parts."""
    return {
        "tokens": made.tokens,
        "limit": made.limit,
        "usage_percent": round(100 * made.tokens / made.limit, 1),
        "wanted_tokens": made.wanted_tokens,
        "parts": [asdict(part) for part in made.parts],
        "omitted": [asdict(one) for one in made.omitted],
    }

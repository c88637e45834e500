"""Compactions: summaries that replace old messages in what models see. Make, list, compare, undo, configure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import BaseModel, BeforeValidator, Field
from starlette.responses import Response

from everthread.compaction.policy import policy_as_dict
from everthread.conversation import Conversation
from everthread.core.compactions import Compaction
from everthread.core.errors import NotFound
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http import dependencies
from everthread.http.dependencies import AdminDep, CallerDep, ConversationDep, EverthreadDep
from everthread.http.middleware import restore_slashes
from everthread.http.model_names import check_summary_model
from everthread.http.responses import JsonResponse
from everthread.http.v1.messages import BranchParameter
from everthread.http.v1.schemas import CompactionOut, compaction_out

router = APIRouter(tags=["compaction"])
_CONVERSATION = "/conversations/{conversation_id}"

Which = Annotated[
    str,
    Path(min_length=1, max_length=MAX_ID_CHARACTERS, description="A compaction's number in the list, or its id."),
    BeforeValidator(restore_slashes),
]
Changes = Annotated[dict[str, Any], Body(description="Settings to change; null resets one.")]


class Compact(dependencies.RequestModel):
    """Options for one compaction."""

    dry_run: bool = Field(default=False, description="Only report what would be summarised.")
    branch: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    compaction: dict[str, Any] | None = Field(default=None, description="Settings for this call only.")


class Outcome(BaseModel):
    """The result of a compaction."""

    compacted: bool
    dry_run: bool
    compaction_id: str | None
    original_count: int
    new_count: int
    tokens_before: int
    tokens_after: int
    reason: str | None
    error: str | None
    planned: list[dict[str, Any]]
    failures: list[dict[str, Any]]


class Compactions(BaseModel):
    """A page of compactions, oldest first."""

    items: list[CompactionOut]
    next_cursor: str | None


class OriginalOut(BaseModel):
    """A message that a summary covers."""

    seq: int
    id: str
    role: str
    name: str | None
    text: str
    tokens: int


class DiffOut(BaseModel):
    """A summary beside the messages it covers."""

    compaction: CompactionOut
    summary: str
    originals: list[OriginalOut]
    facts_kept: list[str]
    facts_only_in_originals: list[str]


class Summary(BaseModel):
    """The summary of everything before the window."""

    summary: str | None
    compactions: list[str] = Field(description="The ids of the compactions it is made of, oldest first.")


class Policy(BaseModel):
    """The compaction settings in effect, all levels merged."""

    enabled: bool
    threshold: float
    keep_recent: int
    max_message_history: int | None
    recent_share: float
    summaries_share: float
    summary_max_tokens: int
    summary_model: str | None
    summary_timeout_seconds: float
    strategy: str
    fan_in: int
    leaf_max_tokens: int
    leaf_max_messages: int
    least_freed: float
    recalled_max_tokens: int
    memory_max_tokens: int
    extract_memories: bool
    compact_ahead: bool
    breaker_failures: int
    breaker_seconds: float


@router.post(f"{_CONVERSATION}/compact", response_model=Outcome)
async def compact(conversation: ConversationDep, how: Compact, et: EverthreadDep, request: Request) -> Response:
    """Summarise old messages for what models see. The log does not change; undo brings the former view back."""
    if how.compaction is not None:
        in_effect = await et.compaction_config.get(conversation)
        check_summary_model(how.compaction, in_effect.summary_model, request.app.state.settings)
    outcome = await conversation.compact(dry_run=how.dry_run, branch=how.branch, compaction=how.compaction)
    return JsonResponse(
        {
            "compacted": outcome.compacted,
            "dry_run": how.dry_run,
            "compaction_id": outcome.compaction.id if outcome.compaction else None,
            "original_count": outcome.original_count,
            "new_count": outcome.new_count,
            "tokens_before": outcome.tokens_before,
            "tokens_after": outcome.tokens_after,
            "reason": outcome.reason,
            "error": outcome.error,
            "planned": [asdict(one) for one in outcome.planned],
            "failures": [asdict(one) for one in outcome.failures],
        }
    )


@router.get(f"{_CONVERSATION}/compactions", response_model=Compactions)
async def list_compactions(
    conversation: ConversationDep,
    limit: dependencies.Limit = 50,
    cursor: Annotated[int, Query(ge=0, le=2**31, description="`next_cursor` of the previous page.")] = 0,
) -> Response:
    """Every compaction, including undone and invalid ones, oldest first."""
    every = [one async for one in conversation.compactions()]
    page = every[cursor : cursor + limit]
    end = cursor + len(page)
    items = [compaction_out(number, one) for number, one in enumerate(page, start=cursor + 1)]
    return JsonResponse({"items": items, "next_cursor": str(end) if end < len(every) else None})


async def _find(conversation: Conversation, which: str) -> tuple[int, Compaction]:
    number = 0
    async for one in conversation.compactions():
        number += 1
        if which in (str(number), one.id):
            return number, one
    raise NotFound(f"no compaction {which!r}")


@router.get(f"{_CONVERSATION}/compactions/{{compaction}}", response_model=CompactionOut)
async def get_compaction(conversation: ConversationDep, compaction: Which) -> Response:
    """One compaction."""
    return JsonResponse(compaction_out(*await _find(conversation, compaction)))


@router.get(f"{_CONVERSATION}/compactions/{{compaction}}/diff", response_model=DiffOut)
async def diff_compaction(conversation: ConversationDep, compaction: Which) -> Response:
    """A summary beside its originals, and the facts that only the originals have."""
    number, chosen = await _find(conversation, compaction)
    compared = await conversation.compaction_diff(chosen.id)
    originals = [
        {"seq": one.seq, "id": one.id, "role": one.role, "name": one.name, "text": one.text, "tokens": one.tokens}
        for one in compared.originals
    ]
    return JsonResponse(
        {
            "compaction": compaction_out(number, chosen),
            "summary": compared.summary,
            "originals": originals,
            "facts_kept": compared.facts_kept,
            "facts_only_in_originals": compared.facts_only_in_originals,
        }
    )


@router.post(f"{_CONVERSATION}/compactions/{{compaction}}/undo", response_model=CompactionOut)
async def undo_compaction(conversation: ConversationDep, compaction: Which) -> Response:
    """Let models see the messages again; 409 while another compaction builds on this one."""
    number, chosen = await _find(conversation, compaction)
    return JsonResponse(compaction_out(number, await conversation.undo_compaction(chosen.id)))


@router.get(f"{_CONVERSATION}/summary", response_model=Summary)
async def get_summary(
    conversation: ConversationDep,
    branch: BranchParameter = None,
    level: Annotated[int | None, Query(ge=1, le=100, description="Use summaries up to this level.")] = None,
) -> Response:
    """The summary of everything before the window."""
    summaries = await conversation.summaries(branch=branch, level=level)
    return JsonResponse(
        {"summary": "\n\n".join(one.summary for one in summaries) or None, "compactions": [one.id for one in summaries]}
    )


@router.get("/config/compaction", response_model=Policy)
async def get_policy(et: EverthreadDep, caller: CallerDep) -> Response:
    """The default compaction settings."""
    return JsonResponse(policy_as_dict(await et.compaction_config.get()))


@router.put("/config/compaction", response_model=Policy)
async def set_policy(et: EverthreadDep, changes: Changes, caller: AdminDep, request: Request) -> Response:
    """Change the default compaction settings, effective at once; requires an admin key."""
    check_summary_model(changes, (await et.compaction_config.get()).summary_model, request.app.state.settings)
    return JsonResponse(policy_as_dict(await et.compaction_config.set(changes)))


@router.get(f"{_CONVERSATION}/config/compaction", response_model=Policy)
async def get_policy_here(et: EverthreadDep, conversation: ConversationDep) -> Response:
    """The compaction settings of this conversation."""
    return JsonResponse(policy_as_dict(await et.compaction_config.get(conversation)))


@router.put(f"{_CONVERSATION}/config/compaction", response_model=Policy)
async def set_policy_here(
    et: EverthreadDep, conversation: ConversationDep, changes: Changes, request: Request
) -> Response:
    """Change the compaction settings of this conversation."""
    in_effect = await et.compaction_config.get(conversation)
    check_summary_model(changes, in_effect.summary_model, request.app.state.settings)
    return JsonResponse(policy_as_dict(await et.compaction_config.set(changes, conversation)))

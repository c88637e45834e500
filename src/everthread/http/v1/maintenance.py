"""Maintenance: counts, background jobs, the log of compactions, verification, and erasing for good."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from operator import itemgetter
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.compactions import Compaction
from everthread.core.errors import Invalid
from everthread.core.events import CompactionCompleted, Event, Recalled, TurnEnded
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.jobs import Job, JobState, priority_name
from everthread.history import read
from everthread.http.dependencies import (
    AdminDep,
    CallerDep,
    ConversationDep,
    EverthreadDep,
    Limit,
    PathId,
    RequestModel,
)
from everthread.http.responses import JsonResponse
from everthread.http.v1.schemas import EraseOut, erase_out
from everthread.instance import Everthread

router = APIRouter(tags=["maintenance"])
_PAGE = 1000
JobId = Annotated[int, Path(ge=0, le=2**63 - 1)]
_ADDRESS_FIELDS = ("owner", "conversation_id")


class Stats(BaseModel):
    """How much is stored of yours; for an admin, of everybody."""

    owner: str
    conversations: int
    entries: int
    database: dict[str, int] | None = Field(
        description="Counts and bytes of the whole database; null without an admin key."
    )
    jobs: dict[str, int] | None


class JobOut(BaseModel):
    """A background job of a conversation."""

    id: int
    kind: str
    owner: str
    conversation_id: str
    state: JobState
    priority: str = Field(description="`manual`, `waited_for`, `in_use`, `automatic` or `when_idle`.")
    attempts: int
    error: str | None = Field(description="Of the last attempt.")
    put_at: datetime
    due_at: datetime | None
    died_at: datetime | None = Field(description="When it failed for good; null unless it is dead.")


class JobsOut(BaseModel):
    """Background jobs of all owners: dead ones first, then running, then waiting ones in the order of execution."""

    waiting: int
    running: int
    dead: int
    oldest_put_at: datetime | None = Field(description="Since when the oldest of those that wait has been waiting.")
    items: list[JobOut]


class JobsRetried(BaseModel):
    """How many jobs were put back."""

    retried: int


class LoggedEvent(BaseModel):
    """An event of a compaction: ids and numbers, never what anybody said."""

    event: str
    level: str
    at: datetime
    conversation_id: str
    fields: dict[str, Any]


class LoggedEvents(BaseModel):
    """Events, newest first."""

    items: list[LoggedEvent]


class ProblemOut(BaseModel):
    """One thing that is wrong."""

    kind: str
    conversation_id: str
    seq: int | None
    detail: str


class VerifyReportOut(BaseModel):
    """What was verified, and what was found."""

    ok: bool
    conversations: int
    entries: int
    messages: int
    erased: int
    problems: list[ProblemOut]


class EraseConfirmation(RequestModel):
    """A confirmation, because erasing cannot be undone."""

    confirm: str = Field(
        min_length=1, max_length=MAX_ID_CHARACTERS, description="The id of what to erase; for everything, the owner."
    )


@router.get("/stats", response_model=Stats)
async def stats(et: EverthreadDep, caller: CallerDep) -> Response:
    """How much is stored."""
    conversations, entries = await _count(et, caller.owner)
    report = await et.jobs(limit=0) if caller.is_admin else None
    return JsonResponse(
        {
            "owner": caller.owner,
            "conversations": conversations,
            "entries": entries,
            "database": dict(await et.stats()) if caller.is_admin else None,
            "jobs": report and {"waiting": report.waiting, "running": report.running, "dead": report.dead},
        }
    )


@router.get("/jobs", response_model=JobsOut)
async def list_jobs(et: EverthreadDep, admin: AdminDep, state: JobState | None = None, limit: Limit = 100) -> Response:
    """The background jobs of all owners, or those in one state: `dead` ones were given up after their last attempt."""
    report = await et.jobs(limit=limit, state=state)
    return JsonResponse(
        {
            "waiting": report.waiting,
            "running": report.running,
            "dead": report.dead,
            "oldest_put_at": report.oldest_put_at,
            "items": [_job_out(job) for job in report.jobs],
        }
    )


def _job_out(job: Job) -> dict[str, Any]:
    names = ("id", "kind", "state", "attempts", "error", "put_at", "due_at", "died_at")
    return {
        **{name: getattr(job, name) for name in names},
        "owner": job.ref.owner,
        "conversation_id": job.ref.id,
        "priority": priority_name(job.priority),
    }


@router.post("/jobs/retry", response_model=JobsRetried)
async def retry_dead_jobs(et: EverthreadDep, admin: AdminDep) -> Response:
    """Let all dead jobs run again, each with the priority it had."""
    return JsonResponse({"retried": await et.retry_dead_jobs()})


@router.post("/jobs/{job_id}/retry", response_model=JobsRetried)
async def retry_job(job_id: JobId, et: EverthreadDep, admin: AdminDep) -> Response:
    """Let a dead job run again, before all automatic ones."""
    await et.retry_job(job_id)
    return JsonResponse({"retried": 1})


@router.delete("/jobs/{job_id}", status_code=204)
async def discard_job(job_id: JobId, et: EverthreadDep, admin: AdminDep) -> Response:
    """Delete a dead job."""
    await et.discard_job(job_id)
    return Response(status_code=204)


async def _count(et: Everthread, owner: str) -> tuple[int, int]:
    counts = [
        info.entry_count async for info in read.conversations(et.store.conversations, owner, include_deleted=True)
    ]
    return len(counts), sum(counts)


@router.get("/logs/compaction", response_model=LoggedEvents)
async def compaction_log(
    et: EverthreadDep,
    caller: CallerDep,
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
    limit: Limit = 100,
) -> Response:
    """Your compactions, newest first, whichever process made them; of one conversation, or of the thousand newest
    ones. What leaves no summary behind, such as a failure, is only known to the process that saw it."""
    stored = await _stored_events(et, caller.owner, conversation_id)
    unstored = [
        (at, event)
        for at, event in et.runtime.listener.recent
        if event.owner == caller.owner and conversation_id in (None, event.conversation_id) and _is_unstored(event)
    ]
    events = sorted([*stored, *unstored], key=itemgetter(0), reverse=True)
    items = [
        {
            "event": event.name,
            "level": event.level,
            "at": at,
            "conversation_id": event.conversation_id,
            "fields": {name: value for name, value in asdict(event).items() if name not in _ADDRESS_FIELDS},
        }
        for at, event in events[:limit]
    ]
    return JsonResponse({"items": items})


def _is_unstored(event: Event) -> bool:
    """Whether it is of a compaction, and not in the database."""
    if isinstance(event, CompactionCompleted):
        return not event.compressed
    return not isinstance(event, Recalled | TurnEnded)


async def _stored_events(et: Everthread, owner: str, id: str | None) -> list[tuple[datetime, Event]]:
    """One event for every compaction that made a summary, also those undone since."""
    if id is None:
        conversations = [*(await et.conversations.list(owner, limit=_PAGE)).items]
    else:
        conversations = [await et.conversations.get(id, owner)]
    return [
        (compaction.created_at, _completed(conversation, compaction))
        for conversation in conversations
        async for compaction in conversation.compactions()
    ]


def _completed(conversation: Conversation, compaction: Compaction) -> CompactionCompleted:
    return CompactionCompleted(
        owner=conversation.owner,
        conversation_id=conversation.id,
        trigger=compaction.trigger,
        before_count=compaction.original_count,
        after_count=compaction.new_count,
        compressed=True,
        summary_length=len(compaction.summary),
        tokens_before=compaction.tokens_before,
        tokens=compaction.tokens_after,
        seconds=compaction.seconds,
        by=compaction.strategy,
    )


class VerifyRequest(RequestModel):
    """What to verify, if not everything."""

    conversation_id: str | None = Field(
        default=None, min_length=1, max_length=MAX_ID_CHARACTERS, description="Only this conversation of yours."
    )


@router.post("/verify", response_model=VerifyReportOut)
async def verify(
    et: EverthreadDep,
    caller: CallerDep,
    conversation_id: Annotated[
        str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS, description="The same, in the address.")
    ] = None,
    body: VerifyRequest | None = None,
) -> Response:
    """Hash all your entries again and check every chain; for an admin, everybody's."""
    named = None if body is None else body.conversation_id
    if named is not None and conversation_id not in (None, named):
        raise Invalid("is not the one in the address; give it once", field="conversation_id")
    conversation_id = named if conversation_id is None else conversation_id
    if conversation_id is not None:
        await et.conversations.get(conversation_id, caller.owner)
    whose = None if caller.is_admin and conversation_id is None else caller.owner
    report = await et.verify(owner=whose, conversation=conversation_id)
    problems = [{name: value for name, value in asdict(one).items() if name != "owner"} for one in report.problems]
    counts = {name: getattr(report, name) for name in ("ok", "conversations", "entries", "messages", "erased")}
    return JsonResponse({**counts, "problems": problems})


@router.post("/conversations/{conversation_id}/erase", response_model=EraseOut)
async def erase_conversation(
    conversation: ConversationDep, confirm: EraseConfirmation, et: EverthreadDep, caller: CallerDep
) -> Response:
    """Erase a conversation and its subagents' for good."""
    _check_confirmation(confirm, conversation.id)
    return JsonResponse(erase_out(await et.erase(owner=caller.owner, conversation=conversation.id)))


@router.post("/conversations/{conversation_id}/messages/{message_id}/erase", response_model=EraseOut)
async def erase_message(
    conversation: ConversationDep, message_id: PathId, confirm: EraseConfirmation, et: EverthreadDep, caller: CallerDep
) -> Response:
    """Erase a message with all its revisions for good."""
    await conversation.message(message_id)
    _check_confirmation(confirm, message_id)
    return JsonResponse(erase_out(await et.erase(owner=caller.owner, conversation=conversation.id, message=message_id)))


@router.post("/memories/{memory_id}/erase", response_model=EraseOut)
async def erase_memory(memory_id: PathId, confirm: EraseConfirmation, et: EverthreadDep, caller: CallerDep) -> Response:
    """Erase a memory for good, with the words and the vector it is found by."""
    await et.memories.get(caller.owner, memory_id)
    _check_confirmation(confirm, memory_id)
    return JsonResponse(erase_out(await et.memories.erase(caller.owner, memory_id)))


@router.post("/erase", response_model=EraseOut)
async def erase_everything(confirm: EraseConfirmation, et: EverthreadDep, caller: CallerDep) -> Response:
    """Erase everything of yours for good, including your keys."""
    _check_confirmation(confirm, caller.owner)
    return JsonResponse(erase_out(await et.erase(owner=caller.owner)))


def _check_confirmation(confirm: EraseConfirmation, what: str) -> None:
    if confirm.confirm != what:
        raise Invalid("must be the id of what to erase; nothing was erased", field="confirm")

"""Looking after the whole: counts, what was told of compactions, proof, and erasing for good."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core.errors import Invalid
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http.asking import Asker, Body, Et, Id, Limit, Named
from everthread.http.json import Json
from everthread.http.v1.shapes import EraseOut, erase_out
from everthread.instance import Everthread

router = APIRouter(tags=["keeping"])
_PAGE = 1000
_ADDRESS = ("owner", "conversation_id")


class Stats(BaseModel):
    """How much there is of yours; for an admin, of everybody."""

    owner: str
    conversations: int
    entries: int
    database: dict[str, int] | None = Field(description="Counts and bytes of the whole; null without an admin's key.")
    jobs: dict[str, int] | None


class LoggedEvent(BaseModel):
    """Something that was told of a compaction: ids and numbers, never what anybody said."""

    event: str
    level: str
    at: datetime
    conversation_id: str
    fields: dict[str, Any]


class LoggedEvents(BaseModel):
    """The newest first."""

    items: list[LoggedEvent]


class ProblemOut(BaseModel):
    """One thing that was found wrong."""

    kind: str
    conversation_id: str
    seq: int | None
    detail: str


class Verified(BaseModel):
    """What was looked at, and what was found."""

    ok: bool
    conversations: int
    entries: int
    messages: int
    erased: int
    problems: list[ProblemOut]


class Confirm(Body):
    """A word that says it is meant: erasing cannot be undone."""

    confirm: str = Field(
        min_length=1, max_length=MAX_ID_CHARACTERS, description="The id of what is to go; for everything, the owner."
    )


@router.get("/stats", response_model=Stats)
async def stats(et: Et, caller: Asker) -> Response:
    """How much is kept."""
    conversations, entries = await _counted(et, caller.owner)
    report = await et.jobs(limit=0) if caller.is_admin else None
    return Json(
        {
            "owner": caller.owner,
            "conversations": conversations,
            "entries": entries,
            "database": dict(await et.stats()) if caller.is_admin else None,
            "jobs": report and {"waiting": report.waiting, "running": report.running, "dead": report.dead},
        }
    )


async def _counted(et: Everthread, owner: str) -> tuple[int, int]:
    conversations = entries = 0
    cursor = None
    while True:
        page = await et.conversations.list(owner, limit=_PAGE, cursor=cursor, include_deleted=True)
        conversations += len(page.items)
        entries += sum(one.info.entry_count for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return conversations, entries


@router.get("/logs/compaction", response_model=LoggedEvents)
async def compaction_log(
    et: Et,
    caller: Asker,
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
    limit: Limit = 100,
) -> Response:
    """What was told of compactions of yours by this process lately, the newest first."""
    told = [
        (at, event)
        for at, event in et.recent_events()
        if event.owner == caller.owner and conversation_id in (None, event.conversation_id)
    ]
    items = [
        {
            "event": event.name,
            "level": event.level,
            "at": at,
            "conversation_id": event.conversation_id,
            "fields": {name: value for name, value in asdict(event).items() if name not in _ADDRESS},
        }
        for at, event in told[:limit]
    ]
    return Json({"items": items})


@router.post("/verify", response_model=Verified)
async def verify(et: Et, caller: Asker) -> Response:
    """Hash every entry of yours anew and follow every chain; for an admin, everybody's."""
    report = await et.verify(owner=None if caller.is_admin else caller.owner)
    problems = [{name: value for name, value in asdict(one).items() if name != "owner"} for one in report.problems]
    counts = {name: getattr(report, name) for name in ("ok", "conversations", "entries", "messages", "erased")}
    return Json({**counts, "problems": problems})


@router.post("/conversations/{conversation_id}/erase", response_model=EraseOut)
async def erase_conversation(conversation: Named, confirm: Confirm, et: Et, caller: Asker) -> Response:
    """Destroy a conversation and its subagents' for good."""
    _meant(confirm, conversation.id)
    return Json(erase_out(await et.erase(owner=caller.owner, conversation=conversation.id)))


@router.post("/conversations/{conversation_id}/messages/{message_id}/erase", response_model=EraseOut)
async def erase_message(conversation: Named, message_id: Id, confirm: Confirm, et: Et, caller: Asker) -> Response:
    """Destroy a message in all its revisions for good."""
    await conversation.message(message_id)
    _meant(confirm, message_id)
    return Json(erase_out(await et.erase(owner=caller.owner, conversation=conversation.id, message=message_id)))


@router.post("/erase", response_model=EraseOut)
async def erase_everything(confirm: Confirm, et: Et, caller: Asker) -> Response:
    """Destroy everything of yours for good, your keys included."""
    _meant(confirm, caller.owner)
    return Json(erase_out(await et.erase(owner=caller.owner)))


def _meant(confirm: Confirm, what: str) -> None:
    if confirm.confirm != what:
        raise Invalid("does not name what is to be erased; nothing was", field="confirm")

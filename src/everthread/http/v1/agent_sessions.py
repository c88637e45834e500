"""The sessions of coding agents that are kept here: whether their files are still there, and what they took."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core.errors import NotFound
from everthread.core.imports import agent_of
from everthread.http.dependencies import CallerDep, ConversationDep, Cursor, EverthreadDep, Limit
from everthread.http.responses import JsonResponse
from everthread.http.v1.schemas import ConversationOut, conversation_out
from everthread.imports.sessions import agent_sessions, session_totals
from everthread.imports.usage import TOKENS

router = APIRouter(tags=["agent sessions"], prefix="/agents/sessions")
_PROBLEMS = 20


class Following(Protocol):
    """Whoever follows the files of agents in this process, as `everthread watch` does."""

    @property
    def owner(self) -> str: ...

    @property
    def problems(self) -> list[str]:
        """What could not be read so far."""


class FollowingOut(BaseModel):
    """The agents' files are followed by this process."""

    problems: list[str] = Field(description="The newest files and lines that could not be read, and why.")


class AgentSessionOut(BaseModel):
    """A session of a coding agent."""

    conversation: ConversationOut
    agent: str = Field(description="`claude-code`, `codex`, `gemini-cli` and so on.")
    path: str | None = Field(description="Its file, or the database it is in.")
    is_on_disk: bool | None = Field(
        description="Whether that was there when it was last looked at; null if it was imported without being followed."
    )
    changed_at: datetime | None = Field(description="When its file was last changed before it was read.")


class AgentSessionPage(BaseModel):
    """Sessions, the one in which something was said last first."""

    following: FollowingOut | None = Field(description="Null if this process does not follow the files of your agents.")
    items: list[AgentSessionOut]
    next_cursor: str | None = Field(description="`cursor` for the next page; null on the last one.")


class ModelTokensOut(BaseModel):
    """What one model read and wrote, as the agent counted it, in subagents too: as `everthread usage` has it."""

    model: str | None
    answers: int
    input_tokens: int = Field(description="Without what was read from a cache or written to one.")
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost: float | None = Field(description="In US dollars; null where the agent notes none.")


class SessionTotalsOut(BaseModel):
    """What a session holds, and what it took."""

    messages: int = Field(description="On all branches, those that are gone from the file included.")
    not_on_disk: int = Field(
        description="Messages, and summaries of the agent, that it has removed from its file, and that are kept here."
    )
    summaries: int = Field(description="How often the agent compacted it.")
    models: list[ModelTokensOut]


@router.get("", response_model=AgentSessionPage)
async def list_agent_sessions(
    request: Request, et: EverthreadDep, caller: CallerDep, limit: Limit = 200, cursor: Cursor = None
) -> Response:
    """The sessions of your coding agents among a page of your conversations: it may hold fewer than `limit`."""
    watcher: Following | None = request.app.state.watcher
    is_yours = watcher is not None and watcher.owner == caller.owner
    sessions, next_cursor = await agent_sessions(et, caller.owner, limit=limit, cursor=cursor)
    items = [{**one._asdict(), "conversation": conversation_out(one.conversation)} for one in sessions]
    following = {"problems": watcher.problems[-_PROBLEMS:]} if watcher is not None and is_yours else None
    return JsonResponse({"following": following, "items": items, "next_cursor": next_cursor})


@router.get("/{conversation_id}", response_model=SessionTotalsOut)
async def get_session_totals(conversation: ConversationDep, et: EverthreadDep) -> Response:
    """What a session holds and took. It is read as a whole for this."""
    if agent_of(conversation.info) is None:
        raise NotFound("this conversation is not the session of a coding agent")
    totals = await session_totals(et, conversation)
    models = [
        {"model": one.model, "answers": one.answers, **{name: one.tokens[name] for name in TOKENS},
         "cost": one.cost or None}
        for one in totals.models
    ]  # fmt: skip
    return JsonResponse({"messages": totals.messages, "not_on_disk": totals.not_on_disk,
                         "summaries": totals.summaries, "models": models})  # fmt: skip

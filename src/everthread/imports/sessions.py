"""What is known of the sessions of coding agents beside their messages: where their files are, what is gone from them,
and what they took. The page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from everthread.conversation import Conversation
from everthread.core.clock import from_micros
from everthread.core.entries import Flag, Kind
from everthread.core.imports import ImportSource, agent_of
from everthread.core.nouns import Ref
from everthread.imports.usage import Spent, spent_by_agents
from everthread.instance import Everthread

_PAGE = 500


class AgentSession(NamedTuple):
    """A session of a coding agent that is kept here."""

    conversation: Conversation
    agent: str
    path: str | None
    """Its file, or the database it is in."""
    is_on_disk: bool | None
    """Whether that was still there when it was last looked at; None where nobody looks, as after a single import."""
    changed_at: datetime | None
    """When its file was last changed before it was read."""


@dataclass(slots=True)
class SessionTotals:
    """What a session holds, and what it took."""

    messages: int = 0
    """On all branches, those that are gone from the file included."""
    not_on_disk: int = 0
    """Messages, and summaries of the agent, that it has removed from its file since, and that are kept here."""
    summaries: int = 0
    """How often the agent compacted it."""
    models: list[Spent] = field(default_factory=list)
    """What each model took, in its subagents too."""


async def agent_sessions(
    et: Everthread, owner: str, *, limit: int, cursor: str | None = None
) -> tuple[list[AgentSession], str | None]:
    """The sessions among a page of an owner's conversations, newest first, and the cursor of the next page."""
    page = await et.conversations.list(owner, limit=limit, cursor=cursor, order="said")
    sources = {source.path: source for source in await et.store.imports.sources(owner)}
    found = [_session(one, agent, sources) for one in page.items if (agent := agent_of(one.info)) is not None]
    return found, page.next_cursor


def _session(conversation: Conversation, agent: str, sources: Mapping[str, ImportSource]) -> AgentSession:
    named = conversation.metadata.get("source")
    path = named if isinstance(named, str) else None
    source = sources.get(path or "")
    return AgentSession(
        conversation,
        agent,
        path,
        None if source is None else source.inode is not None,
        from_micros(source.updated_at) if source is not None and source.updated_at else None,
    )


async def session_totals(et: Everthread, conversation: Conversation) -> SessionTotals:
    """Read a whole session for what it holds and took."""
    totals = SessionTotals(models=[spent async for spent in spent_by_agents(et, conversation.owner, conversation.id)])
    ref = Ref(conversation.owner, conversation.id)
    after = 0
    while entries := await et.store.log.scan(ref, after=after, limit=_PAGE, with_tokens=False):
        for entry in entries:
            totals.summaries += entry.kind == Kind.SUMMARY
            totals.messages += entry.kind == Kind.MESSAGE and entry.is_place
            totals.not_on_disk += bool(entry.flags & Flag.REMOVED)
        after = entries[-1].seq
    return totals

"""What is known of the sessions of coding agents beside their messages: where their files are, what is gone from them,
and what they took. The page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from everthread.conversation import Conversation
from everthread.core.clock import from_micros
from everthread.core.entries import Entry, Flag, Kind
from everthread.core.errors import StoreDamaged
from everthread.core.imports import ImportSource
from everthread.core.nouns import Message, Ref
from everthread.instance import Everthread

_PAGE = 500
_READ = (
    "input_tokens", "input", "prompt_tokens", "input_other", "cache_read_input_tokens", "cache_creation_input_tokens",
    "cacheRead", "cacheWrite", "input_cache_read", "input_cache_creation",
)  # fmt: skip
"""What agents call the tokens that a model read; of those that count a cache apart, each of its parts."""
_WRITTEN = ("output_tokens", "output", "completion_tokens", "thoughts", "reasoning")


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
class ModelTokens:
    """What one model read and wrote in a session, as its agent counted it."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """In US dollars; None where the agent notes none."""


@dataclass(slots=True)
class SessionTotals:
    """What a session holds, and what it took."""

    messages: int = 0
    """On all branches, those that are gone from the file included."""
    not_on_disk: int = 0
    """Messages that the agent has removed from its file since, and that are kept here."""
    summaries: int = 0
    """How often the agent compacted it."""
    models: dict[str | None, ModelTokens] = field(default_factory=dict)


async def agent_sessions(
    et: Everthread, owner: str, *, limit: int, cursor: str | None = None
) -> tuple[list[AgentSession], str | None]:
    """The sessions among a page of an owner's conversations, newest first, and the cursor of the next page."""
    page = await et.conversations.list(owner, limit=limit, cursor=cursor, order="said")
    sources = {source.path: source for source in await et.store.imports.sources(owner)}
    found = [_session(one, sources) for one in page.items if isinstance(one.metadata.get("agent"), str)]
    return found, page.next_cursor


def _session(conversation: Conversation, sources: Mapping[str, ImportSource]) -> AgentSession:
    named = conversation.metadata.get("source")
    path = named if isinstance(named, str) else None
    source = sources.get(path or "")
    return AgentSession(
        conversation,
        str(conversation.metadata["agent"]),
        path,
        None if source is None else source.inode is not None,
        from_micros(source.updated_at) if source is not None and source.updated_at else None,
    )


async def session_totals(et: Everthread, conversation: Conversation) -> SessionTotals:
    """Read a whole session for what it holds and took."""
    totals = SessionTotals()
    spent: dict[int, tuple[str | None, Mapping[str, Any]]] = {}
    ref = Ref(conversation.owner, conversation.id)
    after = 0
    while entries := await et.store.log.scan(ref, after=after, limit=_PAGE, with_tokens=False):
        for entry in entries:
            totals.summaries += entry.kind == Kind.SUMMARY
            if entry.kind == Kind.MESSAGE:
                totals.messages += entry.place_seq == entry.seq
                totals.not_on_disk += bool(entry.flags & Flag.REMOVED)
                if entry.role == "assistant":
                    spent[entry.place_seq] = _usage(entry)  # the newest revision counts
        after = entries[-1].seq
    for model, usage in spent.values():
        if usage:
            _add(totals.models.setdefault(model, ModelTokens()), usage)
    return totals


def _usage(entry: Entry) -> tuple[str | None, Mapping[str, Any]]:
    """The model that answered, and what its agent notes that it took."""
    try:
        payload = Message(entry).payload
    except StoreDamaged:  # `verify` says so
        return None, {}
    model, usage = payload.get("model"), payload.get("usage")
    return model if isinstance(model, str) else None, usage if isinstance(usage, dict) else {}


def _add(tokens: ModelTokens, usage: Mapping[str, Any]) -> None:
    tokens.answers += 1
    tokens.input_tokens += _sum(usage, _READ) + _sum(usage.get("cache"), ("read", "write"))
    tokens.output_tokens += _sum(usage, _WRITTEN)
    cost = usage.get("cost")
    cost = cost.get("total") if isinstance(cost, dict) else cost
    if isinstance(cost, int | float) and not isinstance(cost, bool):
        tokens.cost = (tokens.cost or 0.0) + cost


def _sum(usage: Any, names: Sequence[str]) -> int:
    counts = (usage.get(name) for name in names) if isinstance(usage, dict) else ()
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))

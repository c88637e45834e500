"""Where a memory comes from, and where a message went: what the log and the manifests say, never what a model says.

A memory that an agent writes down is the user's where one of the user's own messages has its words. Any other may hold
anything that the agent had read, so it is trusted as the least trusted entry of its log, and each of them may be in it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import NamedTuple

from everthread.context import manifest as manifests
from everthread.context.manifest import Manifest
from everthread.context.message_format import is_user_turn
from everthread.core import payloads
from everthread.core.compactions import Compaction
from everthread.core.errors import NotFound
from everthread.core.memories import Memory
from everthread.core.notes import MemorySource, NoteKind, NoteQuery, NoteState
from everthread.core.nouns import Ref
from everthread.core.paths import holds
from everthread.core.ports import CompactionPosition, ListPosition, PathQuery, Store
from everthread.core.trust import Trust, least_trust, trust_of
from everthread.history.payload_json import payload_of
from everthread.recall.memory_intents import note_to_memory
from everthread.text.terms import terms
from everthread.text.words import stem

_RECENT = 50
"""How far back the user may have said what is remembered now."""
_PAGE = 500
_ABOUT_THE_USER = re.compile(r"\A\s*+(?:the user(?:'s|’s)?\b|用户的?)", re.IGNORECASE)
"""How a memory begins, which no user says of himself."""


class MemorySourceFound(NamedTuple):
    """What a memory was made from."""

    trust: Trust
    seq: int | None = None
    """The message of the user that has its words."""
    made_at_seq: int | None = None
    """Else the end of the log: everything before may be in it."""


async def source_of_memory(store: Store, ref: Ref, text: str, *, has_read_documents: bool = False) -> MemorySourceFound:
    """What an agent's memory was made from."""
    info = await store.conversations.get(ref)
    said = _words(_ABOUT_THE_USER.sub("", text, count=1))
    recent = await store.log.path(ref, PathQuery(limit=_RECENT, newest_first=True))
    for place, newest in recent if said else ():
        if trust_of(newest.origin, newest.role) is not Trust.USER or not is_user_turn(payload_of(newest)):
            continue
        if said <= _words(payloads.text(payload_of(newest))):
            return MemorySourceFound(Trust.USER, seq=place.seq)
    trusts = [Trust.MODEL, *([Trust.DATA] if has_read_documents else [])]
    while True:
        trusts += [trust_of(*door) for door in await store.log.origins(ref)]
        if info.parent_id is None:
            return MemorySourceFound(least_trust(trusts), made_at_seq=info.entry_count)
        try:  # a subagent was told what its parent had read
            ref = Ref(ref.owner, info.parent_id)
            parent = await store.conversations.get(ref)
        except NotFound:
            return MemorySourceFound(Trust.DATA, made_at_seq=info.entry_count)
        info = parent


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(term) if term.isascii() else term for term in terms(text))


class ReachedRequest(NamedTuple):
    """A request to a model that showed a message, or something made from it.

    ```python
    for request in (await conv.spread("m1")).requests:
        print(request.conversation_id, request.id)
    ```
    """

    conversation_id: str
    id: str
    """The id of its manifest: `Conversation.seen_context` shows the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Every place that a message reached.

    ```python
    reached = await conv.spread("m1")
    print(len(reached.requests), "requests showed it or something made from it")
    ```
    """

    conversation_id: str
    seq: int
    summaries: tuple[str, ...]
    """The ids of the compactions that stand for it, undone and invalid ones too."""
    memories: tuple[Memory, ...]
    """The memories that were made from it, or may have been."""
    requests: tuple[ReachedRequest, ...]


async def find_spread(store: Store, ref: Ref, seq: int) -> Spread:
    """Every place that the message at this seq reached."""
    summaries = [one.id async for one in _summaries(store, ref, seq)]
    memories = await memories_reached(store, ref, seq)
    known = {memory.id for memory in memories}
    requests: list[ReachedRequest] = []
    async for other in _conversations(store, ref, everywhere=bool(known)):
        async for id, kept in _manifests(store, other):
            is_here = other == ref and (seq in _shown(kept) or not set(kept.summary_ids).isdisjoint(summaries))
            if is_here or not known.isdisjoint((*kept.memory_ids, *kept.reminded_ids)):
                requests.append(ReachedRequest(other.id, id))
    return Spread(
        conversation_id=ref.id,
        seq=seq,
        summaries=tuple(summaries),
        memories=tuple(memories),
        requests=tuple(requests),
    )


async def memories_reached(store: Store, ref: Ref, seq: int) -> list[Memory]:
    """The memories of whatever state that were made from a message, or may have been."""
    found: list[Memory] = []
    before: int | None = None
    while True:
        states = (NoteState.LIVE, NoteState.PAST, NoteState.FORGOTTEN)
        query = NoteQuery(kind=NoteKind.MEMORY, states=states, before=before, limit=_PAGE)
        notes = await store.notes.list(ref.owner, query)
        if not notes:
            return found
        memories = [note_to_memory(note, ref.owner) for note in notes]
        found += [memory for memory in memories if _may_be_from(memory, MemorySource(ref.id, seq))]
        before = notes[-1].number


def _may_be_from(memory: Memory, message: MemorySource) -> bool:
    source = memory.source
    if source is None or source.conversation != message.conversation:
        return False
    return source.seq == message.seq or (memory.made_at_seq is not None and message.seq <= memory.made_at_seq)


def _shown(kept: Manifest) -> Collection[int]:
    return {seq for seq, *_ in (*kept.window, *kept.pinned, *kept.standing, *kept.recalled)}


async def _summaries(store: Store, ref: Ref, seq: int) -> AsyncIterator[Compaction]:
    (place,) = await store.log.find(ref, seqs=[seq])
    branches = {row.number: row for row in (await store.log.branches(ref))[0]}
    after: CompactionPosition | None = None
    while page := await store.views.all_compactions(ref, after=after, limit=_PAGE):
        for one in page:
            if holds(branches, one, place):
                yield one
        after = CompactionPosition(page[-1].created_at, page[-1].id)


async def _manifests(store: Store, ref: Ref) -> AsyncIterator[tuple[str, Manifest]]:
    after = ""
    while ids := await store.views.manifest_ids(ref, after=after, limit=_PAGE):
        for id in ids:
            yield id, manifests.load(await store.views.manifest(ref, id))
        after = ids[-1]


async def _conversations(store: Store, ref: Ref, *, everywhere: bool) -> AsyncIterator[Ref]:
    """The message's own conversation; where a memory may have carried it on, all of the owner's."""
    if not everywhere:
        yield ref
        return
    position: ListPosition | None = None
    while True:
        page, position = await store.conversations.list(
            ref.owner, limit=_PAGE, position=position, include_deleted=True, parent_id=None
        )
        for info in page:
            yield Ref(info.owner, info.id)
        if position is None:
            return

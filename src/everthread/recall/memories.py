"""Long-term memory: what `et.memories` does. `memory_intents` decides; this checks what callers give, asks the store,
and reads the memories that a context shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar

from everthread.context.tokens import count_tokens
from everthread.core.clock import from_micros
from everthread.core.embeddings import Embedder
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import check_conversation_id, check_id, check_text, new_id
from everthread.core.memories import ALWAYS_SHOWN, Habit, Memory, MemoryHit, MemoryKind, MemoryScope, Origin
from everthread.core.notes import NoteKind, NoteQuery, NoteState
from everthread.core.nouns import MAX_PAGE, EraseReport, Page, Ref
from everthread.core.ports import Store
from everthread.core.trust import Trust
from everthread.history.arguments import check_count
from everthread.history.holds import Holds
from everthread.recall.embedding import embed_texts
from everthread.recall.memory_intents import (
    Forget,
    NewMemory,
    Remember,
    Revise,
    memory_key,
    memory_namespaces,
    note_to_memory,
)
from everthread.recall.memory_selection import ContextMemories
from everthread.recall.note_search import ScoredNote, check_query, find_notes, page_cursor, parse_page_cursor

MAX_TEXT_CHARACTERS: Final = 4_000
MAX_SUBJECT_CHARACTERS: Final = 128
_MAX_HISTORY: Final = 1000
"""How far a history is followed: nobody reads further, and a damaged chain must not go on for ever."""
_ALL_STATES = (NoteState.LIVE, NoteState.PAST, NoteState.FORGOTTEN)

Choice = TypeVar("Choice", bound=StrEnum)


class Memories:
    """What is remembered of each owner's users: `et.memories`. Every method takes the owner first.

    ```python
    await et.memories.add(owner="local", text="The user is allergic to peanuts.", kind="profile")
    for hit in await et.memories.search(owner="local", query="allergic"):
        print(hit.memory.text)
    ```
    """

    def __init__(self, store: Store, embedder: Embedder | None = None) -> None:
        self._store = store
        self._embedder = embedder

    async def add(
        self,
        owner: str,
        text: str,
        *,
        kind: MemoryKind | str = MemoryKind.FACT,
        scope: MemoryScope | str = MemoryScope.USER,
        conversation: str | None = None,
        seq: int | None = None,
        subject: str | None = None,
        confidence: float = 1.0,
        supersedes: str | None = None,
        pinned: bool | None = None,
        id: str | None = None,
        origin: Origin = "person",
        trust: Trust = Trust.USER,
        made_at_seq: int | None = None,
    ) -> Memory:
        """Remember something, and return the memory as it is stored. The owner, whose it is, comes before the text: any
        text may name an owner, so two that are swapped are not noticed; with their names, they cannot be.

        `conversation` and `seq` say which message it comes from; with the scope `conversation` or `task` it applies to
        that conversation only. Adding the same text again changes nothing. A live memory of the same `subject` and
        scope, or the one that `supersedes` names, becomes its past. Profiles and instructions are `pinned` by default:
        every context shows them; those of trust `data` never are. Raises Conflict when the conversation is off the
        record.
        """
        where = _check_choice(MemoryScope, scope, "scope")
        what = _check_choice(MemoryKind, kind, "kind")
        if where is not MemoryScope.USER and conversation is None:
            raise Invalid(f"the scope {where} needs a conversation", field="conversation")
        if seq is not None and conversation is None:
            raise Invalid("required together with a message", field="conversation")
        said = check_memory(text)
        (vector,) = await embed_texts(self._embedder, [said])
        new = NewMemory(
            vector=vector,
            id=new_id() if id is None else check_id(id, "id"),
            text=said,
            kind=what,
            scope=where,
            tokens=count_tokens(said),
            conversation=None if conversation is None else check_conversation_id(conversation, "conversation"),
            seq=None if seq is None else check_count(seq, "seq") or None,
            subject=None if subject is None else check_subject(subject),
            origin=origin,
            trust=trust,
            made_at_seq=made_at_seq,
            confidence=_check_confidence(confidence),
            supersedes=None if supersedes is None else check_id(supersedes, "supersedes"),
            is_pinned=what in ALWAYS_SHOWN if pinned is None else _check_flag(pinned, "pinned"),
        )
        (memory,) = await self._store.notes.change(owner, Remember(owner=check_id(owner, "owner"), memories=[new]))
        return memory

    async def get(self, owner: str, id: str) -> Memory:
        """Return a memory in whatever state it is. Raises NotFound when the owner has none with this id."""
        query = NoteQuery(kind=NoteKind.MEMORY, keys=[memory_key(check_id(id, "id"))])
        for note in await self._store.notes.list(check_id(owner, "owner"), query):
            return note_to_memory(note, owner)
        raise NotFound(f"no memory {id!r}")

    async def history(self, owner: str, id: str) -> list[Memory]:
        """Return a memory with everything it superseded and everything that superseded it, oldest first."""
        chain = [await self.get(owner, id)]
        while len(chain) < _MAX_HISTORY and (older := await self._find(owner, chain[0].supersedes)):
            chain.insert(0, older)
        while len(chain) < _MAX_HISTORY and (newer := await self._find(owner, chain[-1].superseded_by)):
            chain.append(newer)
        return chain

    async def _find(self, owner: str, id: str | None) -> Memory | None:
        """None for no id, or one that was erased."""
        if not id:
            return None
        found = await self._store.notes.list(owner, NoteQuery(kind=NoteKind.MEMORY, keys=[memory_key(id)]))
        return note_to_memory(found[0], owner) if found else None

    async def list(
        self,
        owner: str,
        *,
        conversation: str | None = None,
        pinned: bool = False,
        include_past: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[Memory]:
        """List memories page by page, newest first.

        By default all live ones of the owner; with `conversation` those that apply there, with `pinned` only pinned
        ones, with `include_past` also those that were superseded or forgotten.
        """
        check_count(limit, "limit", most=MAX_PAGE)
        query = NoteQuery(
            kind=NoteKind.MEMORY,
            namespaces=await self._namespaces(check_id(owner, "owner"), conversation),
            states=_ALL_STATES if include_past else (NoteState.LIVE,),
            pinned_only=_check_flag(pinned, "pinned"),
            before=None if cursor is None else parse_page_cursor(cursor, owner),
            limit=limit + 1,
        )
        notes = await self._store.notes.list(owner, query)
        shown = notes[:limit]
        following = page_cursor(owner, shown[-1].number) if shown and len(notes) > limit else None
        return Page(items=[note_to_memory(note, owner) for note in shown], next_cursor=following)

    async def _namespaces(self, owner: str, conversation: str | None) -> Sequence[str] | None:
        if conversation is None:
            return None
        id = check_conversation_id(conversation, "conversation")
        await self._store.conversations.get(Ref(owner, id))
        return memory_namespaces(id)

    async def search(
        self, owner: str, query: str, *, conversation: str | None = None, limit: int = 10
    ) -> Sequence[MemoryHit]:
        """Search live memories by words and, if there is an embedder, by meaning; best first.

        With `conversation`, only those that apply there.
        """
        question = check_query(query)
        check_count(limit, "limit", most=MAX_PAGE)
        namespaces = await self._namespaces(check_id(owner, "owner"), conversation)
        if namespaces is None:
            namespaces = sorted(await self._store.notes.namespaces(owner, NoteKind.MEMORY))
        hits, _ = await find_notes(self._store.notes, self._embedder, owner, namespaces, question, limit=limit)
        return [MemoryHit(memory=note_to_memory(hit.note, owner), score=hit.score) for hit in hits]

    async def update(
        self,
        owner: str,
        id: str,
        *,
        text: str | None = None,
        kind: MemoryKind | str | None = None,
        confidence: float | None = None,
        pinned: bool | None = None,
    ) -> Memory:
        """Change a live memory.

        A new text makes a new memory, which is returned; the old one stays readable as its past.
        """
        said = None if text is None else check_memory(text)
        change = Revise(
            vector=None if said is None else (await embed_texts(self._embedder, [said]))[0],
            owner=check_id(owner, "owner"),
            id=check_id(id, "id"),
            new_id=new_id(),
            text=said,
            tokens=count_tokens(said or ""),
            kind=None if kind is None else _check_choice(MemoryKind, kind, "kind"),
            confidence=None if confidence is None else _check_confidence(confidence),
            is_pinned=None if pinned is None else _check_flag(pinned, "pinned"),
        )
        return await self._store.notes.change(owner, change)

    async def confirm(self, owner: str, id: str) -> Memory:
        """Confirm a memory of trust `data` as the user's own: from then on it is shown as any other. The new memory is
        returned; the unconfirmed one is its past. Only a person's door may call this, never a model's.

        ```python
        for memory in await et.memories.list("local"):
            if memory.trust is everthread.Trust.DATA:
                await et.memories.confirm("local", memory.id)
        ```
        """
        known = await self.get(owner, id)
        if known.trust is not Trust.DATA:
            return known
        return await self.add(
            owner,
            known.text,
            kind=known.kind,
            scope=known.scope,
            conversation=None if known.source is None else known.source.conversation,
            seq=None if known.source is None else known.source.seq,
            subject=known.subject,
            confidence=known.confidence,
            supersedes=known.id,
            origin=known.origin,
        )

    async def forget(self, owner: str, id: str) -> Memory:
        """Remove a memory from every search and context. `restore` undoes it; `erase` destroys the text."""
        return await self._store.notes.change(check_id(owner, "owner"), Forget(owner=owner, id=check_id(id, "id")))

    async def restore(self, owner: str, id: str) -> Memory:
        """Undo `forget`."""
        change = Forget(owner=owner, id=check_id(id, "id"), is_back=True)
        return await self._store.notes.change(check_id(owner, "owner"), change)

    async def erase(self, owner: str, id: str) -> EraseReport:
        """Destroy a memory for good in all its versions, those before it and those after (`history`), with its search
        index. This cannot be undone.

        The message it comes from stays; erasing the message also erases what was remembered from it. Raises NotFound
        when the owner has no memory with this id, and Held, with nothing erased, while a legal hold is on a version.
        """
        versions = await self.history(owner, id)
        for source in {None if one.source is None else one.source.conversation for one in versions}:
            await Holds(self._store).check_memory(owner, source)
        count = 0
        while others := [one.id for one in versions if one.id != id]:
            # From the far ends, and the named one last: where it stops half-way, the same call reaches the rest.
            at = [one.id for one in versions].index(id)
            for other in [*others[:at], *reversed(others[at:])]:
                with suppress(NotFound):  # erased by somebody else meanwhile
                    await self._store.maintenance.erase(owner, None, other)
                    count += 1
            versions = await self.history(owner, id)  # further back, or revised since
        report = await self._store.maintenance.erase(owner, None, id)
        return replace(report, reached={**report.reached, "notes": report.reached["notes"] + count})

    async def habits(self, owner: str, *, limit: int = 10) -> Sequence[Habit]:
        """List the tools and skills that are used most in the owner's conversations, most used first."""
        check_count(limit, "limit", most=MAX_PAGE)
        return [
            Habit(
                kind="skill" if kind == "skill" else "tool",
                name=name,
                uses=uses,
                conversations=conversations,
                last_used_at=from_micros(last_at),
            )
            for kind, name, uses, conversations, last_at in await self._store.notes.uses(
                check_id(owner, "owner"), limit=limit
            )
        ]


_MAX_PINNED: Final = 200
_MAX_RELEVANT: Final = 5
_MIN_COSINE: Final = 0.35
"""Unasked, a memory is shown by its meaning only where that is plain."""


async def memories_for_context(
    store: Store, ref: Ref, begun_at: datetime, query: str | None, embedder: Embedder | None = None
) -> ContextMemories:
    """The memories that a context of this conversation may show: those pinned, and those that a question is about."""
    namespaces = memory_namespaces(ref.id)
    states = (NoteState.LIVE, NoteState.PAST)
    pinned = NoteQuery(kind=NoteKind.MEMORY, namespaces=namespaces, states=states, pinned_only=True, limit=_MAX_PINNED)
    pinned_notes = await store.notes.list(ref.owner, pinned)
    hits: Sequence[ScoredNote] = ()
    if query and (pinned_notes or await store.notes.list(ref.owner, replace(pinned, pinned_only=False, limit=1))):
        # A model is asked only where there is something to be found.
        there = await store.notes.namespaces(ref.owner, NoteKind.MEMORY) if embedder is not None else {}
        asks = embedder if any(namespace in there for namespace in namespaces) else None
        hits, _ = await find_notes(
            store.notes, asks, ref.owner, namespaces, query, limit=_MAX_RELEVANT, min_cosine=_MIN_COSINE
        )
    return ContextMemories(
        ref=ref,
        begun_at=begun_at,
        pinned=[note_to_memory(note, ref.owner) for note in pinned_notes],
        hits=[note_to_memory(hit.note, ref.owner) for hit in hits],
    )


# -- what callers give ---------------------------------------------------------------------------------------------


def check_memory(text: object) -> str:
    """A text that can be remembered, or Invalid."""
    if not isinstance(text, str):
        raise Invalid(f"must be a string, not {type(text).__name__}", field="text")
    said = text.strip()
    if not said:
        raise Invalid("must not be empty", field="text")
    if len(said) > MAX_TEXT_CHARACTERS:
        raise Invalid(
            f"must have at most {MAX_TEXT_CHARACTERS} characters, this has {len(said)}; "
            "remember the point of it, or add it to a knowledge collection",
            field="text",
        )
    return check_text(said, "text")


def check_subject(subject: object) -> str:
    """What a memory is about, or Invalid."""
    if not isinstance(subject, str) or not 1 <= len(subject.strip()) <= MAX_SUBJECT_CHARACTERS:
        raise Invalid(f"must be a text of 1 to {MAX_SUBJECT_CHARACTERS} characters, such as name", field="subject")
    return check_text(subject.strip(), "subject")


def _check_choice(choices: type[Choice], given: object, field: str) -> Choice:
    for choice in choices:
        if given == choice:
            return choice
    raise Invalid(f"must be one of {', '.join(choices)}, not {given!r}", field=field)


def _check_confidence(confidence: object) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise Invalid(f"must be a number from 0 to 1, not {confidence!r}", field="confidence")
    return float(confidence)


def _check_flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(f"must be true or false, not {value!r}", field=field)
    return value

"""Memories as notes, and what may happen to them, each as a pure decision over what the store shows (core/notes.py).

Remember   write some down; the same again is nothing new, another text about the same subject supersedes
Revise     another text, or another standing, for one that is there
Forget     take one out of sight, or bring it back
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from everthread.core.clock import from_micros, to_micros
from everthread.core.errors import Conflict, Invalid, ModelError, NotFound
from everthread.core.meaning import Embedder
from everthread.core.memories import Memory, MemoryKind, MemoryScope, MemoryState, Origin
from everthread.core.notes import (
    Note,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteNeeds,
    NotesSeen,
    NoteState,
    Place,
    Source,
    Topic,
)
from everthread.history.words import normal

USER_SHELF = "user"
_STATES = {
    MemoryState.LIVE: NoteState.LIVE,
    MemoryState.PAST: NoteState.PAST,
    MemoryState.FORGOTTEN: NoteState.FORGOTTEN,
}


def shelf_of(conversation: str | None) -> str:
    """Where the memories of a conversation lie; with None those of the user."""
    return USER_SHELF if conversation is None else f"conversation/{conversation}"


def shelves_seen_by(conversation: str | None) -> list[str]:
    """What holds in a conversation: the user's memories and its own."""
    return [USER_SHELF] if conversation is None else [USER_SHELF, shelf_of(conversation)]


class Vector(NamedTuple):
    """What a text means, by one model."""

    model: str
    numbers: bytes


async def vectors_of(embedder: Embedder | None, texts: Sequence[str]) -> Sequence[Vector | None]:
    """A vector for each text; none without an embedder, or when it fails: words find them all the same."""
    if embedder is None or not texts:
        return [None] * len(texts)
    try:
        return [Vector(embedder.name, numbers) for numbers in await embedder.passages(texts)]
    except ModelError:
        return [None] * len(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory before it is written down."""

    id: str
    text: str
    kind: MemoryKind
    scope: MemoryScope
    tokens: int
    conversation: str | None = None
    """The one it holds in, or it is from."""
    seq: int | None = None
    """The message it is from."""
    subject: str | None = None
    origin: Origin = "person"
    confidence: float = 1.0
    supersedes: str | None = None
    is_pinned: bool = False
    vector: Vector | None = None

    @property
    def shelf(self) -> str:
        return shelf_of(None if self.scope is MemoryScope.USER else self.conversation)

    @property
    def topic(self) -> Topic:
        """What finds the ones that this one repeats or supersedes."""
        return Topic(NoteKind.MEMORY, self.shelf, topic_of(self.subject, self.text))

    @property
    def source(self) -> Source | None:
        return None if self.conversation is None or self.seq is None else Source(self.conversation, self.seq)


def topic_of(subject: str | None, text: str) -> str:
    """A subject as it is compared; without one, the text itself is what it is about."""
    if subject is None:
        return f"={sha256(plain(text).encode()).hexdigest()[:32]}"
    return plain(subject)


def plain(text: str) -> str:
    """A text as it is compared with another: two that say the same in other spacing are one."""
    return " ".join(normal(text).split()).rstrip(" .!。！")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """That a conversation was read for memories, up to a seq."""

    conversation: str
    until: int

    @property
    def key(self) -> NoteKey:
        return NoteKey(NoteKind.MARK, self.conversation)


def read_until(note: Note | None) -> int:
    """How far a conversation was read, by its mark."""
    return 0 if note is None else int(orjson.loads(note.record)["until"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Write memories down; gives each as it stands then."""

    owner: str
    drafts: Sequence[Draft]
    reading: Reading | None = None
    """Set by who reads a log: of two that read the same part, one writes; and what was erased meanwhile is left out."""

    def needs(self) -> NoteNeeds:
        conversations = {draft.conversation for draft in self.drafts if draft.conversation is not None}
        marks = [] if self.reading is None else [self.reading.key]
        named = [draft.supersedes for draft in self.drafts if draft.supersedes is not None]
        return NoteNeeds(
            keys=[*marks, *(memory_key(id) for id in (*named, *(draft.id for draft in self.drafts)))],
            topics=list(dict.fromkeys(draft.topic for draft in self.drafts)),
            conversations=sorted(conversations | ({self.reading.conversation} if self.reading else set())),
            sources=[source for draft in self.drafts if (source := draft.source) is not None],
        )

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Sequence[Memory]]:
        if self.reading is not None and not self._is_news(seen, self.reading):
            return NoteDecision(result=())
        board = _Board(self.owner, seen, now)
        told = [board.write(draft) for draft in self.drafts if self.reading is None or _still_stands(draft, seen)]
        marks = [] if self.reading is None else [_mark(self.reading, now)]
        vectors = {draft.id: draft.vector for draft in self.drafts}
        notes = [as_note(memory, vectors.get(memory.id)) for memory in board.changed.values()]
        return NoteDecision(result=told, put=[*notes, *marks])

    def _is_news(self, seen: NotesSeen, reading: Reading) -> bool:
        place = seen.conversations.get(reading.conversation)
        if place is None or place.off_record:
            return False
        return read_until(seen.by_key.get(reading.key)) < reading.until


def _still_stands(draft: Draft, seen: NotesSeen) -> bool:
    return draft.source is None or draft.source in seen.sources


class _Board:
    """Memories as they stand while several are written down, one after the other."""

    def __init__(self, owner: str, seen: NotesSeen, now: int) -> None:
        self._owner = owner
        self._seen = seen
        self._now = now
        self.changed: dict[str, Memory] = {}
        self._written: dict[Topic, list[str]] = {}
        """Ids of those written here, by what they are about."""

    def write(self, draft: Draft) -> Memory:
        _check_place(draft, self._seen)
        if memory_key(draft.id) in self._seen.by_key:
            return self._again(draft)
        known = self._about(draft)
        for one in known:
            if plain(one.text) == plain(draft.text) and draft.supersedes in (None, one.id):
                return one
        if draft.supersedes is not None and all(one.id != draft.supersedes for one in known):
            known.append(superseded_target(self._seen, draft.supersedes, self._owner))
        made = _made(draft, self._owner, self._now, known[-1].id if known else None)
        for one in known:
            self.changed[one.id] = _past(one, made, self._now)
        self.changed[made.id] = made
        self._written.setdefault(draft.topic, []).append(made.id)
        return made

    def _again(self, draft: Draft) -> Memory:
        """A retry by id is nothing new; the id with another text is refused."""
        known = as_memory(self._seen.by_key[memory_key(draft.id)], self._owner)
        if known.text != draft.text:
            raise Conflict(f"memory {draft.id!r} exists already with another text; update it, or choose another id")
        return known

    def _about(self, draft: Draft) -> list[Memory]:
        """The live ones about the same, as far as they still are."""
        known = {note.id: as_memory(note, self._owner) for note in self._seen.by_topic.get(draft.topic, ())}
        known.update(
            {id: self.changed[id] for id in (*known, *self._written.get(draft.topic, ())) if id in self.changed}
        )
        return [one for one in known.values() if one.is_live]


def _check_place(draft: Draft, seen: NotesSeen) -> None:
    if draft.conversation is None:
        return
    place = seen.conversations.get(draft.conversation)
    if place is None:
        raise NotFound(f"no conversation {draft.conversation!r}")
    if place.off_record:
        raise Conflict(f"conversation {draft.conversation!r} is off the record: nothing of it is remembered")
    _check_scope(draft, place)
    if draft.source is not None and draft.source not in seen.sources:
        raise NotFound(f"no message with seq {draft.seq} in conversation {draft.conversation!r}")


def _check_scope(draft: Draft, place: Place) -> None:
    if draft.scope is MemoryScope.TASK and place.parent_id is None:
        raise Invalid(
            f"conversation {place.id!r} is nobody's subagent; write conversation for what holds in it", field="scope"
        )


def superseded_target(seen: NotesSeen, id: str, owner: str) -> Memory:
    """The memory that another is to take the place of."""
    memory = found(seen, id, owner)
    if not memory.is_live:
        newer = f"; {memory.superseded_by!r} took its place" if memory.superseded_by else ""
        raise Conflict(f"memory {id!r} is {memory.state} and cannot be superseded{newer}")
    return memory


def found(seen: NotesSeen, id: str, owner: str) -> Memory:
    """A memory by its id, or NotFound."""
    note = seen.by_key.get(memory_key(id))
    if note is None:
        raise NotFound(f"no memory {id!r}")
    return as_memory(note, owner)


def _made(draft: Draft, owner: str, now: int, supersedes: str | None) -> Memory:
    at = from_micros(now)
    return Memory(
        id=draft.id,
        owner=owner,
        text=draft.text,
        kind=draft.kind,
        scope=draft.scope,
        conversation_id=None if draft.scope is MemoryScope.USER else draft.conversation,
        subject=draft.subject,
        source=None if draft.conversation is None else Source(draft.conversation, draft.seq or 0),
        origin=draft.origin,
        confidence=draft.confidence,
        tokens=draft.tokens,
        supersedes=supersedes,
        pinned_at=at if draft.is_pinned else None,
        created_at=at,
        updated_at=at,
    )


def _past(old: Memory, newer: Memory, now: int) -> Memory:
    at = from_micros(now)
    return replace(old, state=MemoryState.PAST, superseded_by=newer.id, past_at=at, updated_at=at)


def _mark(reading: Reading, now: int) -> Note:
    return Note(
        *reading.key, shelf_of(reading.conversation), "", orjson.dumps({"until": reading.until}), now, now,
        source_conversation=reading.conversation,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """Change what is known of a memory; another text becomes a memory of its own that supersedes it."""

    owner: str
    id: str
    new_id: str
    text: str | None = None
    tokens: int = 0
    kind: MemoryKind | None = None
    confidence: float | None = None
    is_pinned: bool | None = None
    vector: Vector | None = None
    """Of the new text."""

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[memory_key(self.id)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Memory]:
        kept = _vector_of(seen.by_key.get(memory_key(self.id)))
        old = superseded_target(seen, self.id, self.owner)
        at = from_micros(now)
        changed = replace(
            old,
            kind=self.kind or old.kind,
            confidence=old.confidence if self.confidence is None else self.confidence,
            pinned_at=_pinned_at(old, self.is_pinned, at),
            updated_at=at,
        )
        if self.text is None or self.text == old.text:
            return NoteDecision(result=changed, put=[as_note(changed, kept)])
        newer = replace(
            changed, id=self.new_id, text=self.text, tokens=self.tokens, supersedes=old.id, created_at=at,
            pinned_at=at if changed.is_pinned else None,
        )  # fmt: skip
        return NoteDecision(result=newer, put=[as_note(_past(old, newer, now)), as_note(newer, self.vector)])


def _pinned_at(old: Memory, is_pinned: bool | None, at: datetime) -> datetime | None:
    if is_pinned is None or is_pinned == old.is_pinned:
        return old.pinned_at
    return at if is_pinned else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Take a memory out of sight, or bring it back."""

    owner: str
    id: str
    is_back: bool = False

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[memory_key(self.id)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Memory]:
        old = found(seen, self.id, self.owner)
        if (old.state is MemoryState.FORGOTTEN) != self.is_back:
            return NoteDecision(result=old)
        back = MemoryState.LIVE if old.past_at is None else MemoryState.PAST
        state = back if self.is_back else MemoryState.FORGOTTEN
        changed = replace(old, state=state, updated_at=from_micros(now))
        kept = _vector_of(seen.by_key.get(memory_key(self.id)))
        return NoteDecision(result=changed, put=[as_note(changed, kept)])


# -- as they are stored --------------------------------------------------------------------------------------------


def memory_key(id: str) -> NoteKey:
    return NoteKey(NoteKind.MEMORY, id)


def _vector_of(note: Note | None) -> Vector | None:
    return None if note is None or note.model is None or note.vector is None else Vector(note.model, note.vector)


def as_note(memory: Memory, vector: Vector | None = None) -> Note:
    """A memory as it is stored."""
    record = {
        "kind": memory.kind,
        "scope": memory.scope,
        "subject": memory.subject,
        "origin": memory.origin,
        "confidence": memory.confidence,
        "tokens": memory.tokens,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
    }
    return Note(
        kind=NoteKind.MEMORY,
        id=memory.id,
        shelf=shelf_of(memory.conversation_id),
        text=memory.text,
        record=orjson.dumps(record),
        created_at=to_micros(memory.created_at),
        updated_at=to_micros(memory.updated_at),
        topic=topic_of(memory.subject, memory.text),
        state=_STATES[memory.state],
        past_at=None if memory.past_at is None else to_micros(memory.past_at),
        pinned_at=None if memory.pinned_at is None else to_micros(memory.pinned_at),
        source_conversation=None if memory.source is None else memory.source.conversation,
        source_seq=None if memory.source is None else memory.source.seq or None,
        model=None if vector is None else vector.model,
        vector=None if vector is None else vector.numbers,
    )


def as_memory(note: Note, owner: str) -> Memory:
    """A memory as it was stored."""
    record: Mapping[str, Any] = orjson.loads(note.record)
    is_user = record["scope"] == MemoryScope.USER
    source = None if note.source_conversation is None else Source(note.source_conversation, note.source_seq or 0)
    return Memory(
        id=note.id,
        owner=owner,
        text=note.text,
        kind=MemoryKind(record["kind"]),
        scope=MemoryScope(record["scope"]),
        conversation_id=None if is_user else note.shelf.partition("/")[2],
        subject=record["subject"],
        source=source,
        origin=record["origin"],
        confidence=record["confidence"],
        tokens=record["tokens"],
        supersedes=record["supersedes"],
        superseded_by=record["superseded_by"],
        state=next(state for state, number in _STATES.items() if number == note.state),
        pinned_at=None if note.pinned_at is None else from_micros(note.pinned_at),
        past_at=None if note.past_at is None else from_micros(note.past_at),
        created_at=from_micros(note.created_at),
        updated_at=from_micros(note.updated_at),
    )

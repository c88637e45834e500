"""What may happen to memories, each as a pure decision over the notes that the store shows (core/notes.py).

Remember   write some down; the same again is nothing new, another text about the same subject supersedes
Revise     another text, or another standing, for one that is there
Forget     take one out of sight, or bring it back
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from everthread.core.clock import from_micros
from everthread.core.errors import Conflict, Invalid, NotFound
from everthread.core.memories import Memory, MemoryKind, MemoryScope, MemoryState, Origin
from everthread.core.notes import (
    Note,
    NoteConversation,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteNeeds,
    NotesSeen,
    Source,
    Topic,
)
from everthread.recall.noted import Vector, as_memory, as_note, memory_key, plain, shelf_of, topic_of, vector_of


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


def _check_scope(draft: Draft, place: NoteConversation) -> None:
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
        kept = vector_of(seen.by_key.get(memory_key(self.id)))
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
        kept = vector_of(seen.by_key.get(memory_key(self.id)))
        return NoteDecision(result=changed, put=[as_note(changed, kept)])

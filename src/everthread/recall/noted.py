"""A memory as a note of the store, and back: on which shelf it lies, what it is about, what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from everthread.core.clock import from_micros, to_micros
from everthread.core.embeddings import Embedder
from everthread.core.errors import ModelError
from everthread.core.memories import Memory, MemoryKind, MemoryScope, MemoryState
from everthread.core.notes import Note, NoteKey, NoteKind, NoteState, Source
from everthread.text.words import fold

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


def topic_of(subject: str | None, text: str) -> str:
    """A subject as it is compared; without one, the text itself is what it is about."""
    if subject is None:
        return f"={sha256(plain(text).encode()).hexdigest()[:32]}"
    return plain(subject)


def plain(text: str) -> str:
    """A text as it is compared with another: two that say the same in other spacing are one."""
    return " ".join(fold(text).split()).rstrip(" .!。！")


def memory_key(id: str) -> NoteKey:
    """What finds the note of a memory."""
    return NoteKey(NoteKind.MEMORY, id)


def vector_of(note: Note | None) -> Vector | None:
    """The vector that a note has."""
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

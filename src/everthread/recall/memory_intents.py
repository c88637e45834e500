"""What may happen to memories, each as a pure decision over the notes that the store shows (core/notes.py), and how a
memory is stored as a note.

Remember   write some down; the same again is nothing new, another text about the same subject supersedes; what only
           takes something back is not shown itself, and what it takes back is forgotten, so that it can be restored
Revise     another text, or another standing, for one that is there
Forget     take one out of sight, or bring it back
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from everthread.core.clock import from_micros, to_micros
from everthread.core.errors import Conflict, Invalid, NotFound
from everthread.core.memories import Memory, MemoryKind, MemoryScope, MemoryState, Origin
from everthread.core.notes import (
    MemorySource,
    Note,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteNeeds,
    NotesSeen,
    NoteState,
    Topic,
)
from everthread.core.trust import Trust, is_trusted_as
from everthread.text.words import fold


class Ended(NamedTuple):
    """Older memories that a newer one puts an end to."""

    subject: str | None
    text: str = ""
    """What is written there, where there is no subject."""
    naming: str = ""
    """Only those that have this in their text …"""
    sparing: str = ""
    """… and not those that have this."""

    @property
    def topic(self) -> str:
        return memory_topic(self.subject, self.text)

    def means(self, memory: Memory) -> bool:
        """Whether it is this one, of those with its topic."""
        return (not self.naming or _names(memory, self.naming)) and not (self.sparing and _names(memory, self.sparing))


def _names(memory: Memory, words: str) -> bool:
    name, text = comparable_text(words), comparable_text(memory.text)
    return not name or re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
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
    trust: Trust = Trust.USER
    made_at_seq: int | None = None
    confidence: float = 1.0
    supersedes: str | None = None
    ends: Sequence[Ended] = ()
    """What is true no longer, beside older ones of its own subject."""
    is_retraction: bool = False
    """It takes something back and says nothing new."""
    is_pinned: bool = False
    vector: NoteVector | None = None

    @property
    def namespace(self) -> str:
        return memory_namespace(None if self.scope is MemoryScope.USER else self.conversation)

    @property
    def topic(self) -> Topic:
        """What finds the ones that this one repeats or supersedes."""
        return Topic(NoteKind.MEMORY, self.namespace, memory_topic(self.subject, self.text))

    def topic_of(self, ended: Ended) -> Topic:
        """What finds the ones that it may put an end to."""
        return Topic(NoteKind.MEMORY, self.namespace, ended.topic)

    @property
    def source(self) -> MemorySource | None:
        return None if self.conversation is None or self.seq is None else MemorySource(self.conversation, self.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMark:
    """How far a conversation was read for memories, up to a seq."""

    conversation: str
    until: int

    @property
    def key(self) -> NoteKey:
        return NoteKey(NoteKind.MARK, self.conversation)

    def as_note(self, now: int) -> Note:
        """The mark as it is stored."""
        return Note(
            *self.key, memory_namespace(self.conversation), "", orjson.dumps({"until": self.until}), now, now,
            source_conversation=self.conversation,
        )  # fmt: skip


def read_until(note: Note | None) -> int:
    """How far a conversation was read, by its mark."""
    return 0 if note is None else int(orjson.loads(note.record)["until"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember:
    """Write memories down; gives each as it stands then."""

    owner: str
    memories: Sequence[NewMemory]
    read_mark: ReadMark | None = None
    """Set by who reads a log: of two that read the same part, one writes; and what was erased meanwhile is left out."""

    def needs(self) -> NoteNeeds:
        conversations = {new.conversation for new in self.memories if new.conversation is not None}
        marks = [] if self.read_mark is None else [self.read_mark.key]
        named = [new.supersedes for new in self.memories if new.supersedes is not None]
        return NoteNeeds(
            keys=[*marks, *(memory_key(id) for id in (*named, *(new.id for new in self.memories)))],
            topics=list(
                dict.fromkeys(
                    topic
                    for new in self.memories
                    for topic in (new.topic, *(new.topic_of(ended) for ended in new.ends))
                )
            ),
            conversations=sorted(conversations | ({self.read_mark.conversation} if self.read_mark else set())),
            sources=[source for new in self.memories if (source := new.source) is not None],
        )

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Sequence[Memory]]:
        if self.read_mark is not None:
            source = seen.conversations.get(self.read_mark.conversation)
            is_read = read_until(seen.by_key.get(self.read_mark.key)) >= self.read_mark.until
            if is_read or source is None or source.off_record:
                return NoteDecision(result=())
        writer = _MemoryWriter(self.owner, seen, now)
        written = [
            memory
            for new in self.memories
            if self.read_mark is None or new.source is None or new.source in seen.sources
            if (memory := writer.take_back(new) if new.is_retraction else writer.write(new)) is not None
        ]
        marks = [] if self.read_mark is None else [self.read_mark.as_note(now)]
        vectors = {new.id: new.vector for new in self.memories}
        notes = [memory_to_note(memory, vectors.get(memory.id)) for memory in writer.changed.values()]
        return NoteDecision(result=written, put=[*notes, *marks])


class _MemoryWriter:
    """Memories as they stand while several are written down, one after the other."""

    def __init__(self, owner: str, seen: NotesSeen, now: int) -> None:
        self._owner = owner
        self._seen = seen
        self._now = now
        self.changed: dict[str, Memory] = {}
        self._written: dict[Topic, list[str]] = {}
        """Ids of those written here, by what they are about."""

    def write(self, new: NewMemory) -> Memory:
        _check_source(new, self._seen)
        same_id = self._seen.by_key.get(memory_key(new.id))
        if same_id is not None:
            if same_id.text != new.text:
                raise Conflict(f"memory {new.id!r} exists already with another text; update it, or choose another id")
            return note_to_memory(same_id, self._owner)  # a retry
        known = self._live(new.topic)
        ended = [one for one in self._ended(new) if one not in known]
        for one in known:
            is_same = comparable_text(one.text) == comparable_text(new.text) and new.supersedes in (None, one.id)
            if is_same and is_trusted_as(one.trust, new.trust):
                self._replace(ended, one)
                return one
        known = [
            one for one in known if is_trusted_as(new.trust, one.trust)
        ]  # a file takes no place of the user's word
        if new.supersedes is not None and all(one.id != new.supersedes for one in known):
            known.append(get_live_memory(self._seen, new.supersedes, self._owner))
        replaced = [*ended, *known]
        memory = _create(new, self._owner, self._now, replaced[-1].id if replaced else None)
        self._replace(replaced, memory)
        self.changed[memory.id] = memory
        self._written.setdefault(new.topic, []).append(memory.id)
        return memory

    def take_back(self, new: NewMemory) -> Memory | None:
        """Forget what it takes back, and keep it as the past of that; None where there is nothing of the kind."""
        _check_source(new, self._seen)
        ended = self._ended(new)
        if not ended:
            return None
        at = from_micros(self._now)
        memory = replace(_create(new, self._owner, self._now, ended[-1].id), state=MemoryState.PAST, past_at=at)
        for one in ended:
            self.changed[one.id] = replace(
                one, state=MemoryState.FORGOTTEN, superseded_by=memory.id, updated_at=at
            )  # so that it is gone from every context, and can be restored
        self.changed[memory.id] = memory
        return memory

    def _ended(self, new: NewMemory) -> list[Memory]:
        """The live ones that it puts an end to, of those that are trusted no more than it is."""
        found = {
            one.id: one
            for ended in new.ends
            for one in self._live(new.topic_of(ended))
            if ended.means(one) and is_trusted_as(new.trust, one.trust)
        }
        return list(found.values())

    def _replace(self, old: Sequence[Memory], newer: Memory) -> None:
        for one in old:
            self.changed[one.id] = _supersede(one, newer, self._now)

    def _live(self, topic: Topic) -> list[Memory]:
        """The live ones about this, as far as they still are."""
        known = {note.id: note_to_memory(note, self._owner) for note in self._seen.by_topic.get(topic, ())}
        known.update({id: self.changed[id] for id in (*known, *self._written.get(topic, ())) if id in self.changed})
        return [one for one in known.values() if one.is_live]


def _check_source(new: NewMemory, seen: NotesSeen) -> None:
    if new.conversation is None:
        return
    source = seen.conversations.get(new.conversation)
    if source is None:
        raise NotFound(f"no conversation {new.conversation!r}")
    if source.off_record:
        raise Conflict(f"conversation {new.conversation!r} is off the record: nothing of it is remembered")
    if new.scope is MemoryScope.TASK and source.parent_id is None:
        raise Invalid(f"conversation {source.id!r} has no parent: use the scope conversation", field="scope")
    if new.source is not None and new.source not in seen.sources:
        raise NotFound(f"no message with seq {new.seq} in conversation {new.conversation!r}")


def get_live_memory(seen: NotesSeen, id: str, owner: str) -> Memory:
    """The memory that another is to take the place of."""
    memory = get_memory(seen, id, owner)
    if not memory.is_live:
        newer = f"; {memory.superseded_by!r} took its place" if memory.superseded_by else ""
        raise Conflict(f"memory {id!r} is {memory.state} and cannot be superseded{newer}")
    return memory


def get_memory(seen: NotesSeen, id: str, owner: str) -> Memory:
    """A memory by its id, or NotFound."""
    note = seen.by_key.get(memory_key(id))
    if note is None:
        raise NotFound(f"no memory {id!r}")
    return note_to_memory(note, owner)


def _create(new: NewMemory, owner: str, now: int, supersedes: str | None) -> Memory:
    at = from_micros(now)
    return Memory(
        id=new.id,
        owner=owner,
        text=new.text,
        kind=new.kind,
        scope=new.scope,
        conversation_id=None if new.scope is MemoryScope.USER else new.conversation,
        subject=new.subject,
        source=None if new.conversation is None else MemorySource(new.conversation, new.seq or 0),
        origin=new.origin,
        trust=new.trust,
        made_at_seq=new.made_at_seq,
        confidence=new.confidence,
        tokens=new.tokens,
        supersedes=supersedes,
        pinned_at=at if new.is_pinned and new.trust is not Trust.DATA else None,
        created_at=at,
        updated_at=at,
    )


def _supersede(old: Memory, newer: Memory, now: int) -> Memory:
    at = from_micros(now)
    return replace(old, state=MemoryState.PAST, superseded_by=newer.id, past_at=at, updated_at=at)


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
    vector: NoteVector | None = None
    """Of the new text."""

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[memory_key(self.id)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Memory]:
        kept = vector_of(seen.by_key.get(memory_key(self.id)))
        old = get_live_memory(seen, self.id, self.owner)
        at = from_micros(now)
        keeps_pin = self.is_pinned is None or self.is_pinned == old.is_pinned
        changed = replace(
            old,
            kind=self.kind or old.kind,
            confidence=old.confidence if self.confidence is None else self.confidence,
            pinned_at=old.pinned_at if keeps_pin else at if self.is_pinned else None,
            updated_at=at,
        )
        if self.text is None or self.text == old.text:
            return NoteDecision(result=changed, put=[memory_to_note(changed, kept)])
        newer = replace(
            changed, id=self.new_id, text=self.text, tokens=self.tokens, supersedes=old.id, created_at=at,
            pinned_at=at if changed.is_pinned else None,
        )  # fmt: skip
        past = _supersede(old, newer, now)
        return NoteDecision(result=newer, put=[memory_to_note(past), memory_to_note(newer, self.vector)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Take a memory out of sight, or bring it back."""

    owner: str
    id: str
    is_back: bool = False

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[memory_key(self.id)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Memory]:
        old = get_memory(seen, self.id, self.owner)
        if (old.state is MemoryState.FORGOTTEN) != self.is_back:
            return NoteDecision(result=old)
        back = MemoryState.LIVE if old.past_at is None else MemoryState.PAST
        state = back if self.is_back else MemoryState.FORGOTTEN
        newer = None if state is MemoryState.LIVE else old.superseded_by
        changed = replace(old, state=state, superseded_by=newer, updated_at=from_micros(now))
        kept = vector_of(seen.by_key.get(memory_key(self.id)))
        return NoteDecision(result=changed, put=[memory_to_note(changed, kept)])


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineMemories:
    """Take memories out of sight that may be made from a quarantined message, or bring them back when no other such
    message stands behind them; gives how many it changed."""

    owner: str
    source: MemorySource
    ids: Sequence[str]
    is_back: bool = False

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[memory_key(id) for id in self.ids])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[int]:
        put = []
        for note in seen.by_key.values():
            old = note_to_memory(note, self.owner)
            others = tuple(one for one in old.quarantined_by if one != self.source)
            by = others if self.is_back else (*others, self.source)
            was_forgotten = old.state is MemoryState.FORGOTTEN and not old.quarantined_by  # by a person: it stays so
            if by == old.quarantined_by or was_forgotten:
                continue
            seen_again = MemoryState.LIVE if old.past_at is None else MemoryState.PAST
            changed = replace(old, state=MemoryState.FORGOTTEN if by else seen_again, quarantined_by=by)
            put.append(memory_to_note(changed, vector_of(note)))
        return NoteDecision(result=len(put), put=put)


# -- a memory as a note --------------------------------------------------------------------------------------------

USER_NAMESPACE = "user"
_STATES = {
    MemoryState.LIVE: NoteState.LIVE,
    MemoryState.PAST: NoteState.PAST,
    MemoryState.FORGOTTEN: NoteState.FORGOTTEN,
}


def memory_namespace(conversation: str | None) -> str:
    """Where the memories of a conversation lie; with None those of the user."""
    return USER_NAMESPACE if conversation is None else f"conversation/{conversation}"


def memory_namespaces(conversation: str | None) -> list[str]:
    """What holds in a conversation: the user's memories and its own."""
    return [USER_NAMESPACE] if conversation is None else [USER_NAMESPACE, memory_namespace(conversation)]


class NoteVector(NamedTuple):
    """What a text means, by one model."""

    model: str
    numbers: bytes


def memory_topic(subject: str | None, text: str) -> str:
    """A subject as it is compared; without one, the text itself is what it is about."""
    if subject is None:
        return f"={sha256(comparable_text(text).encode()).hexdigest()[:32]}"
    return comparable_text(subject)


def comparable_text(text: str) -> str:
    """A text as it is compared with another: two that say the same in other spacing are one."""
    return " ".join(fold(text).split()).rstrip(" .!。！")


def memory_key(id: str) -> NoteKey:
    """What finds the note of a memory."""
    return NoteKey(NoteKind.MEMORY, id)


def vector_of(note: Note | None) -> NoteVector | None:
    """The vector that a note has."""
    return None if note is None or note.model is None or note.vector is None else NoteVector(note.model, note.vector)


def memory_to_note(memory: Memory, vector: NoteVector | None = None) -> Note:
    """A memory as it is stored."""
    record: dict[str, Any] = {
        "kind": memory.kind,
        "scope": memory.scope,
        "subject": memory.subject,
        "origin": memory.origin,
        "confidence": memory.confidence,
        "tokens": memory.tokens,
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "trust": memory.trust,
    }
    if memory.made_at_seq is not None:
        record["made_at_seq"] = memory.made_at_seq
    if memory.quarantined_by:
        record["quarantined_by"] = [tuple(source) for source in memory.quarantined_by]
    return Note(
        kind=NoteKind.MEMORY,
        id=memory.id,
        namespace=memory_namespace(memory.conversation_id),
        text=memory.text,
        record=orjson.dumps(record),
        created_at=to_micros(memory.created_at),
        updated_at=to_micros(memory.updated_at),
        topic=memory_topic(memory.subject, memory.text),
        state=_STATES[memory.state],
        past_at=None if memory.past_at is None else to_micros(memory.past_at),
        pinned_at=None if memory.pinned_at is None else to_micros(memory.pinned_at),
        source_conversation=None if memory.source is None else memory.source.conversation,
        source_seq=None if memory.source is None else memory.source.seq or None,
        model=None if vector is None else vector.model,
        vector=None if vector is None else vector.numbers,
    )


def note_to_memory(note: Note, owner: str) -> Memory:
    """A memory as it was stored."""
    record: Mapping[str, Any] = orjson.loads(note.record)
    is_user = record["scope"] == MemoryScope.USER
    source = None if note.source_conversation is None else MemorySource(note.source_conversation, note.source_seq or 0)
    return Memory(
        id=note.id,
        owner=owner,
        text=note.text,
        kind=MemoryKind(record["kind"]),
        scope=MemoryScope(record["scope"]),
        conversation_id=None if is_user else note.namespace.partition("/")[2],
        subject=record["subject"],
        source=source,
        origin=record["origin"],
        confidence=record["confidence"],
        tokens=record["tokens"],
        supersedes=record["supersedes"],
        superseded_by=record["superseded_by"],
        trust=Trust(record.get("trust", Trust.USER)),  # those from before there was trust have none
        made_at_seq=record.get("made_at_seq"),
        quarantined_by=tuple(MemorySource(*source) for source in record.get("quarantined_by", ())),
        state=next(state for state, number in _STATES.items() if number == note.state),
        pinned_at=None if note.pinned_at is None else from_micros(note.pinned_at),
        past_at=None if note.past_at is None else from_micros(note.past_at),
        created_at=from_micros(note.created_at),
        updated_at=from_micros(note.updated_at),
    )

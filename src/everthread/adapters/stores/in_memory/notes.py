"""Notes in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from everthread.adapters.stores.in_memory.rows import InMemoryDatabase
from everthread.adapters.stores.layout import note_words
from everthread.adapters.stores.nearest import nearest
from everthread.core.notes import (
    Note,
    NoteChange,
    NoteConversation,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteQuery,
    NotesFound,
    NotesSeen,
    NoteState,
    Topic,
    UseCount,
)
from everthread.core.queries import Query
from everthread.history.search_query import has_term

R = TypeVar("R")


class InMemoryNotes:
    """`store.notes` of core/ports.py: the notes of all owners."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database
        self._kept: dict[tuple[str, NoteKey], Note] = {}
        self._given = 0

    async def change(self, owner: str, change: NoteChange[R]) -> R:
        needs = change.needs()
        living = {row.info.id: row for row in self._database.living(owner, None)}
        places = [
            NoteConversation(id, living[id].info.parent_id, living[id].info.off_record, len(living[id].entries))
            for id in needs.conversations
            if id in living
        ]
        stands = [
            source
            for source in needs.sources
            for entry in (living[source.conversation].by_seq([source.seq]) if source.conversation in living else ())
            if not entry.is_erased
        ]
        seen = NotesSeen(
            by_key={key: self._kept[owner, key] for key in needs.keys if (owner, key) in self._kept},
            by_topic={topic: [one for one in self._about(owner, topic) if not one.state] for topic in needs.topics},
            conversations={place.id: place for place in places},
            sources=frozenset(stands),
        )
        decision = change.decide(seen, self._database.now())
        self._apply(owner, decision)
        return decision.result

    def _apply(self, owner: str, decision: NoteDecision[R]) -> None:
        gone = [*decision.remove, *(one.key for topic in decision.remove_topics for one in self._about(owner, topic))]
        for key in gone:
            self._kept.pop((owner, key), None)
        for note in decision.put:
            known = self._kept.get((owner, note.key))
            if known is None:
                self._given += 1
            self._kept[owner, note.key] = note._replace(number=self._given if known is None else known.number)

    def _about(self, owner: str, topic: Topic) -> Sequence[Note]:
        return [one for one in self._of(owner) if (one.kind, one.namespace, one.topic) == topic]

    def _of(self, owner: str) -> Sequence[Note]:
        return [note for (whose, _), note in self._kept.items() if whose == owner]

    async def owners(self) -> Sequence[str]:
        return sorted({owner for owner, _ in self._kept})

    def erase_memory(self, owner: str, id: str) -> bool:
        """Destroy one memory; whether there was one."""
        return self._kept.pop((owner, NoteKey(NoteKind.MEMORY, id)), None) is not None

    async def list(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        if query.keys is not None:
            return [self._kept[owner, key] for key in query.keys if (owner, key) in self._kept]
        found = [
            note
            for note in self._of(owner)
            if note.kind == query.kind
            and note.state in query.states
            and (query.namespaces is None or note.namespace in query.namespaces)
            and (not query.pinned_only or note.pinned_at is not None)
            and (query.before is None or note.number < query.before)
        ]
        return sorted(found, key=lambda note: -note.number)[: query.limit]

    async def namespaces(self, owner: str, kind: int) -> Mapping[str, int]:
        return Counter(note.namespace for note in self._of(owner) if note.kind == kind and note.state == NoteState.LIVE)

    async def find(
        self, owner: str, namespaces: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        there = [note for note in self._of(owner) if note.namespace in namespaces and note.is_found]
        words = {note.number: frozenset((note_words(owner, note) or "").split(" ")) for note in there}
        found = sorted(
            (one for one in there if matches(query, words[one.number], any_word)), key=lambda one: -one.number
        )
        return NotesFound(
            found=found[:cap],
            truncated=len(found) > cap,
            frequencies={term.token: sum(has_term(term, some) for some in words.values()) for term in query.terms},
            total=len(there),
        )

    async def nearest(
        self, owner: str, namespaces: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        there = {
            one.number: one
            for one in self._of(owner)
            if one.namespace in namespaces and one.is_found and one.model == model
        }
        rows = [(number, one.vector) for number, one in there.items() if one.vector is not None]
        return [(there[number], score) for number, score in nearest(rows, vector, limit)]

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        mine = [row.uses for ref, row in self._database.rows.items() if ref.owner == owner]
        found = [
            UseCount(*use, sum(one[use][0] for one in having), len(having), max(one[use][1] for one in having))
            for use in {use for one in mine for use in one}
            for having in [[one for one in mine if use in one]]
        ]
        return sorted(found, key=lambda one: (-one.uses, -one.last_at, one.name))[:limit]

    def erase(self, owner: str, conversation: str | None, seqs: Sequence[int] | None) -> int:
        """Destroy the notes of an owner, those made from a conversation, or from some entries of it."""
        gone = [
            note
            for note in self._of(owner)
            if (conversation is None or note.source_conversation == conversation)
            and (seqs is None or note.source_seq in seqs)
        ]
        for note in gone:
            del self._kept[owner, note.key]
        return len(gone)


def matches(query: Query, words: frozenset[str], any_word: bool) -> bool:
    """Whether a text with these words is one that a search asks for."""
    required = [term for group in query.phrases for term in group.terms] if any_word else query.terms
    others = [term for term in query.terms if term not in required]
    return all(has_term(term, words) for term in required) and (
        not others or any(has_term(term, words) for term in others)
    )

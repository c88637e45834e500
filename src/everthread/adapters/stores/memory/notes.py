"""Notes in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from everthread.adapters.stores.layout import note_words
from everthread.adapters.stores.nearest import nearest
from everthread.core.notes import (
    Note,
    NoteChange,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteQuery,
    NotesFound,
    NotesSeen,
    NoteState,
    Place,
    Source,
    Topic,
)
from everthread.core.queries import Query
from everthread.history.search_query import has_term

R = TypeVar("R")


class Noticeboard:
    """The notes of all owners."""

    __slots__ = ("_given", "_kept")

    def __init__(self) -> None:
        self._kept: dict[tuple[str, NoteKey], Note] = {}
        self._given = 0

    def change(
        self, owner: str, wanted: NoteChange[R], places: Sequence[Place], stands: Sequence[Source], now: int
    ) -> R:
        """Look, decide, write."""
        needs = wanted.needs()
        seen = NotesSeen(
            by_key={key: self._kept[owner, key] for key in needs.keys if (owner, key) in self._kept},
            by_topic={topic: [one for one in self._about(owner, topic) if not one.state] for topic in needs.topics},
            conversations={place.id: place for place in places},
            sources=frozenset(stands),
        )
        decision = wanted.decide(seen, now)
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

    def _about(self, owner: str, topic: Topic) -> list[Note]:
        return [one for one in self._of(owner) if (one.kind, one.shelf, one.topic) == topic]

    def _of(self, owner: str) -> list[Note]:
        return [note for (whose, _), note in self._kept.items() if whose == owner]

    def owners(self) -> list[str]:
        """Every owner that has some."""
        return sorted({owner for owner, _ in self._kept})

    def erase_memory(self, owner: str, id: str) -> bool:
        """Destroy one memory; whether there was one."""
        return self._kept.pop((owner, NoteKey(NoteKind.MEMORY, id)), None) is not None

    def listed(self, owner: str, query: NoteQuery) -> list[Note]:
        """Those that a query names, newest first."""
        if query.keys is not None:
            return [self._kept[owner, key] for key in query.keys if (owner, key) in self._kept]
        found = [
            note
            for note in self._of(owner)
            if note.kind == query.kind
            and note.state in query.states
            and (query.shelves is None or note.shelf in query.shelves)
            and (not query.pinned_only or note.pinned_at is not None)
            and (query.before is None or note.number < query.before)
        ]
        return sorted(found, key=lambda note: -note.number)[: query.limit]

    def shelves(self, owner: str, kind: int) -> Mapping[str, int]:
        """How many live notes of a kind lie on each shelf."""
        return Counter(note.shelf for note in self._of(owner) if note.kind == kind and note.state == NoteState.LIVE)

    def find(self, owner: str, where: Sequence[str], query: Query, cap: int, any_word: bool) -> NotesFound:
        """At most `cap` live notes on these shelves that match, newest first."""
        there = [note for note in self._of(owner) if note.shelf in where and note.is_found]
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

    def near(self, owner: str, where: Sequence[str], model: str, vector: bytes, limit: int) -> list[tuple[Note, float]]:
        """The nearest live notes on these shelves, best first."""
        there = {
            one.number: one for one in self._of(owner) if one.shelf in where and one.is_found and one.model == model
        }
        rows = [(number, one.vector) for number, one in there.items() if one.vector is not None]
        return [(there[number], score) for number, score in nearest(rows, vector, limit)]

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

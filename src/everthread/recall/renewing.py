"""Give notes the vectors of another embedder: memories and documents follow when the model changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from everthread.core.notes import Note, NoteDecision, NoteKey, NoteKind, NoteNeeds, NotesSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Put these vectors in the place of those that the notes have; texts, and when they changed, stay."""

    model: str
    notes: Sequence[Note]
    """As they were when their texts were embedded."""
    vectors: Sequence[bytes]

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[*(note.key for note in self.notes), *_documents_of(self.notes)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[int]:
        """A note that went meanwhile, or says something else now, is left alone; gives how many were not."""
        renewed = [
            known._replace(model=self.model, vector=vector)
            for note, vector in zip(self.notes, self.vectors, strict=True)
            if (known := seen.by_key.get(note.key)) is not None and known.text == note.text
        ]
        return NoteDecision(result=len(renewed), put=[*renewed, *self._documents(seen.by_key)])

    def _documents(self, seen: Mapping[NoteKey, Note]) -> list[Note]:
        """Documents say whose vectors their passages have, so that the same one added again is nothing new."""
        found = [seen[key] for key in _documents_of(self.notes) if key in seen]
        return [
            note._replace(record=orjson.dumps({**orjson.loads(note.record), "model": self.model})) for note in found
        ]


def _documents_of(notes: Sequence[Note]) -> list[NoteKey]:
    topics = dict.fromkeys(note.topic for note in notes if note.kind == NoteKind.PASSAGE)
    return [NoteKey(NoteKind.DOCUMENT, topic) for topic in topics if topic is not None]

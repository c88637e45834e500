"""Split documents into passages along their structure, and decide what may happen to them as notes. Pure.

Markdown is cut at its headings, which each passage of a section carries; a long section, a plain text and the pages of
a PDF are cut as long messages are (`passages`): at empty lines, line ends, sentence ends, in any script.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NamedTuple

import orjson

from everthread.core.clock import from_micros
from everthread.core.documents import Document, Passage, ReadDocument
from everthread.core.errors import NotFound
from everthread.core.notes import Note, NoteDecision, NoteKey, NoteKind, NoteNeeds, NotesSeen, Topic
from everthread.text.passages import estimate_tokens, split_passages

_HEADING = re.compile(r"^(#{1,6})[ \t]++(\S.*)$")
_CHAPTER = re.compile(r"^\s{0,3}第[一二三四五六七八九十百零〇\d]{1,6}[章节篇部编回]\s*+\S{0,30}+\s*+$")
_FENCE = re.compile(r"^\s{0,3}(```|~~~)")
_HEADING_CHARACTERS = 120


class NewPassage(NamedTuple):
    """A passage before it is stored."""

    heading: str
    text: str

    @property
    def indexed_text(self) -> str:
        """With the headings above it: by them it is found too."""
        return f"{self.heading}\n{self.text}" if self.heading else self.text


def split_document(document: ReadDocument) -> list[NewPassage]:
    """The passages of a document, in order; none when it says nothing."""
    pieces: list[NewPassage] = []
    for number, page in enumerate(document.pages, 1):
        is_paged = document.media_type == "application/pdf"
        for heading, body in [(f"page {number}", page)] if is_paged else _sections(page):
            parts = (body[start:end].strip() for start, end in split_passages(body))
            pieces += [NewPassage(heading, part) for part in parts if part]
    return pieces


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """(headings above it, body) of each section; what is in a code block is no heading."""
    path: list[tuple[int, str]] = []
    body: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_code ^= _FENCE.match(line) is not None
        level, title = (0, "") if is_code else _heading(line)
        if level:
            yield _join_headings(path), "\n".join(body)
            path, body = [*(one for one in path if one[0] < level), (level, title)], []
        else:
            body.append(line)
    yield _join_headings(path), "\n".join(body)


def _heading(line: str) -> tuple[int, str]:
    found = _HEADING.match(line)
    if found is not None:
        return len(found[1]), found[2].rstrip(" \t#")
    return (1, line.strip()) if _CHAPTER.match(line) else (0, "")


def _join_headings(path: Sequence[tuple[int, str]]) -> str:
    return " › ".join(title[:_HEADING_CHARACTERS] for _, title in path)


# -- as they are stored --------------------------------------------------------------------------------------------


def documents_namespace(collection: str) -> str:
    """Where the documents of a collection lie."""
    return f"documents/{collection}"


def collection_name(namespace: str) -> str:
    """The collection whose namespace it is."""
    return namespace.partition("/")[2]


def passages_namespace(collection: str) -> str:
    """Where the passages of a collection lie."""
    return f"kb/{collection}"


def document_key(collection: str, id: str) -> NoteKey:
    """A document's key. Names may be long, and keys of an index may not."""
    return NoteKey(NoteKind.DOCUMENT, _digest(collection, id))


def _digest(*names: str) -> str:
    return sha256("\x1f".join(names).encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutDocument:
    """Keep a document in the place of what was there by its name. The same again changes nothing."""

    collection: str
    id: str
    title: str
    read: ReadDocument
    digest: str
    passages: Sequence[NewPassage]
    vectors: Sequence[bytes] = ()
    model: str | None = None
    """Who made the vectors, one for each passage."""

    @property
    def key(self) -> NoteKey:
        return document_key(self.collection, self.id)

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[self.key])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[Document]:
        known = seen.by_key.get(self.key)
        if known is not None and is_unchanged(known, self.digest, self.model):
            return NoteDecision(result=replace(note_to_document(known), outcome="same"))
        record: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "media_type": self.read.media_type,
            "characters": sum(map(len, self.read.pages)),
            "passages": len(self.passages),
            "digest": self.digest,
            "model": self.model,
            "outcome": "added" if known is None else "replaced",
        }
        note = Note(*self.key, documents_namespace(self.collection), "", orjson.dumps(record), now, now)
        return NoteDecision(
            result=note_to_document(note),
            put=[note, *(self._passage_note(at, passage, now) for at, passage in enumerate(self.passages))],
            remove_topics=[passages_of(self.collection, self.id)],
        )

    def _passage_note(self, position: int, passage: NewPassage, now: int) -> Note:
        record = {"id": self.id, "title": self.title, "heading": passage.heading, "position": position}
        return Note(
            kind=NoteKind.PASSAGE,
            id=_digest(self.collection, self.id, str(position)),
            namespace=passages_namespace(self.collection),
            text=passage.indexed_text,
            record=orjson.dumps(record),
            created_at=now,
            updated_at=now,
            topic=self.key.id,
            model=self.model,
            vector=self.vectors[position] if self.vectors else None,
        )


def is_unchanged(known: Note, digest: str, model: str | None) -> bool:
    """Whether a document stands as it would be written: the same bytes, and vectors by the same embedder or none."""
    record = orjson.loads(known.record)
    return bool(record["digest"] == digest and (model is None or record["model"] == model))


def passages_of(collection: str, id: str) -> Topic:
    """What names all passages of a document."""
    return Topic(NoteKind.PASSAGE, passages_namespace(collection), document_key(collection, id).id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDocument:
    """Take out a document with its passages."""

    collection: str
    id: str

    def needs(self) -> NoteNeeds:
        return NoteNeeds(keys=[document_key(self.collection, self.id)])

    def decide(self, seen: NotesSeen, now: int) -> NoteDecision[None]:
        key = document_key(self.collection, self.id)
        if key not in seen.by_key:
            raise NotFound(f"no document {self.id!r} in collection {self.collection!r}")
        return NoteDecision(result=None, remove=[key], remove_topics=[passages_of(self.collection, self.id)])


def note_to_document(note: Note) -> Document:
    """A document as it was stored."""
    record = orjson.loads(note.record)
    return Document(
        collection=collection_name(note.namespace),
        id=record["id"],
        title=record["title"],
        media_type=record["media_type"],
        characters=record["characters"],
        passages=record["passages"],
        digest=record["digest"],
        outcome=record["outcome"],
        added_at=from_micros(note.updated_at),
    )


def note_to_passage(note: Note) -> Passage:
    """A passage as it was stored."""
    record = orjson.loads(note.record)
    heading: str = record["heading"]
    return Passage(
        collection=collection_name(note.namespace),
        document_id=record["id"],
        title=record["title"],
        heading=heading,
        position=record["position"],
        text=note.text.removeprefix(f"{heading}\n") if heading else note.text,
        tokens=estimate_tokens(note.text),
    )

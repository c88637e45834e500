"""Knowledge documents of an owner: named collections of documents, split into passages that a search finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, overload

from everthread.core.errors import Invalid

Added = Literal["added", "replaced", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """The text of a file, as a document reader extracted it."""

    media_type: str
    """text/plain, text/markdown or application/pdf"""
    pages: Sequence[str]
    """One for a text; of a PDF its pages in order."""


Read = Callable[[bytes, str], ReadDocument]
"""Reads the bytes of a file, by its name where they do not tell what it is. Invalid for what has no text."""


def no_reader(data: bytes, name: str) -> ReadDocument:
    """The document reader of a set-up without one: raises for every file."""
    raise Invalid("files cannot be read here; add their text", field="source")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as it was last added.

    ```python
    document = await et.knowledge.add("local", "handbook", "Refunds are made within 30 days.", id="refunds.md")
    print(document.outcome, document.passages)
    ```
    """

    collection: str
    id: str
    """Its name within the collection, such as a file name."""
    title: str
    media_type: str
    characters: int
    passages: int
    digest: str
    """The hash of its bytes, by which an unchanged document is recognised."""
    outcome: Added = "same"
    """What adding it did: `added`, `replaced`, or `same` when nothing changed."""
    added_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A named collection of documents.

    ```python
    for collection in await et.knowledge.collections("local"):
        print(collection.name, collection.documents, "documents")
    ```
    """

    name: str
    documents: int
    passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A part of a document, small enough to be quoted.

    ```python
    for hit in await et.knowledge.search("local", "handbook", "refunds"):
        print(hit.passage.title, hit.passage.heading, hit.passage.text)
    ```
    """

    collection: str
    document_id: str
    title: str
    heading: str
    """The headings above it, or its page; empty if there are none."""
    position: int
    """Its position in the document: 0, 1, 2 …"""
    text: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageHit:
    """A passage that a search found. Scores only compare within one search.

    ```python
    hits = await et.knowledge.search("local", "handbook", "refunds")
    print([(hit.score, hit.passage.document_id) for hit in hits])
    ```
    """

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class PassageHits(Sequence[PassageHit]):
    """The passages that a search found, best first.

    ```python
    hits = await et.knowledge.search("local", None, "How long can I return something?")
    print(len(hits), "found by words alone" if hits.degraded else "")
    ```
    """

    items: tuple[PassageHit, ...]
    degraded: bool = False
    """Whether the embedder failed, so that only words were searched."""

    @overload
    def __getitem__(self, index: int) -> PassageHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PassageHit, ...]: ...
    def __getitem__(self, index: int | slice) -> PassageHit | tuple[PassageHit, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Which collection a question should be looked up in.

    ```python
    route = await et.knowledge.route("local", "How long can I ask for a refund?")
    if route.collection is not None:
        hits = await et.knowledge.search("local", route.collection, "refund")
    ```
    """

    collection: str | None
    """None when no collection fits."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """How much of the question each collection covers, 0 to 1, best first."""
    why: str = ""
    """Why it was chosen, or why none was."""

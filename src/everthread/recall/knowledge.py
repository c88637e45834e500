"""Knowledge bases: what `et.knowledge` does. `document_intents` splits documents and decides; this checks what callers
give, reads files, asks the store, and chooses the collection that a question is for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from everthread.core.documents import Collection, Document, PassageHit, PassageHits, Read, ReadDocument, Route
from everthread.core.embeddings import Embedder
from everthread.core.errors import Invalid, ModelError, NotFound, StoreError
from everthread.core.ids import check_id, check_text
from everthread.core.notes import NoteKind, NoteQuery, NotesFound
from everthread.core.nouns import MAX_PAGE, Page
from everthread.core.ports import Store
from everthread.core.queries import Query
from everthread.history.arguments import check_count
from everthread.history.search import MAX_MATCHES
from everthread.history.search_query import MAX_QUERY_CHARS, parse_query
from everthread.recall.document_intents import (
    NewPassage,
    PutDocument,
    RemoveDocument,
    collection_name,
    document_key,
    documents_namespace,
    is_unchanged,
    note_to_document,
    note_to_passage,
    passages_namespace,
    split_document,
)
from everthread.recall.note_search import check_query, content_words, find_notes, page_cursor, parse_page_cursor
from everthread.text.bm25 import idf
from everthread.text.numbers import number_pattern
from everthread.text.words import character_pairs, fold, is_unspaced, split_runs_and_words, stem, tokenize

MAX_BYTES: Final = 50_000_000
MAX_CHARACTERS: Final = 10_000_000
MAX_NAME_CHARACTERS: Final = 256
_BATCH: Final = 64
_FILE_NAME: Final = re.compile(r"[^\s<>]{1,250}\.(?:md|markdown|txt|pdf)", re.IGNORECASE)
MIN_COVERAGE: Final = 0.5
"""A collection is chosen for a question when its best passage has at least this share of what the question asks for."""

MIN_CLOSENESS: Final = 0.28
"""… or when its best passage is this close to the question in meaning (cosine) …"""
MIN_MARGIN: Final = 0.08
"""… and so much closer than the best of every other collection."""
_NEAREST: Final = 50
_MIN_UNDERSTOOD: Final = 0.5
"""A model that knows less of the words of a question is not asked."""


class Knowledge:
    """Collections of documents, by owner: `et.knowledge`.

    ```python
    await et.knowledge.add("local", "handbook", "Refunds are made within 30 days.", id="refunds.md")
    for hit in await et.knowledge.search("local", "handbook", "refunds"):
        print(hit.passage.text)
    ```
    """

    def __init__(self, store: Store, read: Read, embedder: Embedder | None = None) -> None:
        self._store = store
        self._read = read
        self._embedder = embedder

    async def add(
        self,
        owner: str,
        collection: str,
        source: str | bytes | Path,
        *,
        id: str | None = None,
        title: str | None = None,
    ) -> Document:
        """Add a document: a text, the bytes of a file, or the path of one (text, Markdown, PDF).

        `id` is its name within the collection; by default a file's name, or the hash of a text. Adding the same
        document again changes nothing; a changed one replaces the old one at once. `outcome` of the result says which.
        Raises Invalid when it cannot be read: no text in it, damaged, encrypted, or too large.

        ```py
        await et.knowledge.add("local", "handbook", Path("refunds.pdf"))
        ```
        """
        check_id(owner, "owner")
        check_id(collection, "collection")
        data, name = await _read_source(source)
        digest = sha256(data).hexdigest()
        known_as = check_name(id if id is not None else name or digest[:16])
        same_id = NoteQuery(kind=NoteKind.DOCUMENT, keys=[document_key(collection, known_as)])
        model = None if self._embedder is None else self._embedder.name
        for note in await self._store.notes.list(owner, same_id):
            if is_unchanged(note, digest, model):
                return replace(note_to_document(note), outcome="same")
        read = await asyncio.to_thread(self._read_all, source, data, name or known_as)
        passages = await asyncio.to_thread(split_document, read)
        if not passages:
            raise Invalid("contains no text", field="source")
        vectors = await self._embed(passages)
        change = PutDocument(
            collection=collection,
            id=known_as,
            title=check_name(title) if title is not None else known_as,
            read=read,
            digest=digest,
            passages=passages,
            vectors=vectors,
            model=self._embedder.name if self._embedder is not None and vectors else None,
        )
        return await self._store.notes.change(owner, change)

    async def _embed(self, passages: Sequence[NewPassage]) -> Sequence[bytes]:
        """A vector for each passage; none at all without an embedder, or when it fails: words find them all the same,
        and adding the document again tries anew."""
        if self._embedder is None:
            return ()
        texts = [passage.indexed_text for passage in passages]
        try:
            batches = [texts[at : at + _BATCH] for at in range(0, len(texts), _BATCH)]
            return [vector for batch in batches for vector in await self._embedder.passages(batch)]
        except ModelError:
            return ()

    def _read_all(self, source: str | bytes | Path, data: bytes, name: str) -> ReadDocument:
        if isinstance(source, str):
            is_markdown = name.lower().endswith((".md", ".markdown")) or source.lstrip().startswith("# ")
            media_type = "text/markdown" if is_markdown else "text/plain"
            return ReadDocument(media_type=media_type, pages=[data.decode()])
        return self._read(data, name)

    async def collections(self, owner: str) -> Sequence[Collection]:
        """List the owner's collections by name, with how much is in each."""
        documents = await self._store.notes.namespaces(check_id(owner, "owner"), NoteKind.DOCUMENT)
        passages = await self._store.notes.namespaces(owner, NoteKind.PASSAGE)
        return [
            Collection(
                name=name,
                documents=documents[documents_namespace(name)],
                passages=passages.get(passages_namespace(name), 0),
            )
            for name in sorted(map(collection_name, documents))
        ]

    async def list(self, owner: str, collection: str, *, limit: int = 100, cursor: str | None = None) -> Page[Document]:
        """List the documents of a collection page by page, the latest first."""
        check_count(limit, "limit", most=MAX_PAGE)
        query = NoteQuery(
            kind=NoteKind.DOCUMENT,
            namespaces=[documents_namespace(check_id(collection, "collection"))],
            before=None if cursor is None else parse_page_cursor(cursor, check_id(owner, "owner")),
            limit=limit + 1,
        )
        notes = await self._store.notes.list(check_id(owner, "owner"), query)
        shown = notes[:limit]
        following = page_cursor(owner, shown[-1].number) if shown and len(notes) > limit else None
        return Page(items=[note_to_document(note) for note in shown], next_cursor=following)

    async def remove(self, owner: str, collection: str, id: str | None = None) -> int:
        """Remove a document, or with no `id` the whole collection, and return how many documents that were.

        Raises NotFound when there is none. Traces of the text in free database pages go with the next erasure.
        """
        check_id(owner, "owner")
        check_id(collection, "collection")
        if id is not None:
            await self._store.notes.change(owner, RemoveDocument(collection=collection, id=check_name(id)))
            return 1
        removed = 0
        while page := (await self.list(owner, collection, limit=MAX_PAGE)).items:
            for document in page:
                await self._store.notes.change(owner, RemoveDocument(collection=collection, id=document.id))
            removed += len(page)
        if not removed:
            raise NotFound(f"no collection {collection!r}")
        return removed

    async def search(
        self,
        owner: str,
        collection: str | Sequence[str] | None,
        query: str,
        *,
        limit: int = 5,
        max_tokens: int | None = None,
    ) -> PassageHits:
        """Search passages by words and, if there is an embedder, by meaning; best first.

        `collection` is one name, several, or None for all. With `max_tokens`, as many of the best as fit into it.
        """
        question = check_query(query)
        check_count(limit, "limit", most=MAX_PAGE)
        names = await self._names(check_id(owner, "owner"), collection)
        namespaces = [passages_namespace(name) for name in names]
        best, degraded = await find_notes(self._store.notes, self._embedder, owner, namespaces, question, limit=limit)
        found = [PassageHit(passage=note_to_passage(one.note), score=one.score) for one in best]
        kept = found if max_tokens is None else _within(found, check_count(max_tokens, "max_tokens"))
        return PassageHits(tuple(kept), degraded)

    async def _names(self, owner: str, given: str | Sequence[str] | None) -> Sequence[str]:
        known = sorted(map(collection_name, await self._store.notes.namespaces(owner, NoteKind.DOCUMENT)))
        if given is None:
            return known
        wanted = [given] if isinstance(given, str) else list(given)
        for name in wanted:
            if check_id(name, "collection") not in known:
                raise NotFound(f"no collection {name!r}")
        return wanted

    async def route(self, owner: str, query: str, collections: Sequence[str] | None = None) -> Route:
        """Choose the collection that a question should be looked up in, among the named ones or all.

        By words, the collection whose best passage covers most of what the question asks for, if that is half of it or
        more. Otherwise by meaning, where there is an embedder: the collection with the passage closest to the question,
        if it is close, and clearly closer than that of any other. `why` says which, or why none was chosen.
        """
        question = check_query(query)[:MAX_QUERY_CHARS]
        names = await self._names(check_id(owner, "owner"), collections)
        namespaces = [passages_namespace(name) for name in names]
        parsed = parse_query(content_words(question)) if namespaces else None
        if not parsed:
            return Route(collection=None)
        found = await self._store.notes.find(owner, namespaces, parsed, cap=MAX_MATCHES, any_word=True)
        scores = dict.fromkeys(names, 0.0)
        weighted = weigh_question(question, parsed, found)
        for note in found.found:
            name = collection_name(note.namespace)
            scores[name] = max(scores[name], coverage(note.text, weighted))
        ranked = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])))
        best = next(iter(ranked), None)
        if best and ranked[best] >= MIN_COVERAGE:
            why = f"by words: a passage has {ranked[best]:.0%} of what the question asks for"
            return Route(collection=best, scores=ranked, why=why)
        collection, why = await self._route_by_meaning(owner, names, question)
        return Route(collection=collection, scores=ranked, why=why)

    async def _route_by_meaning(self, owner: str, names: Sequence[str], question: str) -> tuple[str | None, str]:
        """The collection whose best passage is clearly the closest, and why; or why there is none."""
        too_few_words = f"no passage has {MIN_COVERAGE:.0%} of what the question asks for"
        if self._embedder is None or self._embedder.understood_share(question) < _MIN_UNDERSTOOD:
            return None, too_few_words
        namespaces = [passages_namespace(name) for name in names]
        try:
            vector = await self._embedder.query(question)
            nearest = await self._store.notes.nearest(owner, namespaces, self._embedder.name, vector, limit=_NEAREST)
        except (ModelError, StoreError):
            return None, f"{too_few_words}, and the meaning could not be compared"
        closest: dict[str, float] = {}
        for note, cosine in nearest:
            closest.setdefault(collection_name(note.namespace), cosine)
        # A collection that is not among the nearest has nothing closer than the last of them.
        floor = nearest[-1][1] if len(nearest) == _NEAREST else 0.0
        first, second = [*sorted(closest, key=lambda name: -closest[name]), None, None][:2]
        if first is None or closest[first] < MIN_CLOSENESS:
            return None, f"{too_few_words}, and none is close to it in meaning"
        margin = closest[first] - (floor if second is None else closest[second])
        if margin < MIN_MARGIN:
            return None, f"{too_few_words}, and {first} and {second} are equally close to it in meaning"
        return first, f"by meaning: its best passage is {closest[first]:.2f} close, {margin:.2f} closer than any other"


def _within(hits: Sequence[PassageHit], room: int) -> list[PassageHit]:
    kept: list[PassageHit] = []
    for hit in hits:
        room -= hit.passage.tokens
        if room < 0:
            break
        kept.append(hit)
    return kept


# -- which collection a question is for ----------------------------------------------------------------------------
#
# A collection is chosen by the share of a question that its best passage covers. A word counts by how rare it is among
# the passages; what merely asks ("mean", "explain") does not count. Chinese is counted by characters and by pairs of
# them, half and half: pairs alone make two words of every three, and single characters are found by chance.

_FUNCTION_CHARACTERS = re.compile(
    "[是的了吗呢吧么什怎样多少几哪谁我你他她它们这那请问一下有没在和与或及就都也还要会能可以把被给对为从到啊呀嘛]+"
)

_ASKING = frozenset(
    map(stem, "mean means explain tell show find look give help happen describe say list question".split())
)
_MIN_PASSAGES = 50


@dataclass(frozen=True, slots=True)
class WeightedQuestion:
    """The words of a question, and how much each of them weighs."""

    words: Mapping[str, float]
    numbers: Mapping[str, re.Pattern[str]]
    """What finds those of the words that are numbers."""
    runs: Sequence[str]
    """Of scripts that are written without spaces, without function words."""

    @property
    def weight(self) -> float:
        return sum(self.words.values()) + sum(map(_run_weight, self.runs))


def weigh_question(text: str, query: Query, found: NotesFound) -> WeightedQuestion:
    """A question, by how rare its words are where it was looked for."""
    spaced = [term.token for term in query.terms if not is_unspaced(term.token) and term.token not in _ASKING]
    # As if there were some passages more: in a small collection every word is common. A word that no passage has counts
    # as much as one that a single passage has.
    total = max(found.total, _MIN_PASSAGES)
    idfs = {term: idf(max(found.frequencies.get(term, 0), 1), total) for term in spaced}
    greatest = max(idfs.values(), default=1.0)
    runs = [
        part for run, _ in split_runs_and_words(fold(text)) if run for part in _FUNCTION_CHARACTERS.split(run) if part
    ]
    numbers = {term.token: number_pattern(term) for term in query.terms if term.pattern}
    return WeightedQuestion({term: one / greatest for term, one in idfs.items()}, numbers, runs)


def coverage(text: str, question: WeightedQuestion) -> float:
    """How much of the question a passage has, 0 to 1."""
    if not question.weight:
        return 0.0
    tokens = set(tokenize(text)) if question.words else set()
    folded = fold(text)
    tokens |= {number for number, pattern in question.numbers.items() if pattern.search(folded)}
    covered = sum(weight for word, weight in question.words.items() if word in tokens)
    covered += sum(_run_weight(run) * _run_coverage(run, folded) for run in question.runs)
    return covered / question.weight


def _run_weight(run: str) -> float:
    """A word of Chinese has two characters."""
    return len(run) / 2


def _run_coverage(run: str, text: str) -> float:
    characters = sum(char in text for char in run) / len(run)
    if len(run) == 1:
        return characters
    return (characters + sum(pair in text for pair in character_pairs(run)) / (len(run) - 1)) / 2


# -- what callers give ---------------------------------------------------------------------------------------------


async def _read_source(source: object) -> tuple[bytes, str | None]:
    """The bytes of a document, and the name of its file where it is one."""
    if isinstance(source, Path):
        return await asyncio.to_thread(_read_file, source), source.name
    if isinstance(source, str):
        if len(source) > MAX_CHARACTERS:
            raise _too_large(f"{len(source):,} characters", f"{MAX_CHARACTERS:,}")
        if _FILE_NAME.fullmatch(source.strip()) is not None:  # the disk is not asked: a caller from afar could probe it
            raise Invalid(
                f"looks like a file's name, not its text; to add the file give Path({source!r})", field="source"
            )
        return source.replace("\x00", "").encode("utf-8", "replace"), None
    if not isinstance(source, bytes):
        raise Invalid(f"must be a text, bytes or a Path, not {type(source).__name__}", field="source")
    if len(source) > MAX_BYTES:
        raise _too_large(f"{len(source):,} bytes", f"{MAX_BYTES:,}")
    return source, None


def _read_file(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise _too_large(f"{size:,} bytes", f"{MAX_BYTES:,}")
        return path.read_bytes()
    except OSError as problem:
        raise Invalid(
            f"{path} cannot be read: {problem.strerror or type(problem).__name__}", field="source"
        ) from problem


def _too_large(size: str, most: str) -> Invalid:
    return Invalid(f"has {size}, at most {most} are taken; split it", field="source")


def check_name(name: object) -> str:
    """A document's name, or Invalid."""
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_NAME_CHARACTERS:
        raise Invalid(f"must be a text of 1 to {MAX_NAME_CHARACTERS} characters", field="id")
    return check_text(name, "id")

"""Keep the vectors of a conversation in step with its log: a view of it that can be made anew at any time.

Passages are cut and embedded in the order of the log, and kept as they are made; so how far it has come is the newest
entry that has a vector, and whoever goes on after a crash goes on there. What was replaced by a revision loses its
vectors, and so does a model that is used no more once the new one has caught up. Nothing here reads or writes what is
off the record. Memories and passages of documents have their vectors with them, and are given others by `index_notes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from everthread.core import payloads
from everthread.core.embeddings import Embedder, VectorPart, Vectors
from everthread.core.entries import Entry, Kind, Revision
from everthread.core.errors import Erased, ModelError, NotFound, StoreDamaged
from everthread.core.notes import Note, NoteDecision, NoteKey, NoteKind, NoteNeeds, NoteQuery, NotesSeen, NoteState
from everthread.core.nouns import ConversationInfo, Message, Ref
from everthread.core.ports import Store
from everthread.recall.memory_intents import NoteVector
from everthread.text.passages import split_passages

_PAGE = 100
_BATCH_PASSAGES = 64
"""So many passages are embedded before they are kept: what a crash can cost."""
_MAX_PASSAGES = 200
"""Of one message: a log of 10 MB pasted in is found by its words, and by the meaning of its beginning."""
_MAX_SCANNED = 50
_INDEXED_STATES = (NoteState.LIVE, NoteState.FORGOTTEN)
"""What is forgotten may be brought back, and is found as before then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticIndex:
    """What finds by meaning: the model that makes vectors, and what keeps them."""

    embedder: Embedder
    vectors: Vectors


async def index_conversation(
    store: Store, meaning: SemanticIndex, info: ConversationInfo, *, anew: bool = False
) -> int:
    """Embed what is not embedded yet of a conversation, or all of it; of what was erased meanwhile, nothing."""
    ref = Ref(info.owner, info.id)
    try:
        if anew:
            await meaning.vectors.forget(ref.owner, ref.id, model=meaning.embedder.name)
        return await catch_up(store, meaning, ref)
    except (NotFound, Erased):
        return 0


async def catch_up(store: Store, meaning: SemanticIndex, ref: Ref) -> int:
    """Embed what is not embedded yet of what is there now; gives how many passages that were.

    Who talks on while this works has written another job: to follow them would mean a batch for each message.
    """
    info = await store.conversations.get(ref)
    if info.off_record:
        return 0
    indexed = await meaning.vectors.indexed(ref)
    model = meaning.embedder.name
    known = indexed.get(model)
    after, last = known.newest_seq if known else 0, info.entry_count
    embedded = 0
    while after < last:
        entries = await store.log.scan(ref, after=after, limit=min(_PAGE, last - after), with_tokens=False)
        if not entries:
            break
        embedded += await _embed(meaning, ref, entries)
        revised = {
            entry.revises for entry in entries if entry.change_kind == Revision.REPLACE and entry.kind == Kind.MESSAGE
        }
        if replaced := sorted(seq for seq in revised if seq is not None):
            await meaning.vectors.forget(ref.owner, ref.id, seqs=replaced)
        after = entries[-1].seq
    for old in indexed.keys() - {model}:
        await meaning.vectors.forget(ref.owner, ref.id, model=old)
    return embedded


async def is_behind(store: Store, meaning: SemanticIndex, ref: Ref) -> bool:
    """Whether some message has no vector yet."""
    info = await store.conversations.get(ref)
    known = (await meaning.vectors.indexed(ref)).get(meaning.embedder.name)
    newest = known.newest_seq if known else 0
    if info.off_record or newest >= info.entry_count:
        return False
    entries = await store.log.scan(ref, after=newest, limit=_MAX_SCANNED, with_tokens=False)
    return any(map(embeddable_parts, entries))


def embeddable_parts(entry: Entry) -> list[str]:
    """The passages of an entry that get vectors, each under the name of who says it: people ask for what somebody did.
    None unless it is a message that says something."""
    if entry.kind != Kind.MESSAGE or entry.is_erased or entry.change_kind == Revision.STUB:
        return []
    try:
        payload = Message(entry).payload
    except StoreDamaged:  # `verify` reports it; the others are still found
        return []
    text = payloads.searchable(payload)
    if not text.strip():
        return []
    name = payloads.name(payload)
    head = f"{name}: " if name and entry.role not in ("tool", "function") else ""
    return [head + text[span.start : span.end] for span in split_passages(text)[:_MAX_PASSAGES]]


async def _embed(meaning: SemanticIndex, ref: Ref, entries: Sequence[Entry]) -> int:
    """Whole messages together, in order: a message's vectors are never kept in part."""
    embedded = 0
    batch: list[tuple[int, int, str]] = []
    for at, entry in enumerate(entries, 1):
        batch += [(entry.seq, part, text) for part, text in enumerate(embeddable_parts(entry))]
        if batch and (len(batch) >= _BATCH_PASSAGES or at == len(entries)):
            vectors = await meaning.embedder.passages([text for _, _, text in batch])
            parts = [VectorPart(seq, part, vector) for (seq, part, _), vector in zip(batch, vectors, strict=True)]
            await meaning.vectors.put(ref, meaning.embedder.name, parts)
            embedded += len(batch)
            batch = []
    return embedded


# -- vectors of notes ----------------------------------------------------------------------------------------------


async def index_notes(store: Store, embedder: Embedder, owner: str | None, *, anew: bool = False) -> int:
    """Embed the memories and the passages of documents that have no vector by this embedder, or all of them; of one
    owner or of all. Gives how many."""
    owners = await store.notes.owners() if owner is None else [owner]
    embedded = 0
    for one in owners:
        for kind in (NoteKind.MEMORY, NoteKind.PASSAGE):
            query = NoteQuery(kind=kind, states=_INDEXED_STATES, limit=_PAGE)
            while notes := await store.notes.list(one, query):
                missing = [note for note in notes if note.text and (anew or note.model != embedder.name)]
                for at in range(0, len(missing), _BATCH_PASSAGES):
                    batch = missing[at : at + _BATCH_PASSAGES]
                    vectors = await embedder.passages([note.text for note in batch])
                    change = ReplaceVectors(model=embedder.name, notes=batch, vectors=vectors)
                    embedded += await store.notes.change(one, change)
                query = replace(query, before=notes[-1].number)
    return embedded


async def embed_texts(embedder: Embedder | None, texts: Sequence[str]) -> Sequence[NoteVector | None]:
    """A vector for each text; none without an embedder, or when it fails: words find them all the same."""
    if embedder is None or not texts:
        return [None] * len(texts)
    try:
        return [NoteVector(embedder.name, numbers) for numbers in await embedder.passages(texts)]
    except ModelError:
        return [None] * len(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceVectors:
    """Give notes the vectors of another embedder: memories and documents follow when the model changes. Pure.

    Texts, and when they changed, stay.
    """

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
        # Documents say whose vectors their passages have, so that the same one added again is nothing new.
        documents = [
            note._replace(record=orjson.dumps({**orjson.loads(note.record), "model": self.model}))
            for key in _documents_of(self.notes)
            if (note := seen.by_key.get(key)) is not None
        ]
        return NoteDecision(result=len(renewed), put=[*renewed, *documents])


def _documents_of(notes: Sequence[Note]) -> list[NoteKey]:
    topics = dict.fromkeys(note.topic for note in notes if note.kind == NoteKind.PASSAGE)
    return [NoteKey(NoteKind.DOCUMENT, topic) for topic in topics if topic is not None]

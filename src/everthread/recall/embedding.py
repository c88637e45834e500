"""Keeping the vectors of a conversation in step with its log: a view of it that can be made anew at any time.

Passages are cut and embedded in the order of the log, and kept as they are made; so how far it has come is the newest
entry that has a vector, and whoever goes on after a crash goes on there. What was replaced by a revision loses its
vectors, and so does a model that is used no more once the new one has caught up. Nothing here reads or writes what is
off the record. Memories and passages of documents have their vectors with them, and are given others by `index_notes`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from everthread.core import payloads
from everthread.core.embeddings import Embedder, VectorPart, Vectors
from everthread.core.entries import Entry, Kind, Revision
from everthread.core.errors import Erased, NotFound, StoreDamaged
from everthread.core.notes import Note, NoteKind, NoteQuery, NoteState
from everthread.core.nouns import ConversationInfo, Message, Ref
from everthread.core.ports import Store
from everthread.recall.renewing import Renew
from everthread.text.passages import split_passages

_PAGE = 100
_BATCH_PASSAGES = 64
"""So many passages are embedded before they are kept: what a crash can cost."""
_MOST_PASSAGES = 200
"""Of one message: a log of 10 MB pasted in is found by its words, and by the meaning of its beginning."""
_LOOKED_AT = 50
_FOUND_AGAIN = (NoteState.LIVE, NoteState.FORGOTTEN)
"""What is forgotten may be brought back, and is found as before then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticIndex:
    """What finds by meaning: the model that makes vectors, and what keeps them."""

    embedder: Embedder
    vectors: Vectors


async def index(store: Store, meaning: SemanticIndex, info: ConversationInfo, *, anew: bool = False) -> int:
    """Embed what is not embedded yet of a conversation, or all of it; of what was erased meanwhile, nothing."""
    ref = Ref(info.owner, info.id)
    try:
        if anew:
            await meaning.vectors.forget(ref.owner, ref.id, model=meaning.embedder.name)
        return await catch_up(store, meaning, ref)
    except (NotFound, Erased):
        return 0


async def index_notes(store: Store, embedder: Embedder, owner: str | None, *, anew: bool = False) -> int:
    """Embed the memories and the passages of documents that have no vector by this embedder, or all of them; of one
    owner or of all. Gives how many."""
    owners = await store.notes.owners() if owner is None else [owner]
    made = 0
    for whose in owners:
        for kind in (NoteKind.MEMORY, NoteKind.PASSAGE):
            async for notes in _pages_of_notes(store, whose, kind):
                late = [note for note in notes if note.text and (anew or note.model != embedder.name)]
                for at in range(0, len(late), _BATCH_PASSAGES):
                    made += await _renew(store, embedder, whose, late[at : at + _BATCH_PASSAGES])
    return made


async def _pages_of_notes(store: Store, owner: str, kind: NoteKind) -> AsyncIterator[Sequence[Note]]:
    before = None
    while notes := await store.notes.list(owner, NoteQuery(kind=kind, states=_FOUND_AGAIN, before=before, limit=_PAGE)):
        yield notes
        before = notes[-1].number


async def _renew(store: Store, embedder: Embedder, owner: str, notes: Sequence[Note]) -> int:
    vectors = await embedder.passages([note.text for note in notes])
    return await store.notes.change(owner, Renew(model=embedder.name, notes=notes, vectors=vectors))


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
    made = 0
    async for entries in _pages(store, ref, known.newest_seq if known else 0, info.entry_count):
        made += await _embed(meaning, ref, entries)
        await _forget_replaced(meaning, ref, entries)
    for old in indexed.keys() - {model}:
        await meaning.vectors.forget(ref.owner, ref.id, model=old)
    return made


async def is_behind(store: Store, meaning: SemanticIndex, ref: Ref) -> bool:
    """Whether some message has no vector yet."""
    info = await store.conversations.get(ref)
    known = (await meaning.vectors.indexed(ref)).get(meaning.embedder.name)
    newest = known.newest_seq if known else 0
    if info.off_record or newest >= info.entry_count:
        return False
    return any(map(parts_of, await store.log.scan(ref, after=newest, limit=_LOOKED_AT)))


def parts_of(entry: Entry) -> list[str]:
    """The passages of an entry that get vectors, each under the name of who says it: people ask for what somebody did.
    None unless it is a message that says something."""
    if entry.kind != Kind.MESSAGE or entry.is_erased or entry.how == Revision.STUB:
        return []
    try:
        payload = Message(entry).payload
    except StoreDamaged:  # `verify` tells of it; the others are still found
        return []
    text = payloads.searchable(payload)
    if not text.strip():
        return []
    name = payloads.name(payload)
    head = f"{name}: " if name and entry.role not in ("tool", "function") else ""
    return [head + text[span.start : span.end] for span in split_passages(text)[:_MOST_PASSAGES]]


async def _pages(store: Store, ref: Ref, after: int, last: int) -> AsyncIterator[Sequence[Entry]]:
    while after < last and (entries := await store.log.scan(ref, after=after, limit=min(_PAGE, last - after))):
        yield entries
        after = entries[-1].seq


async def _embed(meaning: SemanticIndex, ref: Ref, entries: Sequence[Entry]) -> int:
    """Whole messages together, in order: a message's vectors are never kept in part."""
    made = 0
    batch: list[tuple[int, int, str]] = []
    for entry in entries:
        batch += [(entry.seq, part, text) for part, text in enumerate(parts_of(entry))]
        if len(batch) >= _BATCH_PASSAGES:
            made += await _keep(meaning, ref, batch)
            batch = []
    return made + await _keep(meaning, ref, batch)


async def _keep(meaning: SemanticIndex, ref: Ref, batch: Sequence[tuple[int, int, str]]) -> int:
    if batch:
        vectors = await meaning.embedder.passages([text for _, _, text in batch])
        parts = [VectorPart(seq, part, vector) for (seq, part, _), vector in zip(batch, vectors, strict=True)]
        await meaning.vectors.put(ref, meaning.embedder.name, parts)
    return len(batch)


async def _forget_replaced(meaning: SemanticIndex, ref: Ref, entries: Sequence[Entry]) -> None:
    places = {entry.revises for entry in entries if entry.how == Revision.REPLACE and entry.kind == Kind.MESSAGE}
    old = sorted(seq for seq in places if seq is not None)
    if old:
        await meaning.vectors.forget(ref.owner, ref.id, seqs=old)

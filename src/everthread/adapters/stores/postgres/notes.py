"""Notes in PostgreSQL (memories, documents and their passages). Their tokens are a column of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from everthread.adapters.stores.layout import NEWEST, NOTE_COLUMNS, note_values, note_words
from everthread.adapters.stores.nearest import nearest
from everthread.adapters.stores.postgres.pool import Connection, PostgresDatabase, Row
from everthread.adapters.stores.postgres.statements import ConversationKey
from everthread.core.entries import Flag
from everthread.core.notes import (
    MemorySource,
    Note,
    NoteChange,
    NoteConversation,
    NoteDecision,
    NoteKey,
    NoteKind,
    NoteNeeds,
    NoteQuery,
    NotesFound,
    NotesSeen,
    NoteState,
    Topic,
    Use,
    UseCount,
)
from everthread.core.queries import Group, Query
from everthread.history.search_query import tsquery

R = TypeVar("R")

COUNT_CAP = 10_000
"""Words are counted up to this: beyond it one is simply common."""

_NOTE = f"SELECT {NOTE_COLUMNS}, number FROM notes"

LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 7310580732))"
"""Change the notes of an owner one after the other, until the transaction ends."""

BY_KEY = f"{_NOTE} WHERE owner = $1 AND (kind, id) IN (SELECT * FROM unnest($2::smallint[], $3::text[]))"
"""Notes by their names."""

ABOUT = f"""
{_NOTE} WHERE owner = $1 AND kind = $2 AND shelf = $3 AND topic = $4 AND state = {NoteState.LIVE:d} ORDER BY number"""
"""The live notes of a kind in a namespace about one subject."""

PLACES = """
SELECT c.id, p.id, c.off_record, c.entry_count
FROM conversations c LEFT JOIN conversations p ON p.owner = c.owner AND p.number = c.parent_number
WHERE c.owner = $1 AND c.id = ANY($2::text[]) AND c.erased_at IS NULL"""
"""The columns of conversations that a change of notes may need."""

STANDING = f"""
SELECT asked.id, asked.seq
FROM unnest($2::text[], $3::bigint[]) AS asked (id, seq)
JOIN conversations c ON c.owner = $1 AND c.id = asked.id AND c.erased_at IS NULL
JOIN entries e ON e.owner = c.owner AND e.conversation = c.number AND e.seq = asked.seq
  AND e.flags & {Flag.ERASED:d} = 0"""
"""Which of these entries are in the log and not erased."""

PUT = f"""
INSERT INTO notes (owner, {NOTE_COLUMNS}, tokens)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
    array_to_tsvector(string_to_array($17::text, ' ')))
ON CONFLICT (owner, kind, id) DO UPDATE SET record = excluded.record, updated_at = excluded.updated_at,
    topic = excluded.topic, state = excluded.state, past_at = excluded.past_at, pinned_at = excluded.pinned_at,
    source_conversation = excluded.source_conversation, source_seq = excluded.source_seq, model = excluded.model,
    vector = excluded.vector, tokens = excluded.tokens"""
"""Write a note, new or changed, and its tokens as long as it is to be found."""

DELETE = "DELETE FROM notes WHERE owner = $1 AND (kind, id) IN (SELECT * FROM unnest($2::smallint[], $3::text[]))"
"""Take out notes by their names."""

DELETE_ABOUT = "DELETE FROM notes WHERE owner = $1 AND kind = $2 AND shelf = $3 AND topic = $4"
"""Remove all notes of a kind in a namespace about one subject."""

LISTING = f"""
{_NOTE} WHERE owner = $1 AND kind = $2 AND number < $3 AND state = ANY($4::smallint[])
  AND ($5::text[] IS NULL OR shelf = ANY($5::text[]))
ORDER BY number DESC LIMIT $6"""
"""The notes of an owner, newest first."""

PINNED = LISTING.replace("ORDER BY", "  AND pinned_at IS NOT NULL ORDER BY")
"""The pinned notes among them."""

NAMESPACES = f"""
SELECT shelf, count(*) FROM notes WHERE owner = $1 AND kind = $2 AND state = {NoteState.LIVE:d} GROUP BY shelf"""
"""The number of notes in each namespace."""

OWNERS = "SELECT DISTINCT owner FROM notes ORDER BY owner"
"""Every owner that has notes."""

_IN_NAMESPACES = "owner = $1 AND shelf = ANY($2::text[]) AND tokens @@"

MATCH = f"{_NOTE} WHERE {_IN_NAMESPACES} $3::text::tsquery ORDER BY number DESC LIMIT $4"
"""Notes that match, newest first."""

FREQUENCIES = f"""
SELECT (SELECT count(*) FROM (
    SELECT 1 FROM notes WHERE {_IN_NAMESPACES} asked.query::tsquery LIMIT {COUNT_CAP}) AS counted)
FROM unnest($3::text[]) WITH ORDINALITY AS asked (query, place) ORDER BY asked.place"""
"""How many notes have each word, counted up to a cap."""

COUNT_ON = f"""
SELECT count(*) FROM notes
WHERE owner = $1 AND kind IN ({NoteKind.MEMORY:d}, {NoteKind.PASSAGE:d}) AND shelf = ANY($2::text[])
  AND state = {NoteState.LIVE:d}"""
"""The number of notes in some namespaces."""

VECTORS = f"""
SELECT number, vector FROM notes
WHERE owner = $1 AND kind IN ({NoteKind.MEMORY:d}, {NoteKind.PASSAGE:d}) AND shelf = ANY($2::text[])
  AND state = {NoteState.LIVE:d} AND model = $3"""
"""The vectors of the live notes in namespaces."""

FOUND = f"{_NOTE} WHERE owner = $1 AND number = ANY($2::bigint[])"
"""Notes by their numbers."""

ERASE = """
DELETE FROM notes
WHERE owner = $1 AND ($2::text IS NULL OR source_conversation = $2)
  AND ($3::bigint[] IS NULL OR source_seq = ANY($3::bigint[]))"""
"""Destroy the notes of an owner, those made from a conversation, or from some entries of it."""

COUNT_USES = """
INSERT INTO uses (owner, conversation, kind, name, uses, last_at)
SELECT $1, $2, used.kind, used.name, used.uses, $6
FROM unnest($3::text[], $4::text[], $5::bigint[]) AS used (kind, name, uses)
ON CONFLICT (owner, conversation, kind, name) DO UPDATE
SET uses = uses.uses + excluded.uses, last_at = excluded.last_at"""
"""Count that tools were used."""

USES = """
SELECT u.kind, u.name, sum(u.uses)::bigint, count(*), max(u.last_at)
FROM uses u WHERE u.owner = $1 GROUP BY u.kind, u.name ORDER BY 3 DESC, 5 DESC, u.name LIMIT $2"""
"""The tools an owner uses most."""

FORGET_USES = "DELETE FROM uses WHERE owner = $1 AND conversation = ANY($2::bigint[])"
"""Take out the counts of erased conversations."""


class PostgresNotes:
    """`store.notes` of core/ports.py."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    async def change(self, owner: str, change: NoteChange[R]) -> R:
        now = self._database.now()

        async def work(connection: Connection) -> R:
            await connection.execute(LOCK, owner)  # one owner's changes come one after the other
            decision = change.decide(await _notes_seen(connection, owner, change.needs()), now)
            await _apply(connection, owner, decision)
            return decision.result

        return await self._database.pool.write(work)

    async def list(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        async def work(connection: Connection) -> Sequence[Note]:
            if query.keys is not None:
                return _read(await connection.fetch(BY_KEY, owner, *_columns(query.keys)))
            rows = await connection.fetch(
                PINNED if query.pinned_only else LISTING,
                owner,
                int(query.kind),
                NEWEST if query.before is None else query.before,
                [int(state) for state in query.states],
                None if query.namespaces is None else list(query.namespaces),
                query.limit,
            )
            return _read(rows)

        return await self._database.pool.read(work)

    async def owners(self) -> Sequence[str]:
        return [row[0] for row in await self._database.pool.read(lambda c: c.fetch(OWNERS))]

    async def namespaces(self, owner: str, kind: int) -> Mapping[str, int]:
        async def work(connection: Connection) -> Mapping[str, int]:
            return {row[0]: row[1] for row in await connection.fetch(NAMESPACES, owner, int(kind))}

        return await self._database.pool.read(work)

    async def find(
        self, owner: str, namespaces: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        async def work(connection: Connection) -> NotesFound:
            on = list(namespaces)
            found = _read(await connection.fetch(MATCH, owner, on, tsquery(query, any_term=any_word), cap + 1))
            singles = [tsquery(Query(groups=(Group(terms=(term,)),))) for term in query.terms]
            counts = [row[0] for row in await connection.fetch(FREQUENCIES, owner, on, singles)]
            return NotesFound(
                found=found[:cap],
                truncated=len(found) > cap,
                frequencies={term.token: count for term, count in zip(query.terms, counts, strict=True)},
                total=await connection.fetchval(COUNT_ON, owner, on),
            )

        return await self._database.pool.read(work)

    async def nearest(
        self, owner: str, namespaces: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        async def work(connection: Connection) -> Sequence[tuple[Note, float]]:
            rows = [(row[0], row[1]) for row in await connection.fetch(VECTORS, owner, list(namespaces), model)]
            best = nearest(rows, vector, limit)
            found = {
                note.number: note
                for note in _read(await connection.fetch(FOUND, owner, [number for number, _ in best]))
            }
            return [(found[number], score) for number, score in best if number in found]

        return await self._database.pool.read(work)

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        async def work(connection: Connection) -> Sequence[UseCount]:
            return [UseCount._make(row) for row in await connection.fetch(USES, owner, limit)]

        return await self._database.pool.read(work)


async def _notes_seen(connection: Connection, owner: str, needs: NoteNeeds) -> NotesSeen:
    named = _read(await connection.fetch(BY_KEY, owner, *_columns(needs.keys))) if needs.keys else ()
    about = {topic: await _about(connection, owner, topic) for topic in needs.topics}
    places = await connection.fetch(PLACES, owner, list(needs.conversations)) if needs.conversations else ()
    asked = ([one.conversation for one in needs.sources], [one.seq for one in needs.sources])
    standing = await connection.fetch(STANDING, owner, *asked) if needs.sources else ()
    return NotesSeen(
        by_key={note.key: note for note in named},
        by_topic=about,
        conversations={row[0]: NoteConversation(row[0], row[1], bool(row[2]), row[3]) for row in places},
        sources=frozenset(MemorySource(*row) for row in standing),
    )


async def _about(connection: Connection, owner: str, topic: Topic) -> list[Note]:
    return _read(await connection.fetch(ABOUT, owner, int(topic.kind), topic.namespace, topic.topic))


async def _apply(connection: Connection, owner: str, decision: NoteDecision[R]) -> None:
    if decision.remove:
        await connection.execute(DELETE, owner, *_columns(decision.remove))
    for topic in decision.remove_topics:
        await connection.execute(DELETE_ABOUT, owner, int(topic.kind), topic.namespace, topic.topic)
    if decision.put:
        rows = [(owner, *note_values(note), note_words(owner, note)) for note in decision.put]
        await connection.executemany(PUT, rows)


def _columns(keys: Sequence[NoteKey]) -> tuple[list[int], list[str]]:
    return [int(key.kind) for key in keys], [key.id for key in keys]


def _read(rows: Sequence[Row]) -> list[Note]:
    return [Note._make(row) for row in rows]


async def erase(connection: Connection, owner: str, conversation: str | None, seqs: Sequence[int] | None) -> str:
    """Destroy the notes of an owner, those made from a conversation, or from some entries of it.

    Waits for writers that are about to add one; those that come later find the message erased.
    """
    await connection.execute(LOCK, owner)
    return str(await connection.execute(ERASE, owner, conversation, None if seqs is None else list(seqs)))


async def erase_memory(connection: Connection, owner: str, id: str) -> str:
    """Destroy one memory."""
    await connection.execute(LOCK, owner)
    return str(await connection.execute(DELETE, owner, [int(NoteKind.MEMORY)], [id]))


async def count_uses(connection: Connection, key: ConversationKey, counts: Mapping[Use, int], now: int) -> None:
    """Note what was used in a conversation."""
    used = sorted(counts)
    columns = ([use.kind for use in used], [use.name for use in used], [counts[use] for use in used])
    await connection.execute(COUNT_USES, *key, *columns, now)

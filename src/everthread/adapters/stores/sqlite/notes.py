"""Notes in SQLite (memories, documents and their passages): what they are changed and found by."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import orjson

from everthread.adapters.stores.layout import NEWEST, NOTE_COLUMNS, note_values, note_words
from everthread.adapters.stores.nearest import nearest
from everthread.adapters.stores.sqlite.engine import SqliteDatabase
from everthread.core.entries import SEQ_BITS, Flag
from everthread.core.notes import (
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
    UseCount,
    namespace_scope,
)
from everthread.core.queries import Query
from everthread.history.search_query import fts5_match, fts5_term_match
from everthread.text.words import scope_token

R = TypeVar("R")

COUNT_CAP = 10_000
"""Words are counted up to this: beyond it one is simply common."""

_NOTE = f"SELECT {NOTE_COLUMNS}, number FROM notes"

ONE = f"{_NOTE} WHERE owner = ? AND kind = ? AND id = ?"
"""A note by its name."""

ABOUT = f"{_NOTE} WHERE owner = ? AND kind = ? AND shelf = ? AND topic = ? ORDER BY number"
"""All notes of a kind in a namespace about one subject."""

PLACE = """
SELECT c.id, p.id, c.off_record, c.entry_count
FROM conversations c LEFT JOIN conversations p ON p.number = c.parent_number
WHERE c.owner = ? AND c.id = ? AND c.erased_at IS NULL"""
"""The columns of a conversation that a change of notes may need."""

STANDS = f"""
SELECT 1 FROM conversations c JOIN entries e
WHERE c.owner = ? AND c.id = ? AND e.key = c.number << {SEQ_BITS} | ? AND c.erased_at IS NULL
  AND e.flags & {Flag.ERASED:d} = 0"""
"""Whether an entry is in the log and not erased."""

INSERT = f"INSERT INTO notes (owner, {NOTE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Write a new note."""

REPLACE = f"""
UPDATE notes SET ({NOTE_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE number = ?"""
"""Write a note in the place of what it was."""

DELETE = "DELETE FROM notes WHERE number = ?"
"""Take out a note."""

INSERT_WORDS = "INSERT INTO note_words (rowid, tokens) VALUES (?, ?)"
"""Put a note's tokens into the index."""

DELETE_WORDS = "INSERT INTO note_words (note_words, rowid, tokens) VALUES ('delete', ?, ?)"
"""Take a note's tokens out of the index: the very tokens that were put in."""

OPTIMIZE = "INSERT INTO note_words (note_words) VALUES ('optimize')"
"""Rewrite the index without what was removed from it."""

LISTING = f"""
{_NOTE}
WHERE owner = :owner AND kind = :kind AND number < :before AND state IN (SELECT value FROM json_each(:states))"""
"""The notes of an owner; what further narrows them is put behind it."""

PINNED = LISTING.replace("FROM notes", "FROM notes INDEXED BY notes_pinned") + " AND pinned_at IS NOT NULL"
"""The pinned notes among them; without the index hint SQLite would read all notes."""

IN_NAMESPACES = " AND shelf IN (SELECT value FROM json_each(:namespaces))"
NEWEST_FIRST = " ORDER BY number DESC LIMIT :limit"

NAMESPACES = f"""
SELECT shelf, count(*) FROM notes WHERE owner = ? AND kind = ? AND state = {NoteState.LIVE:d} GROUP BY shelf"""
"""The number of notes in each namespace."""

OWNERS = "SELECT DISTINCT owner FROM notes ORDER BY owner"
"""Every owner that has notes."""

COUNT_ON = "SELECT count(*) FROM note_words WHERE note_words MATCH ?"
"""The number of notes in a namespace, by the search index."""

MATCH = "SELECT rowid FROM note_words WHERE note_words MATCH ? ORDER BY rowid DESC LIMIT ?"
"""Notes that match, newest first."""

MATCH_COUNT = f"SELECT count(*) FROM (SELECT 1 FROM note_words WHERE note_words MATCH ? LIMIT {COUNT_CAP})"
"""How many notes match, counted up to a cap."""

FOUND = f"{_NOTE} WHERE number = ? AND owner = ?"
"""A note by its number."""

VECTORS = f"""
SELECT number, vector FROM notes
WHERE owner = :owner AND kind IN ({NoteKind.MEMORY:d}, {NoteKind.PASSAGE:d})
  AND shelf IN (SELECT value FROM json_each(:namespaces)) AND state = {NoteState.LIVE:d}
  AND model = :model"""
"""The vectors of the live notes in namespaces."""

OF_OWNER = f"{_NOTE} WHERE owner = ?"
"""All notes of an owner."""

OF_CONVERSATION = f"{_NOTE} WHERE owner = ? AND source_conversation = ?"
"""Notes that were made from a conversation."""

OF_MESSAGE = f"{_NOTE} WHERE owner = ? AND source_conversation = ? AND source_seq = ?"
"""Notes that were made from an entry."""

USES = """
SELECT u.kind, u.name, sum(u.uses), count(*), max(u.last_at)
FROM conversations c JOIN uses u ON u.conversation = c.number
WHERE c.owner = ? GROUP BY u.kind, u.name ORDER BY 3 DESC, 5 DESC, u.name LIMIT ?"""
"""The tools an owner uses most."""

FORGET_USES = "DELETE FROM uses WHERE conversation = ?"
"""Take out the counts of an erased conversation."""


class SqliteNotes:
    """`store.notes` of core/ports.py."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    async def change(self, owner: str, change: NoteChange[R]) -> R:
        now = self._database.now()

        def work(connection: sqlite3.Connection) -> R:
            decision = change.decide(_notes_seen(connection, owner, change.needs()), now)
            _apply(connection, owner, decision)
            return decision.result

        return await self._database.engine.write(work)

    async def list(self, owner: str, query: NoteQuery) -> Sequence[Note]:
        def work(connection: sqlite3.Connection) -> Sequence[Note]:
            if query.keys is not None:
                named = (_one(connection, owner, key) for key in query.keys)
                return [note for note in named if note is not None]
            base = PINNED if query.pinned_only else LISTING
            statement = base + (IN_NAMESPACES if query.namespaces is not None else "") + NEWEST_FIRST
            values = {
                "owner": owner,
                "kind": int(query.kind),
                "before": NEWEST if query.before is None else query.before,
                "states": _array(map(int, query.states)),
                "namespaces": _array(query.namespaces or ()),
                "limit": query.limit,
            }
            return list(map(Note._make, connection.execute(statement, values)))

        return await self._database.engine.read(work)

    async def owners(self) -> Sequence[str]:
        return [row[0] for row in await self._database.engine.read(lambda c: c.execute(OWNERS).fetchall())]

    async def namespaces(self, owner: str, kind: int) -> Mapping[str, int]:
        def work(connection: sqlite3.Connection) -> Mapping[str, int]:
            return dict(connection.execute(NAMESPACES, (owner, int(kind))).fetchall())

        return await self._database.engine.read(work)

    async def find(
        self, owner: str, namespaces: Sequence[str], query: Query, *, cap: int, any_word: bool
    ) -> NotesFound:
        def work(connection: sqlite3.Connection) -> NotesFound:
            named = [namespace_scope(owner, namespace) for namespace in namespaces]
            sizes = [connection.execute(COUNT_ON, (_in_namespace(scope),)).fetchone()[0] for scope in named]
            total = sum(sizes)
            # Without notes there is nothing to search or to count; mostly it is only this conversation that has none.
            scopes = [scope for scope, size in zip(named, sizes, strict=True) if size]
            if not total:
                return NotesFound(
                    found=(), truncated=False, frequencies={term.token: 0 for term in query.terms}, total=0
                )
            numbers = sorted(_numbers(connection, scopes, query, cap, any_word), reverse=True)
            rows = (connection.execute(FOUND, (number, owner)).fetchone() for number in numbers[:cap])
            return NotesFound(
                found=[Note._make(row) for row in rows if row is not None],
                truncated=len(numbers) > cap,
                frequencies=_frequencies(connection, scopes, query),
                total=total,
            )

        return await self._database.engine.read(work)

    async def nearest(
        self, owner: str, namespaces: Sequence[str], model: str, vector: bytes, *, limit: int
    ) -> Sequence[tuple[Note, float]]:
        def work(connection: sqlite3.Connection) -> Sequence[tuple[Note, float]]:
            values = {"owner": owner, "namespaces": _array(namespaces), "model": model}
            best = nearest(connection.execute(VECTORS, values).fetchall(), vector, limit)
            rows = ((connection.execute(FOUND, (number, owner)).fetchone(), score) for number, score in best)
            return [(Note._make(row), score) for row, score in rows if row is not None]

        return await self._database.engine.read(work)

    async def uses(self, owner: str, *, limit: int) -> Sequence[UseCount]:
        def work(connection: sqlite3.Connection) -> Sequence[UseCount]:
            return list(map(UseCount._make, connection.execute(USES, (owner, limit))))

        return await self._database.read_indexed(work)


def _notes_seen(connection: sqlite3.Connection, owner: str, needs: NoteNeeds) -> NotesSeen:
    named = (_one(connection, owner, key) for key in needs.keys)
    places = (connection.execute(PLACE, (owner, id)).fetchone() for id in needs.conversations)
    return NotesSeen(
        by_key={note.key: note for note in named if note is not None},
        by_topic={
            topic: [note for note in _about(connection, owner, topic) if not note.state] for topic in needs.topics
        },
        conversations={
            row[0]: NoteConversation(row[0], row[1], bool(row[2]), row[3]) for row in places if row is not None
        },
        sources=frozenset(one for one in needs.sources if connection.execute(STANDS, (owner, *one)).fetchone()),
    )


def _one(connection: sqlite3.Connection, owner: str, key: NoteKey) -> Note | None:
    row = connection.execute(ONE, (owner, int(key.kind), key.id)).fetchone()
    return None if row is None else Note._make(row)


def _about(connection: sqlite3.Connection, owner: str, topic: Topic) -> list[Note]:
    return list(map(Note._make, connection.execute(ABOUT, (owner, int(topic.kind), topic.namespace, topic.topic))))


def _apply(connection: sqlite3.Connection, owner: str, decision: NoteDecision[R]) -> None:
    removed = [note for note in (_one(connection, owner, key) for key in decision.remove) if note is not None]
    removed += [note for topic in decision.remove_topics for note in _about(connection, owner, topic)]
    delete(connection, owner, removed)
    for note in decision.put:
        _put(connection, owner, note)


def _put(connection: sqlite3.Connection, owner: str, note: Note) -> None:
    known = _one(connection, owner, note.key)
    if known is None:
        number = connection.execute(INSERT, (owner, *note_values(note))).lastrowid
        _index(connection, number or 0, note_words(owner, note))
        return
    connection.execute(REPLACE, (*note_values(note), known.number))
    before, after = note_words(owner, known), note_words(owner, note)
    if before != after:
        _unindex(connection, known.number, before)
        _index(connection, known.number, after)


def _index(connection: sqlite3.Connection, number: int, words: str | None) -> None:
    if words is not None:
        connection.execute(INSERT_WORDS, (number, words))


def _unindex(connection: sqlite3.Connection, number: int, words: str | None) -> None:
    if words is not None:
        connection.execute(DELETE_WORDS, (number, words))


def delete(connection: sqlite3.Connection, owner: str, notes: Iterable[Note]) -> int:
    """Take these out, and their tokens; how many there were."""
    gone = list(notes)
    for note in gone:
        _unindex(connection, note.number, note_words(owner, note))
        connection.execute(DELETE, (note.number,))
    return len(gone)


def erase(connection: sqlite3.Connection, owner: str, conversation: str | None, seqs: Sequence[int] | None) -> int:
    """Delete the notes of an owner, those made from a conversation, or from some entries of it."""
    if conversation is None:
        rows = connection.execute(OF_OWNER, (owner,)).fetchall()
    elif seqs is None:
        rows = connection.execute(OF_CONVERSATION, (owner, conversation)).fetchall()
    else:
        rows = [row for seq in seqs for row in connection.execute(OF_MESSAGE, (owner, conversation, seq)).fetchall()]
    return delete(connection, owner, map(Note._make, rows))


def erase_memory(connection: sqlite3.Connection, owner: str, id: str) -> int:
    """Destroy one memory; how many there were."""
    note = _one(connection, owner, NoteKey(NoteKind.MEMORY, id))
    return 0 if note is None else delete(connection, owner, [note])


def _array(values: Iterable[object]) -> str:
    return orjson.dumps(list(values)).decode()


def _in_namespace(scope: str) -> str:
    return f'"{scope_token(scope)}"'


def _numbers(
    connection: sqlite3.Connection, scopes: Sequence[str], query: Query, cap: int, any_word: bool
) -> Iterator[int]:
    for scope in scopes:
        match = fts5_match(query, [scope], any_term=any_word)
        yield from (row[0] for row in connection.execute(MATCH, (match, cap + 1)))


def _frequencies(connection: sqlite3.Connection, scopes: Sequence[str], query: Query) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for scope in scopes:
        for term in query.terms:
            match = fts5_term_match(term, [scope])
            counts[term.token] += connection.execute(MATCH_COUNT, (match,)).fetchone()[0]
    return counts

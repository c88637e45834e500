"""Finding by words in memory: every conversation is looked through, with the rules of the databases' indexes."""

from __future__ import annotations

from collections.abc import Sequence

from everthread.adapters.stores.in_memory.notes import matches
from everthread.adapters.stores.in_memory.rows import ConversationRow, InMemoryDatabase
from everthread.core.entries import HIDDEN_FLAGS, SEQ_BITS, SEQ_MASK, Entry, Revision, entry_key
from everthread.core.ids import owner_scope
from everthread.core.nouns import Ref
from everthread.core.ports import PlacedMessage, Postings, WordMatch, WordMatches
from everthread.core.queries import Query, Term
from everthread.history.search_query import has_term
from everthread.text.words import scope_token


class InMemorySearch:
    """`store.search` of core/ports.py."""

    def __init__(self, database: InMemoryDatabase) -> None:
        self._database = database

    async def matches(
        self, owner: str, conversation: str | None, query: Query, *, cap: int, any_word: bool, basis: object = None
    ) -> WordMatches:
        rows = self._database.living(owner, conversation)[::-1]
        keys = [
            (row, seq)
            for row in rows
            for seq in sorted(row.words, reverse=True)
            if scope_token(owner_scope(owner)) in row.words[seq] and matches(query, row.words[seq], any_word)
        ]
        shown = [(row, row.entries[seq - 1]) for row, seq in keys[:cap] if row.info.deleted_at is None]
        return WordMatches(
            found=[
                WordMatch(row.info.id, entry, entry_key(row.number, entry.seq))
                for row, entry in shown
                if _is_current(row, entry)
            ],
            truncated=len(keys) > cap,
            frequencies={
                term.token: sum(has_term(term, words) for row in rows for words in row.words.values())
                for term in query.terms
            },
            total=sum(len(row.words) for row in rows),
        )

    async def postings(self, owner: str, conversation: str | None, terms: Sequence[Term], *, cap: int) -> Postings:
        if conversation is not None:
            self._database.row(Ref(owner, conversation))
        rows = self._database.living(owner, conversation)
        found = {
            term: [
                entry_key(row.number, seq)
                for row in rows
                for seq in sorted(row.words)
                if has_term(term, row.words[seq])
            ]
            for term in terms
        }
        is_cut = any(len(having) > cap for having in found.values())
        return Postings(
            {term: having[-cap:] for term, having in found.items()}, sum(len(row.entries) for row in rows), is_cut
        )

    async def messages(
        self, owner: str, entry_keys: Sequence[int], named: Sequence[tuple[str, int]]
    ) -> Sequence[PlacedMessage]:
        rows = self._database.living(owner, None)
        by_number = {row.number: row for row in rows}
        numbers = {row.info.id: row.number for row in rows}
        keys = {*entry_keys, *(entry_key(numbers[id], seq) for id, seq in named if id in numbers)}
        found = (
            _placed(by_number[key >> SEQ_BITS], key & SEQ_MASK) for key in sorted(keys) if key >> SEQ_BITS in by_number
        )
        return list({one.entry_key: one for one in found if one is not None}.values())


def _placed(row: ConversationRow, seq: int) -> PlacedMessage | None:
    """Return the message at this place, or the one that this entry revises; None when it must not be shown."""
    if not 0 < seq <= len(row.entries) or row.info.deleted_at is not None:
        return None
    found = row.entries[seq - 1]
    place = row.entries[(found.revises or 1) - 1] if found.change_kind == Revision.REPLACE else found
    newest = place if place.newest_seq is None else row.entries[place.newest_seq - 1]
    if not place.is_place or place.flags & HIDDEN_FLAGS or newest.is_erased:
        return None
    return PlacedMessage(row.info.id, entry_key(row.number, place.seq), place.branch, place.depth, newest)


def _is_current(row: ConversationRow, entry: Entry) -> bool:
    """Whether this is the newest revision of a message that is neither deleted nor erased."""
    if entry.newest_seq is not None or entry.flags & HIDDEN_FLAGS:
        return False
    return entry.change_kind != Revision.REPLACE or row.entries[(entry.revises or 1) - 1].newest_seq == entry.seq

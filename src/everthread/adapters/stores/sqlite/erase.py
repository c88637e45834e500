"""Erasing on SQLite: the one way text leaves the log.

In one transaction the tokens leave the index, payloads and salts are blanked, and the erasure is noted. After
that the index is rewritten, the write-ahead log truncated and the file vacuumed, so that no free page holds the
text. When a crash comes in between, the note is unfinished and the next opening ends the work.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence

from everthread.adapters.jobs import sqlite as jobs
from everthread.adapters.stores import schema
from everthread.adapters.stores.layout import (
    CANNOT_REACH,
    erase_report,
    is_indexed,
    memory_erased,
    texts_of,
    title_quotes,
    traces_of,
    words_of,
)
from everthread.adapters.stores.sqlite import access, compactions, log, notes, turns
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.blobs import doom
from everthread.adapters.stores.sqlite.conversations import note_change
from everthread.adapters.stores.sqlite.indexing import is_in_index
from everthread.adapters.vectors import sqlite as vectors
from everthread.core.chain import commitment_of
from everthread.core.entries import SEQ_MASK, Entry, entry_key
from everthread.core.errors import NotFound
from everthread.core.failpoints import reach
from everthread.core.log import IdempotencyRecord
from everthread.core.nouns import EraseReport, Ref

HELD_PAGES = "pages that another process is still reading (the next opening of the database removes them)"
NOT_REWRITTEN = "free pages of the file, which could not be rewritten (the next opening of the database tries again)"


def blank(
    connection: sqlite3.Connection, owner: str, conversation: str | None, message: str | None, now: int
) -> EraseReport:
    """Destroy text and salts, in the writer's transaction."""
    if conversation is None and message is not None:
        return _erase_memory(connection, owner, message, now)
    which = {"owner": owner, "id": conversation, "with_children": message is None}
    ids = dict(connection.execute(sql.ERASE_TARGETS, which).fetchall())
    if not ids and conversation is not None:
        raise NotFound(f"no conversation {conversation!r}")
    reached: Counter[str] = Counter()
    for number in ids:
        targets = list(_to_erase(connection, number, message)) if message is not None else []
        traces = traces_of(targets) if message is not None else None
        seqs = [entry.seq for entry in targets]
        reached["notes"] += notes.erase(connection, owner, conversation, seqs) if message is not None else 0
        erased = _blank_entries(connection, number, owner, message, now, reached)
        _forget_checkpoints(connection, number, traces, reached)
        reached["vectors"] += vectors.forget(connection, number, None if message is None else seqs)
        if message is not None:
            places = [(number, seq) for seq in seqs]
            reached["message_facts"] += connection.executemany(sql.DELETE_FACTS, places).rowcount
            reached["import_lines"] += connection.executemany(sql.DELETE_LINE, places).rowcount
            reached["compactions"] += _destroy_summaries(connection, number, erased)
            reached["answers"] += _blank_answers(connection, number, message)
            connection.execute(jobs.FORGET_ERRORS, (number,))
            turns.forget_message(connection, number, message, texts_of(targets), reached)
            if title_quotes(connection.execute(sql.TITLE, (number,)).fetchone()[0], targets):
                reached["titles"] += connection.execute(sql.BLANK_TITLE, (number,)).rowcount
                note_change(connection, Ref(owner, ids[number]), now)
        else:
            reached["answers"] += connection.execute(sql.DELETE_ANSWERS, (number,)).rowcount
            connection.execute(sql.BLANK_CONVERSATION, (now, now, number))
            connection.execute(sql.BLANK_CHANGES, (number,))
            reached["compactions"] += connection.execute(sql.DELETE_COMPACTIONS, (number,)).rowcount
            reached["prompts"] += _release_prompts(connection, owner, number)
            reached["message_facts"] += connection.execute(sql.DELETE_FACTS_OF, (number,)).rowcount
            reached["import_lines"] += connection.execute(sql.DELETE_LINES_OF, (number,)).rowcount
            reached["model_usage"] += connection.execute(sql.DELETE_USAGE_OF, (number,)).rowcount
            reached["manifests"] += connection.execute(sql.DELETE_MANIFESTS, (number,)).rowcount
            reached["policies"] += connection.execute(sql.DELETE_POLICY, (number,)).rowcount
            reached["jobs"] += connection.execute(jobs.FORGET, (number,)).rowcount
            reached["uses"] += connection.execute(notes.FORGET_USES, (number,)).rowcount
            turns.forget(connection, number, reached)
            reached["conversations"] += 1
    # Those of an owner as a whole; else one after the other, a conversation and those of its subagents.
    named = [None] if conversation is None else [conversation] if message is not None else list(ids.values())
    for id in named:
        if message is None:
            reached["notes"] += notes.erase(connection, owner, id, None)
        reached.update(access.forget(connection, owner, id))
    if conversation is None:
        reached["items"] += connection.execute(sql.DELETE_ITEMS_OF, (owner,)).rowcount
        reached["import_sources"] += connection.execute(sql.DELETE_SOURCES_OF, (owner,)).rowcount
    if message is not None and not reached["entries"]:
        raise NotFound(f"no message {message!r} in conversation {conversation!r}")
    reach("erase.payloads_blanked")
    connection.executemany(sql.INSERT_ERASURE, [(owner, id, message, now) for id in named])
    reach("erase.recorded")
    return erase_report(owner, conversation, message, reached, CANNOT_REACH, now)


def _erase_memory(connection: sqlite3.Connection, owner: str, id: str, now: int) -> EraseReport:
    if not notes.erase_memory(connection, owner, id):
        raise NotFound(f"no memory {id!r}")
    access.blank_replies(connection, owner, None)
    connection.execute(sql.INSERT_ERASURE, (owner, None, id, now))
    reach("erase.recorded")
    return memory_erased(owner, id, CANNOT_REACH, now)


def _blank_entries(
    connection: sqlite3.Connection,
    number: int,
    owner: str,
    message: str | None,
    now: int,
    reached: Counter[str],
) -> list[Entry]:
    """Give the places among them, without their text."""
    places: list[Entry] = []
    for entry in _to_erase(connection, number, message):
        key = entry_key(number, entry.seq)
        reached["words"] += _remove_words(connection, key, entry, owner)
        commitment = doom(connection, key, now) or commitment_of(entry)
        connection.execute(sql.BLANK_ENTRY, (commitment, now, key))
        reached["payloads"] += connection.execute(sql.DELETE_PAYLOAD, (key,)).rowcount
        reached["entries"] += 1
        if entry.is_place and message is not None:
            places.append(entry._replace(raw=None))
    return places


def _destroy_summaries(connection: sqlite3.Connection, number: int, places: Sequence[Entry]) -> int:
    branches = {row.number: row for row in log.all_branches(connection, number)}
    return sum(compactions.destroy(connection, number, place, branches) for place in places)


def _forget_checkpoints(
    connection: sqlite3.Connection, number: int, traces: Sequence[bytes] | None, reached: Counter[str]
) -> None:
    """Destroy all checkpoints of a conversation, or what they hold of some messages."""
    span = (entry_key(number, 0), entry_key(number, SEQ_MASK))
    connection.execute(sql.NOTE_ERASURE, (number,))
    if traces is None:
        reached["agent_checkpoints"] += connection.execute(sql.DELETE_CHECKPOINTS_OF, span).rowcount
        reached["agent_writes"] += connection.execute(sql.DELETE_WRITES_OF, span).rowcount
        reached["blobs"] += connection.execute(sql.DELETE_BLOBS_OF, (number,)).rowcount
    for trace in traces or ():
        reached["agent_checkpoints"] += connection.execute(sql.DELETE_CHECKPOINTS_ABOUT, (*span, trace, trace)).rowcount
        reached["agent_writes"] += connection.execute(sql.DELETE_WRITES_ABOUT, (*span, trace)).rowcount
        reached["blobs"] += connection.execute(sql.DELETE_BLOBS_ABOUT, (number, trace)).rowcount


def _release_prompts(connection: sqlite3.Connection, owner: str, number: int) -> int:
    """Take a conversation's name off its prompts; how many went, since no other conversation names them."""
    connection.execute(sql.RELEASE_PROMPTS, (owner, number))
    connection.execute(sql.DELETE_PROMPT_USES, (number,))
    return connection.execute(sql.DELETE_UNUSED_PROMPTS, (owner,)).rowcount


def _blank_answers(connection: sqlite3.Connection, number: int, message: str) -> int:
    answers = [IdempotencyRecord(*row) for row in connection.execute(sql.ANSWERS, (number,))]
    blanked = [answer.blanked() for answer in answers if answer.tells_of(message)]
    for answer in blanked:
        connection.execute(sql.BLANK_ANSWER, (answer.body, answer.receipts, number, answer.key))
    return len(blanked)


def _to_erase(connection: sqlite3.Connection, number: int, message: str | None) -> Iterator[Entry]:
    """Page by page, because what is blanked on the way falls out of the statement's own filter."""
    after = 0
    while page := connection.execute(
        sql.ENTRIES_TO_ERASE, (entry_key(number, after), entry_key(number, SEQ_MASK), message, message)
    ).fetchall():
        for row in page:
            yield Entry._make(row)
        after = page[-1][0]


def _remove_words(connection: sqlite3.Connection, key: int, entry: Entry, owner: str) -> int:
    """FTS5 of SQLite 3.40 deletes from a contentless table only when told the very tokens that went in."""
    is_off_record = bool(connection.execute(sql.IS_OFF_RECORD, (key >> 32,)).fetchone()[0])
    if not is_indexed(entry, off_record=is_off_record):
        return 0
    if not is_in_index(connection, key >> 32, entry.seq):
        return 0
    if entry.raw is None:  # its blob is gone, and without it nobody knows which tokens went in
        for statement in schema.index_anew():
            connection.execute(statement)
    else:
        connection.execute(sql.DELETE_WORDS, (key, words_of(entry, owner)))
    reach("erase.words_removed")
    return 1


def rewrite(connection: sqlite3.Connection, now: int) -> Sequence[str]:
    """Leave no free page, old segment or write-ahead frame that holds what was erased. Runs outside a transaction.

    Gives what is left nevertheless; then the erasures stay unfinished, and the next opening tries again.
    """
    reach("erase.committed")
    newest = connection.execute(sql.NEWEST_ERASURE).fetchone()[0]
    try:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute(notes.OPTIMIZE)
        connection.execute("VACUUM")
        if _is_held(connection):
            return (HELD_PAGES,)
        reach("erase.compacted")
        connection.execute(sql.FINISH_ERASURES, (now, newest))
    except sqlite3.OperationalError as problem:  # the disk is full, or another process writes: no reason not to open
        return (f"{NOT_REWRITTEN}: {problem}",)
    return ()


def _is_held(connection: sqlite3.Connection) -> bool:
    """Move the write-ahead log into the file; whether a reader elsewhere stood in the way.

    Every writer of this process waits meanwhile, so a reader is waited for only as long as an ordinary one takes.
    """
    connection.execute(sql.WAIT_BRIEFLY)
    try:
        return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
    finally:
        connection.execute(sql.WAIT)

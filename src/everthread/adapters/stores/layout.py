"""What both databases share: which columns make an entry, where large payloads go."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

import orjson

from everthread.adapters.stores.packed_records import pack, unpack
from everthread.context.message_format import calls_of
from everthread.core import payloads
from everthread.core.access import ApiKey
from everthread.core.blobs import Blobs, blob_name
from everthread.core.chain import commitment_of
from everthread.core.checkpoints import StoredCheckpoint, StoredWrite, Thread
from everthread.core.clock import from_micros, to_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import SEQ_MASK, Entry, Kind, Revision, entry_key
from everthread.core.errors import StoreDamaged
from everthread.core.failpoints import reach
from everthread.core.ids import owner_scope
from everthread.core.log import BranchRow, Decision, IntentInputs
from everthread.core.notes import Note, Use, namespace_scope
from everthread.core.nouns import ConversationInfo, EraseReport, Message, Ref
from everthread.core.ports import ListPosition
from everthread.history.payload_json import decode_json
from everthread.history.titles import may_quote
from everthread.text.words import index_text

LARGE_BYTES = 65_536
"""Payloads over this size live in a table of their own, so that reading the log's pages stays cheap."""

NEWEST = 1 << 62
"""Above every number of a row: a page before it begins with the newest."""
NO_BLOB_STORE = "the database keeps large payloads in a blob store; open it with blobs=… or set EVERTHREAD_BLOBS"

_LONG_TEXT_BYTES = 16

INSERT_COLUMNS = """
key, id, kind, role, revises, how, revision, parent_seq, branch, depth, created_at, tokens, salt, chain, raw, flags,
origin, chain_version"""
"""The columns written with an entry: those of an `Entry` up to its payload, in its order, flags and what follows."""

_DAMAGED = "an entry is damaged: run verify"


def is_place(row: str) -> str:
    """The SQL of `Entry.is_place`, for the row of `entries` by this alias."""
    return f"{row}.kind = {Kind.MESSAGE:d} AND ({row}.how IS NULL OR {row}.how = {Revision.EDIT:d})"


def last_said_at(entries: Sequence[Entry]) -> int | None:
    """When the last message among new entries was said: by itself, if it says so, and never after it was stored."""
    last = next((entry for entry in reversed(entries) if entry.is_place), None)
    if last is None:
        return None
    own = Message(last).said_at if b'"created_at"' in (last.raw or b"") else None
    return last.created_at if own is None else min(to_micros(own), last.created_at)


def row_payload(entry: Entry) -> bytes | None:
    """The payload to store in the entry's own row; None for a large one, which gets a row in `payloads`."""
    return entry.raw if entry.raw is not None and len(entry.raw) <= LARGE_BYTES else None


def branches_after(seen: IntentInputs, decision: Decision[Any]) -> tuple[list[BranchRow], BranchRow]:
    """The branch rows to write, and the branch whose leaf goes into the conversation's row: the active one.

    While a branch is active and merely grows, its own row is left as it is, so that an append changes one row less.
    """
    rows = {**seen.branches, **{row.number: row for row in decision.branches}}
    active = rows[seen.head.active if decision.active is None else decision.active]
    changed = [row for row in decision.branches if row.number != active.number or not _merely_grew(seen, row)]
    left = rows[seen.head.active]
    if left.number != active.number and left not in changed:
        changed.append(left)
    return changed, active


def _merely_grew(seen: IntentInputs, row: BranchRow) -> bool:
    before = seen.branches.get(row.number)
    return (
        before is not None
        and row.parent == before.parent
        and row.fork_seq == before.fork_seq
        and row.created_at == before.created_at
    )


def revisions_of(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """Group entries by message id, keeping their order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.id, []).append(entry)
    return found


def traces_of(entries: Iterable[Entry]) -> list[bytes]:
    """Return the byte strings that show that a checkpoint's value holds one of these messages: its id as a field, and
    its text. A short text counts only as a whole string, a longer one anywhere.
    """
    found: dict[bytes, None] = {}
    for entry in entries:
        found[b"\xa2id" + _packed(entry.id.encode())] = None
        said = payloads.text(Message(entry).payload).encode("utf-8", "surrogatepass") if entry.raw is not None else b""
        if said:
            found[said if len(said) >= _LONG_TEXT_BYTES else _packed(said)] = None
    return list(found)


def title_quotes(title: str | None, erased: Iterable[Entry]) -> bool:
    """Whether the title of a conversation may hold words of these messages."""
    return title is not None and any(
        may_quote(title, payloads.text(Message(entry).payload), entry.depth)
        for entry in erased
        if entry.raw is not None
    )


def texts_of(entries: Iterable[Entry]) -> list[str]:
    """Return the texts of these messages."""
    return [payloads.text(Message(entry).payload) for entry in entries if entry.raw is not None]


def _packed(text: bytes) -> bytes:
    """A text as MessagePack writes it."""
    size = len(text)
    if size < 32:
        return bytes([0xA0 | size]) + text
    for head, width in ((0xD9, 1), (0xDA, 2)):
        if size < 1 << 8 * width:
            return bytes([head]) + size.to_bytes(width, "big") + text
    return b"\xdb" + size.to_bytes(4, "big") + text


class PayloadRow(NamedTuple):
    """A row of `payloads`: the bytes, or the name of the blob that holds them."""

    key: int
    body: bytes
    blob: str | None = None
    blob_bytes: int | None = None
    commitment: bytes | None = None


def payload_rows(conversation: int, ref: Ref, entries: Sequence[Entry], blobs: Blobs | None) -> list[PayloadRow]:
    """The rows of large payloads; with a blob store they are durable there when this returns."""
    large = [(entry, entry.raw) for entry in entries if entry.raw is not None and len(entry.raw) > LARGE_BYTES]
    return [_payload_row(entry_key(conversation, entry.seq), ref, entry, raw, blobs) for entry, raw in large]


def _payload_row(key: int, ref: Ref, entry: Entry, raw: bytes, blobs: Blobs | None) -> PayloadRow:
    if blobs is None:
        return PayloadRow(key, raw)
    name = blob_name(ref, raw)
    blobs.put(name, raw)
    reach("blob.written")
    return PayloadRow(key, b"", name, len(raw), commitment_of(entry))


def is_indexed(entry: Entry, *, off_record: bool) -> bool:
    """Whether search may find an entry."""
    return entry.kind == Kind.MESSAGE and not off_record


def words_of(entry: Entry, owner: str) -> str:
    """Return the index tokens of an entry: always the same ones, so that they can be removed again."""
    return index_text(text_of(entry.raw or b"{}"), (owner_scope(owner),))


def text_of(raw: bytes) -> str:
    """Return the text of a payload that is searched and whose tokens are counted."""
    return payloads.searchable(sound_payload(raw))


def sound_payload(raw: bytes) -> dict[str, Any]:
    """Decode a payload for its text and its tool calls. Raises StoreDamaged when it cannot be decoded."""
    try:
        payload: object = decode_json(raw)
    except (ValueError, TypeError, AttributeError) as problem:  # no JSON, or no bytes
        raise StoreDamaged(_DAMAGED) from problem
    if type(payload) is not dict:
        raise StoreDamaged(_DAMAGED)
    return payload


def info_from_row(row: Any) -> ConversationInfo:
    """A conversation from the columns of `CONVERSATION_COLUMNS` (the first, its number, is the caller's)."""
    return ConversationInfo(
        owner=row[1],
        id=row[2],
        parent_id=row[3],
        title=row[4],
        metadata=json.loads(row[5]),
        is_active=bool(row[6]),
        off_record=bool(row[7]),
        created_at=from_micros(row[8]),
        updated_at=from_micros(row[9]),
        deleted_at=None if row[10] is None else from_micros(row[10]),
        entry_count=row[11],
        chain=bytes(row[12]),
        message_count=row[13],
        last_said_at=None if row[14] is None else from_micros(row[14]),
    )


LISTED_AT = "coalesce(c.last_said_at, c.created_at)"
"""The SQL of what lists go by in the order `said`."""


def next_position(number: int, last: ConversationInfo) -> ListPosition:
    """Where the page after this conversation begins."""
    return ListPosition(number, to_micros(last.last_said_at or last.created_at))


def compaction_values(compaction: Compaction) -> tuple[Any, ...]:
    """A compaction as the values of its row, after the conversation's number."""
    record = {field: getattr(compaction, field) for field in _RECORD}
    return (
        compaction.id,
        compaction.first_seq,
        compaction.last_seq,
        pack(json.dumps(record).encode()),
        to_micros(compaction.created_at),
        None if compaction.undone_at is None else to_micros(compaction.undone_at),
        None if compaction.invalid_at is None else to_micros(compaction.invalid_at),
        compaction.branch,
        compaction.after_seq,
        compaction.level,
    )


def compaction_from_row(row: Any) -> Compaction:
    """A compaction from the columns of `COMPACTION_COLUMNS`."""
    document = unpack(bytes(row[3]))
    try:
        record = orjson.loads(document)
    except orjson.JSONDecodeError:  # a summary may hold half of a surrogate pair
        record = json.loads(document)
    record["children"] = tuple(record["children"])
    record["struck"] = tuple(record.get("struck", ()))
    return Compaction(
        **record,
        id=row[0],
        first_seq=row[1],
        last_seq=row[2],
        created_at=from_micros(row[4]),
        undone_at=None if row[5] is None else from_micros(row[5]),
        invalid_at=None if row[6] is None else from_micros(row[6]),
    )


COMPACTION_COLUMNS = "id, first_seq, last_seq, record, created_at, undone_at, invalid_at, branch, after_seq, level"
"""The last three are in the record too; they are columns so that rows can be found by them."""


ITEM_COLUMNS = "namespace, key, value, created_at, updated_at, expires_at, ttl_micros, model, vectors"


KEY_COLUMNS = "id, owner, name, is_admin, created_at, revoked_at, digest"
REPLY_COLUMNS = "request, conversation, status, headers, body, running_until"


def key_values(key: ApiKey) -> tuple[Any, ...]:
    """A key as the values of its row."""
    revoked = None if key.revoked_at is None else to_micros(key.revoked_at)
    return (key.id, key.owner, key.name, int(key.is_admin), to_micros(key.created_at), revoked, key.digest)


def key_from_row(row: Any) -> ApiKey:
    """A key from the columns of `KEY_COLUMNS`."""
    return ApiKey(
        id=row[0],
        owner=row[1],
        name=row[2],
        is_admin=bool(row[3]),
        created_at=from_micros(row[4]),
        revoked_at=None if row[5] is None else from_micros(row[5]),
        digest=bytes(row[6]),
    )


def below(prefix: str) -> tuple[str, str]:
    """Return the first and the last possible name below a namespace; for an empty one, the range of all names."""
    return (f"{prefix}.", f"{prefix}/") if prefix else ("", "\U0010ffff")


NOTE_COLUMNS = (
    "kind, id, shelf, text, record, created_at, updated_at, topic, state, past_at, pinned_at, source_conversation, "
    "source_seq, model, vector"
)


def erase_report(
    owner: str,
    conversation: str | None,
    message: str | None,
    reached: Mapping[str, int],
    cannot_reach: Sequence[str],
    now: int,
) -> EraseReport:
    """Build the report of an erase of conversations or of a message."""
    return EraseReport(
        owner=owner,
        conversation_id=conversation,
        message_id=message,
        conversations=reached.get("conversations", 0),
        entries=reached.get("entries", 0),
        reached=dict(reached),
        cannot_reach=(*cannot_reach, *_beside(conversation, message)),
        erased_at=from_micros(now),
    )


def _beside(conversation: str | None, message: str | None) -> Sequence[str]:
    if conversation is None:
        return ()
    return (OF_THE_OWNER,) if message is None else (QUOTES,)


def memory_erased(owner: str, id: str, cannot_reach: Sequence[str], now: int) -> EraseReport:
    """Build the report of an erase of one memory, whose index tokens and vector are erased with it."""
    return replace(erase_report(owner, None, None, {"notes": 1}, cannot_reach, now), memory_id=id)


def note_values(note: Note) -> tuple[Any, ...]:
    """A note as the values of `NOTE_COLUMNS`."""
    return tuple(int(value) if isinstance(value, IntEnum) else value for value in note[:15])


def note_words(owner: str, note: Note) -> str | None:
    """Return the index tokens of a note: always the same for the same note, so that they can be removed again."""
    return note_tokens(owner, note.namespace, note.text) if note.is_found else None


def note_tokens(owner: str, namespace: str, text: str) -> str:
    """The same of a note's text."""
    return index_text(text, (namespace_scope(owner, namespace),))


_SKILL_TOOLS = frozenset({"skill", "load_skill", "open_skill", "read_skill", "use_skill"})
_SKILL_ARGUMENTS = ("name", "skill", "skill_name")
_MOST_NAME_CHARACTERS = 128


def may_call(role: str, change_kind: int | None, raw: bytes | None) -> bool:
    """Whether a new message may call tools or skills. Most call none, which their bytes show without decoding."""
    if role != "assistant" or change_kind is not None or raw is None:
        return False
    return raw.find(b"_call") >= 0 or raw.find(b"tool_use") >= 0


def uses_of(calling: Iterable[payloads.Payload]) -> Counter[Use]:
    """Return the tools and skills that messages call, one use for each call."""
    uses = (_use(call.name, call.arguments) for payload in calling for call in calls_of(payload))
    return Counter(use for use in uses if 0 < len(use.name) <= _MOST_NAME_CHARACTERS and use.name.isprintable())


def uses_in(entries: Iterable[Entry]) -> Counter[Use]:
    """Return the tools and skills that entries call."""
    return uses_of(
        sound_payload(entry.raw or b"{}") for entry in entries if may_call(entry.role, entry.change_kind, entry.raw)
    )


def _use(name: str, arguments: object) -> Use:
    if name not in _SKILL_TOOLS:
        return Use("tool", name)
    if isinstance(arguments, str):
        with suppress(orjson.JSONDecodeError):
            arguments = orjson.loads(arguments)
    given = arguments if isinstance(arguments, dict) else {}
    return next((Use("skill", str(given[key])) for key in _SKILL_ARGUMENTS if given.get(key)), Use("tool", name))


CHECKPOINT_COLUMNS = (
    "key, namespace, id, parent_id, run_id, state, log_count, branch, leaf_seq, leaf_depth, body, metadata"
)
WRITE_COLUMNS = "key, task_id, idx, task_path, channel, kind, value, is_held"
THREAD_COLUMNS = "made, tip, epoch, is_closed, erasures"


def checkpoint_from_row(row: Any) -> StoredCheckpoint:
    """A checkpoint from the columns of `CHECKPOINT_COLUMNS`."""
    return StoredCheckpoint._make((row[0] & SEQ_MASK, *row[1:]))


def write_from_row(row: Any) -> StoredWrite:
    """A write from the columns of `WRITE_COLUMNS`."""
    return StoredWrite._make((row[0] & SEQ_MASK, *row[1:7], bool(row[7])))


def thread_from_row(row: Any) -> Thread:
    """From the columns of `THREAD_COLUMNS`; a conversation without checkpoints has no row."""
    return Thread() if row is None else Thread(row[0], row[1], row[2], bool(row[3]), row[4])


def checkpoint_values(conversation: int, row: StoredCheckpoint) -> tuple[Any, ...]:
    """A checkpoint as the values of its row."""
    return (entry_key(conversation, row.number), *row[1:])


def write_values(conversation: int, write: StoredWrite) -> tuple[Any, ...]:
    """A write as the values of its row."""
    return (entry_key(conversation, write.checkpoint), *write[1:7], int(write.is_held))


_RECORD = (
    "level", "after_seq", "branch", "span_hash", "children", "summary", "strategy", "model", "trigger",
    "original_count", "new_count", "tokens_before", "tokens_after", "facts_total", "facts_kept", "seconds",
    "struck",
)  # fmt: skip
"""The fields of a compaction that never change, stored as one JSON document."""

CONVERSATION_COLUMNS = (
    "c.number, c.owner, c.id, p.id, c.title, c.metadata, c.is_active, c.off_record, c.created_at, c.updated_at, "
    "c.deleted_at, c.entry_count, c.chain, c.leaf_depth, c.last_said_at"
)
CANNOT_REACH = (
    "backups and exports made earlier (restoring one of ours applies this erasure again)",
    "file-system snapshots, and blocks a drive keeps for itself",
    "what other processes that have the database open hold in memory, until they have read enough else or end",
    "ids of conversations and messages, which tombstones need to refuse late writes",
)
"""What an erase report lists as beyond its reach, on any database."""
OF_THE_OWNER = (
    "what belongs to the owner, also where it speaks of the same: memories from elsewhere, documents, items of "
    "LangGraph's store, crons, copies of the conversation; erase the owner, or these one by one"
)
"""And where it was one conversation."""
QUOTES = (
    "quotes of the message: in other messages and tool results, in what subagents were told, in copies of the "
    "conversation and in other values of a graph's state; search for its words, and erase what is found"
)
"""And where it was one message: nobody knows which of the others repeat it."""


def line_with(starts_at: int, line: bytes, first_byte: int, more: bytes) -> bytes | None:
    """Return a line of an import with other bytes from a position of its file on; None where it has them already, and
    where there is a gap between."""
    kept = first_byte - starts_at
    return None if kept > len(line) or line[kept:].startswith(more) else line[:kept] + more

"""Reading a conversation for what is worth remembering: what its user said since it was last read.

By plain rules always; by a model, where there is one, for messages in which the rules found nothing. How far it was
read is noted with what was found, in one transaction, so that reading twice remembers once. Subagents are told things
by other programs, not by the user: theirs are not read, nor is what is off the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from everthread.context.message_format import is_user_turn
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.embeddings import Embedder
from everthread.core.entries import Entry, Flag, Kind, Revision
from everthread.core.errors import ModelError
from everthread.core.ids import new_id
from everthread.core.memories import Memory, MemoryScope, Origin
from everthread.core.notes import NoteKind, NoteQuery
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Store
from everthread.recall.extraction import Extractor, asked
from everthread.recall.noted import vectors_of
from everthread.recall.remarks import READ_CHARACTERS, Remark, may_tell, remarks
from everthread.recall.remembered import Draft, Reading, Remember, read_until

_PAGE = 200
_MOST_ASKED_CHARACTERS = 24_000
"""What a model is shown at once; of more, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads, and how."""

    redact: Callable[[str], str] = str
    """Takes secrets out before anybody reads."""
    model: Extractor | None = None
    seconds: float = 30.0
    """How long a model may take."""
    embedder: Embedder | None = None
    """Says what the memories mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of reading."""

    memories: Sequence[Memory] = ()
    model_failed: bool = False
    model_asked: bool = False


async def read(store: Store, ref: Ref, reader: Reader) -> Outcome:
    """Read on from where it was left; gives what was remembered."""
    info = await store.conversations.get(ref)
    if info.off_record or info.parent_id is not None:
        return Outcome()
    until = await _left_at(store, ref)
    told: list[Memory] = []
    was_asked = failed = False
    while entries := await store.log.scan(ref, after=until, limit=_PAGE):
        said = {seq: reader.redact(text) for seq, text in _said(entries)}
        found = {seq: remarks(text) for seq, text in said.items()}
        unread = _worth_asking(said, found) if reader.model is not None and not failed else {}
        try:
            by_model = await asked(reader.model, unread, reader.seconds) if reader.model and unread else {}
        except ModelError:
            by_model, failed = {}, True
        was_asked = was_asked or bool(unread)
        drafts = [*_drafts(ref, found, "rules"), *_drafts(ref, by_model, "model")]
        vectors = await vectors_of(reader.embedder, [draft.text for draft in drafts])
        drafts = [replace(draft, vector=vector) for draft, vector in zip(drafts, vectors, strict=True)]
        until = entries[-1].seq
        reading = Reading(conversation=ref.id, until=until)
        told += await store.notes.change(ref.owner, Remember(owner=ref.owner, drafts=drafts, reading=reading))
    return Outcome(memories=told, model_failed=failed, model_asked=was_asked)


async def _left_at(store: Store, ref: Ref) -> int:
    key = Reading(conversation=ref.id, until=0).key
    marks = await store.notes.list(ref.owner, NoteQuery(kind=NoteKind.MARK, keys=[key]))
    return read_until(marks[0] if marks else None)


def _said(entries: Sequence[Entry]) -> list[tuple[int, str]]:
    """What a person said, each message in its newest revision, by its place."""
    spoken = [entry for entry in entries if entry.kind == Kind.MESSAGE and entry.role == "user" and entry.raw]
    standing = [
        entry
        for entry in spoken
        if entry.newest_seq is None and entry.how != Revision.STUB and not entry.flags & (Flag.DELETED | Flag.ERASED)
    ]
    own = [(entry, Message(entry).payload) for entry in standing]
    return [
        (_place(entry), payloads.text(payload)[:READ_CHARACTERS]) for entry, payload in own if is_user_turn(payload)
    ]


def _place(entry: Entry) -> int:
    return entry.seq if entry.is_place or entry.revises is None else entry.revises


def _worth_asking(said: Mapping[int, str], found: Mapping[int, Sequence[Remark]]) -> dict[int, str]:
    """Messages that may tell something and of which the rules made nothing, the newest as far as they go."""
    kept: dict[int, str] = {}
    left = _MOST_ASKED_CHARACTERS
    for seq in sorted(said, reverse=True):
        if found[seq] or not may_tell(said[seq]):
            continue
        left -= len(said[seq])
        if left < 0:
            break
        kept[seq] = said[seq]
    return dict(sorted(kept.items()))


def _drafts(ref: Ref, found: Mapping[int, Sequence[Remark]], origin: Origin) -> list[Draft]:
    return [
        Draft(
            id=new_id(),
            text=remark.text,
            kind=remark.kind,
            scope=MemoryScope.USER,
            tokens=count_tokens(remark.text),
            conversation=ref.id,
            seq=seq,
            subject=remark.subject,
            origin=origin,
            confidence=remark.confidence,
            is_pinned=remark.is_pinned,
        )
        for seq, some in found.items()
        for remark in some
    ]

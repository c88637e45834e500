"""Reading an archive in: every line is checked against its hash, every entry against its chain, before a conversation
is written, whole or not at all.

What is here already with the same chain is left as it is, so an import that was cut short can be begun again.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from io import TextIOBase
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from everthread.core import chain
from everthread.core.access import without_share
from everthread.core.background import run_in_background
from everthread.core.clock import from_micros
from everthread.core.entries import Entry, EntryOrigin, Kind, Mark, Revision
from everthread.core.errors import Conflict, Invalid, NotFound
from everthread.core.ids import check_id, check_text
from everthread.core.log import BranchRow, Decision, IntentInputs, Needs, Touch
from everthread.core.nouns import ConversationInfo, Ref
from everthread.core.ports import NewConversation, Store
from everthread.history import verify
from everthread.history.archive import VERSION
from everthread.history.arguments import MAX_TITLE_CHARACTERS
from everthread.history.ingest import MAX_DEPTH, count_raw, dump
from everthread.history.payload_json import nesting_depth

_MAX_BYTES = 16 * 1024**3
_STEP_BYTES = 64
"""How much is unpacked at once. The smallest block of zstd is three bytes and a byte that is repeated 128 KiB long,
so a step gives at most 2 MiB, whatever an archive claims."""
_MAX_WINDOW_BYTES = 8 * 1024 * 1024
"""How far back an archive may refer, which is kept in memory; ours are written with half of it."""
_PAUSE_BYTES = 64 * 1024
"""After how many bytes other tasks get a turn: a few bytes of input may unpack to much that is parsed, hashed and
counted."""
_PIECE_BYTES = 1024 * 1024
"""How much of a file is read at once."""
_ENTRY_BYTES = 1024
"""The memory that an entry takes beside its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How much of an archive may be held in memory; less for archives of strangers."""

    line_bytes: int = 256 * 1024 * 1024
    """How long a line may be, and so a message."""
    conversation_bytes: int = 8 * 1024**3
    """How large a conversation may be, which is written whole or not at all: its text, and 1 KiB for each entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Which conversations of an archive were imported, and which were already there.

    ```python
    report = await et.import_archive(et.export_archive(conversations=["trip"]))
    print(report.imported, report.skipped)
    ```
    """

    imported: tuple[str, ...]
    """The ids of the conversations that were imported."""
    skipped: tuple[str, ...]
    """The ids of those that were already here, entry for entry."""
    entries: int
    messages: int


@dataclass(slots=True)
class _Draft:
    """A conversation that is being read."""

    row: Mapping[str, Any]
    branches: list[BranchRow]
    active: int
    hashed: Any
    link: bytes
    """The chain so far, for the owner who reads it in."""
    entries: list[Entry] = field(default_factory=list)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLog:
    """A log as it was, entry for entry, in an empty conversation."""

    entries: Sequence[Entry]
    branches: Sequence[BranchRow]
    active: int

    def needs(self) -> Needs:
        return Needs()

    def decide(self, seen: IntentInputs, now: int) -> Decision[int]:
        if seen.head.entry_count:
            raise Conflict(f"conversation {seen.head.id!r} has other messages already; nothing of it was changed")
        touches = [
            Touch(entry.seq, entry.updated_at, newest_seq=entry.newest_seq, commitment=entry.commitment)
            for entry in self.entries
            if entry.updated_at is not None
        ]
        return Decision(
            result=len(self.entries),
            entries=self.entries,
            touches=touches,
            branches=self.branches,
            active=self.active,
            chain=self.entries[-1].chain if self.entries else seen.head.chain,
        )


Archive = AsyncIterable[bytes] | bytes | str | Path | BinaryIO
"""What an archive can be read from; a text is the path of its file."""


async def pieces_of(archive: Archive) -> AsyncGenerator[bytes, None]:
    """An archive in pieces. A file is read in a thread, and stays as open as it was."""
    if isinstance(archive, bytes | bytearray):
        yield bytes(archive)
    elif isinstance(archive, str | Path):
        try:
            file = await asyncio.to_thread(Path(archive).open, "rb")
        except OSError as problem:
            raise Invalid(f"{archive} cannot be read: {problem.strerror}", field="pieces") from problem
        with file:
            async for piece in pieces_of(file):
                yield piece
    elif hasattr(archive, "__aiter__"):
        async for piece in archive:
            yield piece
    elif callable(read := getattr(archive, "read", None)) and not isinstance(archive, TextIOBase):
        while piece := await asyncio.to_thread(read, _PIECE_BYTES):
            yield piece
    else:
        raise Invalid(
            "must be the archive's bytes, the path of its file, a file that is open for reading bytes, or the pieces "
            f"that export_archive() gives, not {type(archive).__name__}",
            field="pieces",
        )


async def import_archive(
    store: Store, owner: str, pieces: AsyncIterable[bytes], limits: ImportLimits | None = None
) -> ImportReport:
    """Write the conversations of an archive for an owner. Invalid names the line that is wrong; conversations before
    it are here then, and stay."""
    limits = limits or ImportLimits()
    reader = _Reader(store, owner, limits)
    number = 0
    async for line in _lines(pieces, limits):
        number += 1
        try:
            await reader.read(line, _parsed(line))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as problem:
            raise Invalid(f"line {number} of the archive cannot be read ({type(problem).__name__})") from problem
        except Invalid as problem:
            raise Invalid(f"line {number} of the archive: {problem}") from problem
    return reader.report()


def _parsed(line: bytes) -> Any:
    _refuse_deep(line)
    return json.loads(line)


def _refuse_deep(text: bytes) -> None:
    """Refuse JSON that is nested too deeply: a parser uses its stack for each level, and may fail or crash."""
    if nesting_depth(text, MAX_DEPTH) > MAX_DEPTH:
        raise Invalid(f"JSON nested deeper than {MAX_DEPTH} levels")


async def _lines(pieces: AsyncIterable[bytes], limits: ImportLimits) -> AsyncIterator[bytes]:
    unpacking = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj()
    line, total, paused_at, read = bytearray(), 0, 0, 0
    async for piece in pieces:
        for start in range(0, len(piece), _STEP_BYTES):
            try:
                unpacked = unpacking.decompress(piece[start : start + _STEP_BYTES])
            except zstandard.ZstdError as problem:
                raise Invalid("not an everthread archive: it cannot be decompressed") from problem
            total += len(unpacked)
            first, *others = unpacked.split(b"\n")
            line += first
            if len(line) > limits.line_bytes or total > _MAX_BYTES:
                raise _too_large()
            for other in others:
                yield bytes(line) + b"\n"
                read += len(line)
                line = bytearray(other)
                if read >= _PAUSE_BYTES:
                    read = 0
                    await asyncio.sleep(0)
            if total - paused_at >= _PAUSE_BYTES:
                paused_at = total
                await asyncio.sleep(0)
    if line or not unpacking.eof:
        raise Invalid("the archive is incomplete: it ends in the middle")


def _too_large() -> Invalid:
    return Invalid(
        "the archive is too large when decompressed; export its conversations one by one, or import it with "
        "`everthread import` where the database is"
    )


class _Reader:
    """Reads an archive line by line."""

    def __init__(self, store: Store, owner: str, limits: ImportLimits) -> None:
        self._store = store
        self._owner = owner
        self._limits = limits
        self._draft: _Draft | None = None
        self._has_begun = False
        self._ends: list[Mapping[str, Any]] = []
        self._is_whole = False
        self._imported: list[str] = []
        self._skipped: list[str] = []
        self._entries = self._messages = 0
        self._chains: dict[str, bytes] = {}

    async def read(self, line: bytes, value: Mapping[str, Any]) -> None:
        if not self._has_begun:
            self._begin(value)
        elif "conversation" in value:
            self._open(line, value)
        elif "entry" in value:
            self._take(line, value["entry"])
        elif "end" in value:
            await self._close(value["end"])
        elif "manifest" in value:
            self._check_whole(value["manifest"])
        else:
            raise Invalid("unknown record type")

    def _begin(self, value: Mapping[str, Any]) -> None:
        if value.get("everthread") != "archive":
            raise Invalid("not an everthread archive")
        if value.get("version") != VERSION:
            raise Invalid(
                f"unsupported archive version {value.get('version')!r}; this everthread reads version {VERSION}"
            )
        self._has_begun = True

    def _open(self, line: bytes, value: Mapping[str, Any]) -> None:
        if self._draft is not None:
            raise Invalid("a conversation begins before the previous one ended")
        row = value["conversation"]
        id = check_id(row["id"], "id")
        branches = [BranchRow(*map(_integer_or_none, one)) for one in value["branches"]]  # type: ignore[arg-type]
        if [one.number for one in branches] != list(range(len(branches))) or not 0 <= value["active"] < len(branches):
            raise Invalid("the branches are not numbered from 0")
        self._draft = _Draft(row, branches, value["active"], sha256(line), chain.genesis(self._owner, id))

    def _take(self, line: bytes, value: Mapping[str, Any]) -> None:
        draft = self._draft
        if draft is None:
            raise Invalid("an entry outside of a conversation")
        draft.size_bytes += len(line) + _ENTRY_BYTES
        if draft.size_bytes > self._limits.conversation_bytes:
            raise _too_large()
        entry = _entry(value)
        if entry.seq != len(draft.entries) + 1:
            raise Invalid(f"entry {len(draft.entries) + 1} is missing")
        commitment = chain.commitment_of(entry)
        if commitment is None:
            raise Invalid(f"entry {entry.seq} has neither text nor commitment")
        draft.link = chain.relink(draft.link, entry, commitment)
        draft.entries.append(entry._replace(chain=draft.link))
        draft.hashed.update(line)

    async def _close(self, end: Mapping[str, Any]) -> None:
        draft, self._draft = self._draft, None
        if draft is None or end["id"] != draft.row["id"]:
            raise Invalid("the end of a conversation that did not begin")
        if (end["sha256"], end["entries"]) != (draft.hashed.hexdigest(), len(draft.entries)):
            raise Invalid(f"conversation {end['id']!r} does not match its hash")
        if faults := await run_in_background(verify.faults, draft.entries, draft.branches):
            raise Invalid(f"conversation {end['id']!r} is inconsistent: {faults[0]}")
        self._ends.append(end)
        self._chains[end["id"]] = draft.link
        await self._write(draft)

    async def _write(self, draft: _Draft) -> None:
        ref = Ref(self._owner, draft.row["id"])
        info = await self._find_or_create(ref, draft)
        if info.entry_count and info.chain == draft.link:
            self._skipped.append(ref.id)
            return
        if draft.entries:
            intent = ImportLog(entries=draft.entries, branches=draft.branches, active=draft.active)
            await self._store.log.write(ref, intent)
        await self._store.conversations.update(ref, _later(draft.row))
        self._imported.append(ref.id)
        self._entries += len(draft.entries)
        self._messages += sum(entry.is_place and not entry.is_erased for entry in draft.entries)

    async def _find_or_create(self, ref: Ref, draft: _Draft) -> ConversationInfo:
        try:
            return await self._store.conversations.get(ref)
        except NotFound:
            return await self._store.conversations.create(await self._new(ref, draft.row))

    async def _new(self, ref: Ref, row: Mapping[str, Any]) -> NewConversation:
        parent = row["parent_id"]
        if parent is not None:
            try:
                await self._store.conversations.get(Ref(ref.owner, check_id(parent, "parent_id")))
            except NotFound:  # exported without it
                parent = None
        return NewConversation(
            owner=ref.owner,
            id=ref.id,
            parent_id=parent,
            title=_title(row["title"]),
            metadata=dump(without_share(dict(row["metadata"])), field="metadata"),
            off_record=bool(row["off_record"]),
            created_at=from_micros(_integer(row["created_at"])),
        )

    def _check_whole(self, manifest: Mapping[str, Any]) -> None:
        whole = sha256("".join(end["sha256"] for end in self._ends).encode()).hexdigest()
        if manifest["conversations"] != self._ends or manifest["sha256"] != whole:
            raise Invalid("the manifest does not match the conversations in the archive")
        if manifest["owner"] == self._owner:
            for end in self._ends:
                if end["chain"] != self._chains[end["id"]].hex():
                    raise Invalid(f"the chain of conversation {end['id']!r} does not match the manifest")
        self._is_whole = True

    def report(self) -> ImportReport:
        if not self._is_whole:
            raise Invalid(
                "the archive is incomplete: it has no manifest at its end; the conversations before that were imported"
            )
        return ImportReport(
            imported=tuple(self._imported),
            skipped=tuple(self._skipped),
            entries=self._entries,
            messages=self._messages,
        )


def _title(title: object) -> str | None:
    if title is None:
        return None
    if not isinstance(title, str) or len(title) > MAX_TITLE_CHARACTERS:
        raise Invalid(f"must be a string of at most {MAX_TITLE_CHARACTERS} characters", field="title")
    return check_text(title, "title")


def _later(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a row gets only after it was created."""
    deleted = row["deleted_at"]
    return {
        "is_active": bool(row["is_active"]),
        "deleted_at": None if deleted is None else from_micros(_integer(deleted)),
    }


def _entry(value: Mapping[str, Any]) -> Entry:
    kind = Kind(value["kind"])
    change_kind = value["how"]
    if change_kind is not None:
        change_kind = int(Mark(change_kind) if kind is Kind.MARK else Revision(change_kind))
    entry = Entry(
        seq=_integer(value["seq"]),
        id=check_id(value["id"], "id"),
        kind=int(kind),
        role=check_id(value["role"], "role") if value["role"] else "",
        revises=_integer_or_none(value["revises"]),
        change_kind=change_kind,
        revision=_integer(value["revision"]),
        parent_seq=_integer_or_none(value["parent_seq"]),
        branch=_integer(value["branch"]),
        depth=_integer(value["depth"]),
        created_at=_integer(value["created_at"]),
        tokens=_tokens(kind, value),
        salt=_bytes_or_none(value["salt"]),
        chain=b"",
        raw=_raw(value),
        commitment=_bytes_or_none(value["commitment"]),
        newest_seq=_integer_or_none(value["newest_seq"]),
        flags=_integer(value["flags"]),
        updated_at=_integer_or_none(value["updated_at"]),
        origin=int(EntryOrigin(value.get("origin", EntryOrigin.UNKNOWN))),  # archives older than origins have none
        chain_version=_integer(value.get("chain_version", 1)),
    )
    if not 1 <= entry.chain_version <= chain.VERSION:
        raise Invalid(f"entry {entry.seq} has a link of version {entry.chain_version}; upgrade everthread")
    if any(seq is not None and not 0 < seq < entry.seq for seq in (entry.revises, entry.parent_seq)):
        raise Invalid(f"entry {entry.seq} refers to an entry that does not come before it")
    if (entry.raw is None) is not entry.is_erased or (entry.raw is not None and entry.salt is None):
        raise Invalid(f"entry {entry.seq} has no text and was not erased")
    if entry.updated_at is None and (entry.newest_seq is not None or entry.is_erased):
        raise Invalid(f"entry {entry.seq} was changed, but has no time of the change")
    return entry


def _tokens(kind: Kind, value: Mapping[str, Any]) -> int:
    """The tokens of an entry, counted again because windows and budgets rely on them, and an archive may state
    anything."""
    raw = _raw(value)
    return 0 if raw is None or kind is Kind.MARK else count_raw(raw)


def _raw(value: Mapping[str, Any]) -> bytes | None:
    if "raw64" in value:
        try:
            raw = b64decode(value["raw64"], validate=True)
        except BadBase64 as problem:
            raise Invalid("not valid base64") from problem
    elif "raw" in value:
        raw = value["raw"].encode()
    else:
        return None
    _refuse_deep(raw)  # it is parsed whenever the message is read
    return raw


def _integer(value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise Invalid(f"{value!r} is not a whole number")
    return value


def _integer_or_none(value: object) -> int | None:
    return None if value is None else _integer(value)


def _bytes_or_none(value: str | None) -> bytes | None:
    return None if value is None else bytes.fromhex(value)

"""Writes sessions that are read as a whole: of documents that their program replaces, and of databases.

Such a file has no lines to keep, and can go back to what it was: a backup is restored, something is undone. The
log then shows what the file says now, and keeps the rest: other content is a revision, and what is gone gets a mark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from everthread.core.entries import EntryOrigin, Flag, Kind
from everthread.core.errors import NotFound
from everthread.core.imports import NOT_IN_FILE
from everthread.core.nouns import Ref
from everthread.imports.intents import MarkRemoved, ShowLast
from everthread.imports.session import BrokenEntry, NativeMessage, Session
from everthread.imports.write import BATCH_MESSAGES, ImportCounts, SessionWriter
from everthread.instance import Everthread

_PAGE = 1000
_SESSIONS_HELD = 64
"""Of so many sessions it is remembered which messages they had: one that only grew is not compared with the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """What the sessions that are being read stand in."""

    path: Path
    name: str
    """What its source is called."""
    is_changed: bool = False
    """Whether it was read before, so that what it says now is newer than what the log has, whatever it is."""
    is_complete: bool = False
    """Whether a session has all its messages in one place, so that those that are not there were removed."""


class WholeSessionWriter:
    """Writes whole sessions of one owner."""

    def __init__(self, et: Everthread, owner: str, counts: ImportCounts) -> None:
        self._store = et.store
        self._owner = owner
        self._counts = counts
        self._writer = SessionWriter(et, owner, counts)
        self._held: dict[str, set[str]] = {}

    async def write(self, session: Session, messages: Iterable[NativeMessage | BrokenEntry], file: WholeFile) -> None:
        """Write a session as its file has it now."""
        if file.is_complete:
            session.note(source=file.name)
        said: list[NativeMessage] = []
        is_whole = file.is_complete
        for one in messages:
            if isinstance(one, BrokenEntry):
                self._counts.add_problem(f"{file.path}: {one}")
                is_whole = False
            else:
                said.append(one)
        newest = {str(message.payload["id"]): message for message in said}
        known_before = self._counts.messages
        for start in range(0, len(said), BATCH_MESSAGES):
            batch = [(message, None, b"") for message in said[start : start + BATCH_MESSAGES]]
            await self._writer.write(
                session, batch, source=0, place=str(file.path),
                is_newest=lambda message: file.is_changed and newest[str(message.payload["id"])] is message,
            )  # fmt: skip
        if is_whole:
            await self._go_along(session.id, newest, file, has_new=self._counts.messages > known_before)

    async def _go_along(self, id: str, there: Collection[str], file: WholeFile, *, has_new: bool) -> None:
        """Show the branch that the file shows now, and mark what it has no more."""
        held = self._held.pop(id, None)
        self._held[id] = set(there)
        while len(self._held) > _SESSIONS_HELD:
            del self._held[next(iter(self._held))]
        if not file.is_changed:
            return
        ref = Ref(self._owner, id)
        try:
            info = await self._store.conversations.get(ref)
            if info.metadata.get("source") != file.name:  # it came from another file first, which says what it has
                return
            if there and not has_new:  # a new message is on the branch that is shown
                await self._store.log.write(ref, ShowLast(id=list(there)[-1]))
            if held is not None and held <= self._held[id]:
                return
            gone = await self._imported(ref, self._held[id])
            for start in range(0, len(gone), _PAGE):
                self._counts.removed += await self._store.log.write(ref, MarkRemoved(seqs=gone[start : start + _PAGE]))
        except NotFound:  # erased here
            return

    async def _imported(self, ref: Ref, there: Collection[str]) -> list[int]:
        """The places of messages that were imported, are not there now, and not in a file of lines either."""
        found: list[int] = []
        after = 0
        while entries := await self._store.log.scan(ref, after=after, limit=_PAGE, with_tokens=False):
            found += [
                entry.seq
                for entry in entries
                if entry.kind == Kind.MESSAGE and entry.revises is None and entry.raw is not None
                and entry.origin == EntryOrigin.IMPORT and not entry.flags & Flag.REMOVED and entry.id not in there
            ]  # fmt: skip
            after = entries[-1].seq
        if not found:
            return found
        after = 0
        in_lines: set[int] = set()
        while lines := await self._store.imports.lines(ref, after=after, limit=_PAGE):
            in_lines |= {line.seq for line in lines if line.first_byte != NOT_IN_FILE}
            after = lines[-1].seq
        return [seq for seq in found if seq not in in_lines]

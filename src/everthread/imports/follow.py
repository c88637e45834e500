"""Brings the log up to date with a file of JSON lines, and does so again whenever the file changes.

Of each file the store has how far it was read and the hash of all up to there. A file that only grew is read on from
there. One that was rewritten or cut is read again from its beginning: messages are known by their ids, not by their
places, what changed becomes a revision, and what is gone gets a mark. Whatever happens in between, the same file can
be read again: nothing is lost and nothing doubled.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, suppress
from itertools import dropwhile, groupby
from pathlib import Path
from typing import BinaryIO

import zstandard

from everthread.core.entries import Flag
from everthread.core.errors import Erased, NotFound
from everthread.core.imports import NOT_IN_FILE, ImportSource
from everthread.core.nouns import Ref
from everthread.imports.detect import PACKED_LINES, plain_path
from everthread.imports.intents import MarkRemoved, ShowLast
from everthread.imports.line_file import Batch, LineFile, is_newest
from everthread.imports.session import BrokenEntry, NativeMessage, moment_of
from everthread.imports.write import ImportCounts, SessionWriter
from everthread.instance import Everthread

_PAGE = 1000
MAX_UNPACKED_BYTES = 4 << 30
MAX_RATIO = 500
"""What claims to be so many times its packed size, and is large, is a bomb."""
_SMALL_BYTES = 1 << 20
MAX_OPEN = 64
"""Files whose readers stay in memory between two changes; of others the file is read again from its beginning."""


class Follower:
    """Follows the files of one owner."""

    def __init__(self, et: Everthread, owner: str, counts: ImportCounts) -> None:
        self._imports = et.store.imports
        self._log = et.store.log
        self._conversations = et.store.conversations
        self._owner = owner
        self.counts = counts
        self._writer = SessionWriter(et, owner, counts)
        self.unpacked_bytes = 0
        """What the packed files that were read held, and the files beside others."""
        self._open: dict[str, tuple[LineFile, int]] = {}
        """Readers of files that changed lately, and the inodes they read."""

    async def catch_up(
        self, path: Path, format: str, *, name: str | None = None, on_bytes: Callable[[int], None] = lambda _: None
    ) -> bool:
        """Write everything that is new in a file. False if there was nothing to do. `name` is what its source is called
        where that is not its path."""
        name = source_name(path) if name is None else name
        is_packed = path.name.endswith(PACKED_LINES)
        source = await self._imports.source(self._owner, name)
        try:
            with ExitStack() as opened:
                file: BinaryIO = opened.enter_context(path.open("rb"))
                status = os.fstat(file.fileno())
                if source is not None and is_unchanged(source, status, is_packed=is_packed):
                    return False
                if is_packed:
                    plain: BinaryIO = opened.enter_context(tempfile.TemporaryFile())
                    try:
                        await asyncio.to_thread(_unpack, file, plain, status.st_size)
                    finally:
                        self.unpacked_bytes += plain.tell()
                    file = plain
                await self._read(file, status, plain_path(path), name, format, source, on_bytes)
        except FileNotFoundError:
            return await self.note_gone(name)
        except BrokenEntry as problem:
            self.counts.add_problem(f"{path}: {problem}")
        return True

    async def note_gone(self, name: str) -> bool:
        """Record that a file was deleted. Its messages stay."""
        self._open.pop(name, None)
        source = await self._imports.source(self._owner, name)
        if source is None or source.inode is None:
            return False
        await self._imports.keep_source(self._owner, source._replace(inode=None))
        return True

    async def _read(
        self,
        file: BinaryIO,
        status: os.stat_result,
        path: Path,
        name: str,
        format: str,
        source: ImportSource | None,
        on_bytes: Callable[[int], None],
    ) -> None:
        is_new = source is None
        if source is None:
            source = ImportSource(0, format, name, status.st_ino, 0, LineFile(path, format).digest.digest(), 0)
            source = source._replace(number=await self._imports.keep_source(self._owner, source))
        lines = self._resumed(file, status, name, source)
        is_rewritten = False
        newest: Mapping[str, str] = {}
        if lines is None:
            lines = LineFile(path, format)
            is_rewritten = not await asyncio.to_thread(_skip, lines, file, source)
        told_until = 0
        if is_rewritten:
            lines = LineFile(path, format)
            if await self._was_only_written(source):
                is_rewritten, told_until = False, source.updated_at
            else:
                newest = await self._detach(file, path, format, source)
        self._open.pop(name, None)
        new, known = self.counts.messages, self.counts.known
        await self._write_rest(file, lines, source, status, on_bytes, newest, told_until)
        is_back = not is_new and self.counts.messages == new and self.counts.known > known
        if is_back and lines.last_session is not None:  # a copy beside the file that is followed changes nothing
            with suppress(NotFound, Erased):
                await self._log.write(Ref(self._owner, lines.last_session), ShowLast(id=lines.last_message))
        if is_rewritten:
            await self._mark_removed(lines, source)
            await self._keep(lines, source, status)
        self.counts.files += 1
        self._open[name] = (lines, status.st_ino)
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]

    def _resumed(self, file: BinaryIO, status: os.stat_result, name: str, source: ImportSource) -> LineFile | None:
        """The reader that stands where the store does, if the file only grew since."""
        lines, inode = self._open.get(name, (None, 0))
        if lines is None or inode != status.st_ino or lines.offset != source.read_bytes:
            return None
        has_grown = os.fstat(file.fileno()).st_size > lines.offset + lines.torn_bytes
        same_before = lines.digest.digest() == source.head_digest
        return lines if has_grown and same_before and lines.is_same(file) else None

    async def _write_rest(
        self,
        file: BinaryIO,
        lines: LineFile,
        source: ImportSource,
        status: os.stat_result,
        on_bytes: Callable[[int], None],
        newest: Mapping[str, str],
        told_until: int,
    ) -> None:
        is_continued = lines.offset > 0 or told_until > 0
        while True:
            started, session = lines.offset, lines.last_session
            batch = await asyncio.to_thread(lines.read, file)
            self.unpacked_bytes += batch.beside
            if is_continued and told_until:
                batch.messages = list(dropwhile(lambda one: _said_at(one[0]) <= told_until, batch.messages))
                batch.before.clear()
                session = lines.last_session
            if is_continued and batch.messages:
                is_continued = False
                await self._add_what_was_written(file, batch, session, source)
            if batch.before and session is not None:
                with suppress(NotFound):  # erased here meanwhile
                    await self._imports.write_at(
                        Ref(self._owner, session), source.number, batch.before_at, bytes(batch.before)
                    )
            await self._write(batch, lines, source, newest)
            for problem in batch.problems:
                self.counts.add_problem(problem)
            on_bytes(lines.offset - started)
            if batch.is_last:
                await self._keep(lines, source, status)
                return
            if lines.last_session is not None:
                await self._keep(lines, source, None)

    async def _add_what_was_written(
        self, file: BinaryIO, batch: Batch, session: str | None, source: ImportSource
    ) -> None:
        """Give the first message that follows in a file of `everthread resume` all lines before it: the log has their
        messages in another conversation, and none of the lines."""
        message, first_byte, line = batch.messages[0]
        if not first_byte or message.session.id != session:
            return
        try:
            ref = Ref(self._owner, session)
            if any(one.source == source.number for one in await self._imports.lines(ref, after=0, limit=1)):
                return
        except NotFound:
            pass
        file.seek(0)
        batch.messages[0] = message, 0, bytearray(await asyncio.to_thread(file.read, first_byte)) + line
        batch.before.clear()

    async def _write(self, batch: Batch, lines: LineFile, source: ImportSource, newest: Mapping[str, str]) -> None:
        for _, group in groupby(batch.messages, key=lambda one: one[0].session.id):
            messages = [(message, first_byte, bytes(line)) for message, first_byte, line in group]
            session = messages[0][0].session
            session.note(source=source.path)
            await self._writer.write(
                session, messages, source=source.number, place=str(lines.path),
                is_newest=lambda message: is_newest(message, newest),
            )  # fmt: skip

    async def _keep(self, lines: LineFile, source: ImportSource, status: os.stat_result | None) -> None:
        """Store how far the file was read; before its first message, that is nothing yet."""
        is_begun = lines.last_session is not None
        await self._imports.keep_source(
            self._owner,
            source._replace(
                inode=source.inode if status is None else status.st_ino,
                read_bytes=lines.offset if is_begun else 0,
                head_digest=lines.digest.digest() if is_begun else LineFile(lines.path, lines.format).digest.digest(),
                updated_at=0 if status is None else status.st_mtime_ns // 1000,
            ),
        )

    # -- files that were rewritten -------------------------------------------------------------------------

    async def _was_only_written(self, source: ImportSource) -> bool:
        """Whether the log has nothing of a file that was read: `everthread resume` wrote it, and what it had then is in
        the conversation that it came from."""
        is_known = source.read_bytes > 0 and source.updated_at > 0
        return is_known and not await self._sessions_of(LineFile(Path(source.path), source.format), source)

    async def _detach(self, file: BinaryIO, path: Path, format: str, source: ImportSource) -> Mapping[str, str]:
        """Forget where the lines of a rewritten file stood: those it still has are about to be written again. Returns
        which version of each message is the last that it has."""
        whole = LineFile(path, format)
        while not (await asyncio.to_thread(whole.read, file)).is_last:
            pass
        for id in await self._sessions_of(whole, source):
            with suppress(NotFound):
                await self._imports.detach_lines(Ref(self._owner, id), source.number)
        return whole.newest

    async def _sessions_of(self, lines: LineFile, source: ImportSource) -> set[str]:
        """The sessions that a file has now, and those it had: an emptied file names none."""
        found = set(lines.reader.sessions)
        position = None
        while True:
            page, position = await self._conversations.list(
                self._owner, limit=_PAGE, position=position, include_deleted=True, parent_id=None
            )
            found |= {info.id for info in page if info.metadata.get("source") == source.path}
            if position is None:
                return found

    async def _mark_removed(self, lines: LineFile, source: ImportSource) -> None:
        for id in await self._sessions_of(lines, source):
            ref = Ref(self._owner, id)
            try:
                gone = [seq async for seq in self._not_in_file(ref, source.number)]
                entries = await self._log.find(ref, seqs=gone)
            except NotFound:
                continue
            places = {entry.place_seq for entry in entries if not lines.has(id, entry.id)}
            new = sorted(
                entry.seq for entry in await self._log.find(ref, seqs=sorted(places)) if not entry.flags & Flag.REMOVED
            )
            for start in range(0, len(new), _PAGE):
                intent = MarkRemoved(seqs=new[start : start + _PAGE])
                self.counts.removed += await self._log.write(ref, intent)

    async def _not_in_file(self, ref: Ref, source: int) -> AsyncIterator[int]:
        after = 0
        while page := await self._imports.lines(ref, after=after, limit=_PAGE):
            for line in page:
                if line.source == source and line.first_byte == NOT_IN_FILE:
                    yield line.seq
            after = page[-1].seq


def _skip(lines: LineFile, file: BinaryIO, source: ImportSource) -> bool:
    """Read what was read before, and tell whether it is still the same."""
    if os.fstat(file.fileno()).st_size < source.read_bytes or not lines.skip_to(file, source.read_bytes):
        return source.read_bytes == 0
    return lines.digest.digest() == source.head_digest


def _said_at(message: NativeMessage) -> int:
    """When a message was said, in microseconds; later than all others where it does not say."""
    moment = moment_of(message.payload.get("created_at"))
    return 1 << 62 if moment is None else round(moment.timestamp() * 1e6)


def is_unchanged(source: ImportSource, status: os.stat_result, *, is_packed: bool = False) -> bool:
    """Whether a file is as it was when it was read. Its time alone does not tell: some disks know it to two seconds
    only, and some programs set it back. Of what was read to a line that is torn, or not at all, that cannot be told."""
    has_size = not is_packed and (source.read_bytes > 0 or source.head_digest is not None)
    return (
        source.inode == status.st_ino
        and source.updated_at == status.st_mtime_ns // 1000
        and (not has_size or source.read_bytes == status.st_size)
    )


def _unpack(packed: BinaryIO, plain: BinaryIO, packed_bytes: int) -> None:
    """The lines of a file that its agent packs, frame after frame. What is torn waits."""
    most_bytes = left = min(MAX_UNPACKED_BYTES, _SMALL_BYTES + MAX_RATIO * packed_bytes)
    unpacking = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    with unpacking.stream_reader(packed, read_across_frames=True, closefd=False) as lines:
        try:
            while left > 0 and (piece := lines.read(1 << 20)):
                plain.write(piece)
                left -= len(piece)
        except zstandard.ZstdError as problem:
            if not plain.tell():
                raise BrokenEntry(f"cannot be unpacked: {problem}") from problem
    if left <= 0:
        raise BrokenEntry(f"unpacks to more than {most_bytes >> 20:,} MB")
    plain.flush()


def stored_path(path: Path) -> str:
    """A path as every database can hold it."""
    return os.fsencode(path.absolute()).decode("utf-8", "backslashreplace").replace("\x00", "")


def source_name(path: Path) -> str:
    """What the source of a file is called: the same whether or not its agent has packed it since."""
    return stored_path(plain_path(path))

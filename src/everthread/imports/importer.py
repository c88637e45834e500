"""`everthread import`: a file, a folder or a zip of any known format, found out by what is in it.

Large files are read piece by piece. What cannot be read is named in the report and left out; everything else goes on.
A second import of the same adds nothing: messages are known by their ids.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import os
import re
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from everthread.core.errors import Invalid
from everthread.core.imports import ImportSource
from everthread.imports import chat_exports, message_lists
from everthread.imports.agent_databases import DATABASES
from everthread.imports.chat_exports import Draft
from everthread.imports.claude_code import OUTPUTS
from everthread.imports.detect import (
    Detected,
    Shape,
    detect,
    element_format,
    is_beside_conversations,
    is_packed_beside,
)
from everthread.imports.follow import MAX_RATIO, Follower, is_unchanged, source_name, stored_path
from everthread.imports.gemini_cli import read_document
from everthread.imports.line_file import READERS
from everthread.imports.session import (
    MAX_WEIGHT_BYTES,
    BrokenEntry,
    NativeMessage,
    Session,
    StoredSession,
    parse_json,
    parse_line,
    safe_id,
    weight_of,
)
from everthread.imports.task_files import read_task
from everthread.imports.whole import WholeFile, WholeSessionWriter
from everthread.imports.write import ImportCounts
from everthread.instance import Everthread

_CHUNK = 1 << 20
_SPANS_AT_ONCE = 10_000
MAX_DOCUMENT_BYTES = 512 << 20
"""A single JSON object is held in memory; an array is not, only the largest of its elements."""
MAX_UNPACKED_BYTES = 32 << 30
"""Of a zip, at most, unless less is allowed."""
_SMALL_BYTES = 64 << 20
_NAME_BYTES = 200

_READ_ONE: dict[str, Callable[[Mapping[str, Any]], Draft]] = {
    "chatgpt": chat_exports.read_chatgpt,
    "claude-ai": chat_exports.read_claude_ai,
    "open-webui": chat_exports.read_open_webui,
    "librechat": chat_exports.read_librechat,
    "sharegpt": message_lists.read_sharegpt,
    "openai-chat": message_lists.read_openai_chat,
}
FORMATS = (
    "everthread", *dict.fromkeys([*READERS, *DATABASES]), "cline", "roo",
    *_READ_ONE, "letta", "langsmith", "otel", "openai-agents",
)  # fmt: skip


class Importer:
    """Imports files for one owner and counts what that gave."""

    def __init__(
        self,
        et: Everthread,
        owner: str,
        *,
        on_bytes: Callable[[int], None] = lambda _: None,
        most_unpacked_bytes: int = MAX_UNPACKED_BYTES,
    ) -> None:
        self.counts = ImportCounts()
        self._et = et
        self._imports = et.store.imports
        self._owner = owner
        self._on_bytes = on_bytes
        self._most_unpacked_bytes = most_unpacked_bytes
        self._writer = WholeSessionWriter(et, owner, self.counts)
        self._states: dict[str, dict[str, int]] = {}
        """By the name of each database the states of its sessions that were read."""
        self._follower = Follower(et, owner, self.counts)

    @property
    def follower(self) -> Follower:
        """What follows the files of JSON lines."""
        return self._follower

    async def import_path(self, path: Path) -> ImportCounts:
        """Import a file, a folder or a zip. Raises Invalid when there is nothing in it that is known."""
        before, found = self.counts.files, False
        for file in await asyncio.to_thread(self._files_in, path):
            found = await self.import_file(file) or found
        if not found and self.counts.files == before and not self.counts.problem_count:
            raise Invalid(f"no importable file found in {path}; supported formats: {', '.join(FORMATS)}", field="path")
        return self.counts

    async def import_stream(self, pieces: AsyncIterator[bytes]) -> ImportCounts:
        """Import one file that comes piece by piece, as an upload does. It goes to a temporary file first."""
        with tempfile.TemporaryDirectory(prefix="everthread-import-") as folder:
            path, digest = Path(folder) / "upload", sha256()
            with path.open("wb") as file:
                async for piece in pieces:
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
            with self._problems_under(path, "the upload"):
                is_known = await self._import_file(path, f"upload:{digest.hexdigest()}")
            if not is_known:
                known = ", ".join(FORMATS)
                raise Invalid(f"unrecognised format; supported: {known}. Nothing was written", field="body")
        return self.counts

    @contextmanager
    def _problems_under(self, temporary: Path, name: str) -> Iterator[None]:
        """Name what was unpacked to a temporary file by what it is to the user."""
        told = self.counts.problems, self.counts.passed_over
        before = [len(one) for one in told]
        yield
        for one, known in zip(told, before, strict=True):
            one[known:] = [text.replace(str(temporary), name) for text in one[known:]]

    def _files_in(self, folder: Path) -> list[Path]:
        if not folder.exists():
            raise Invalid(f"there is no {folder}", field="path")
        if folder.is_file():
            return [folder]
        if not folder.is_dir():
            raise Invalid(f"{folder} is a pipe or a device; only files and folders can be imported", field="path")

        def name(problem: OSError) -> None:
            self.counts.add_problem(f"{problem.filename}: {problem.strerror}")

        found = []
        for above, folders, files in os.walk(folder, onerror=name):
            folders[:] = sorted(name for name in folders if name != OUTPUTS)  # read with the session they belong to
            found += [Path(above) / file for file in sorted(files) if not is_packed_beside(file, files)]
        return oldest_first(path for path in found if path.is_file() and path.stat().st_size)

    async def import_file(self, path: Path) -> bool:
        """Import one file, or what is new in it; False if it is of no known kind."""
        return await self._import_file(path, source_name(path))

    async def _import_file(self, path: Path, name: str) -> bool:
        """`name` is what its source is called."""
        try:
            detected = await asyncio.to_thread(detect, path)
            if detected is None:
                return False
            await self._import_detected(path, name, detected)
        except OSError as problem:
            self.counts.add_problem(f"{path}: {problem.strerror or problem}")
        except (BrokenEntry, sqlite3.Error, zipfile.BadZipFile) as problem:
            self.counts.add_problem(f"{path}: {problem}")
        return True

    async def _import_detected(self, path: Path, name: str, detected: Detected) -> None:
        if detected.shape is Shape.LINES:
            is_new = await self._follower.catch_up(path, detected.format, name=name, on_bytes=self._on_bytes)
            self.counts.unchanged += not is_new
        elif detected.shape is Shape.ARCHIVE:
            await self._import_archive(path)
        elif detected.shape is Shape.DATABASE:
            await self._import_database(path, name, detected.format)
        else:
            status = await asyncio.to_thread(path.stat)
            known = await self._imports.source(self._owner, name)
            if known is not None and is_unchanged(known, status):
                self._on_bytes(status.st_size)
                self.counts.unchanged += 1
                return
            problems = self.counts.problem_count
            is_one = detected.shape is Shape.DOCUMENT
            file = WholeFile(path=path, name=name, is_changed=known is not None, is_complete=is_one)
            await self._import_whole(file, detected)
            self.counts.files += 1
            if self.counts.problem_count == problems:
                read, changed_at = status.st_size, status.st_mtime_ns // 1000
                source = ImportSource(0, detected.format, name, status.st_ino, read, None, changed_at)
                await self._imports.keep_source(self._owner, source)

    async def _import_whole(self, file: WholeFile, detected: Detected) -> None:
        if detected.shape is Shape.ZIP:
            await self._import_zip(file.path)
        elif detected.shape is Shape.ARRAY:
            with file.path.open("rb") as opened:
                await self._import_elements(_elements(opened, self._on_bytes), file)
        elif detected.shape is Shape.ELEMENTS:
            with file.path.open("rb") as opened:
                await self._import_elements(_each_line(opened, self._on_bytes), file)
        else:
            await self._import_elements(_document(file.path, self._on_bytes), file, detected.format)

    async def _import_archive(self, path: Path) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            with path.open("rb") as file:
                while piece := await asyncio.to_thread(file.read, _CHUNK):
                    self._on_bytes(len(piece))
                    yield piece

        report = await self._et.import_archive(pieces(), owner=self._owner)
        self.counts.files += 1
        self.counts.imported += report.imported
        self.counts.messages += report.messages

    async def _import_zip(self, path: Path) -> None:
        """Entries are read in a folder of their own under a plain name, whatever path they claim."""
        left = self._most_unpacked_bytes
        with zipfile.ZipFile(path) as packed, tempfile.TemporaryDirectory(prefix="everthread-import-") as folder:
            for entry in sorted(packed.infolist(), key=lambda one: not _is_output(one)):  # before their sessions
                if entry.is_dir() or not entry.file_size:
                    continue
                is_bomb = entry.file_size > _SMALL_BYTES and entry.file_size > MAX_RATIO * max(entry.compress_size, 1)
                if is_bomb or entry.file_size > left:
                    self.counts.add_problem(
                        f"{path}: {entry.filename} would unpack to {entry.file_size:,} bytes; left out"
                    )
                    continue
                left -= entry.file_size
                unpacked_before = self._follower.unpacked_bytes
                self._on_bytes(entry.compress_size)
                unpacked = Path(folder) / _plain_name(entry.filename)
                try:
                    if _is_output(entry):
                        session = Path(folder, _plain_name(str(PurePosixPath(entry.filename).parents[1])), OUTPUTS)
                        await asyncio.to_thread(session.mkdir, parents=True, exist_ok=True)
                        await asyncio.to_thread(_unpack, packed, entry, session / unpacked.name)
                        continue
                    if unpacked.is_dir():
                        raise zipfile.BadZipFile("has the name of a session's folder")
                    await asyncio.to_thread(_unpack, packed, entry, unpacked)
                    if zipfile.is_zipfile(unpacked):  # how bombs are nested
                        raise zipfile.BadZipFile("is a zip in a zip, which is not read; unpack it first")
                    with self._problems_under(unpacked, f"{path}: {entry.filename}"):
                        await self._import_file(unpacked, f"{stored_path(path)}!{stored_path(Path(entry.filename))}")
                except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as problem:
                    self.counts.add_problem(f"{path}: {entry.filename}: {problem}")
                finally:
                    left -= self._follower.unpacked_bytes - unpacked_before
                    if unpacked.is_file():
                        unpacked.unlink()

    async def _import_database(self, path: Path, name: str, format: str) -> None:
        """Of an agent's database only the sessions that changed since it was last read."""
        changed_at = await asyncio.to_thread(database_changed_at, path)
        known = await self._imports.source(self._owner, name)
        if known is not None and known.updated_at == changed_at and known.inode is not None:
            self.counts.unchanged += 1
            return
        status = await asyncio.to_thread(path.stat)
        source = ImportSource(0, format, name, status.st_ino, 0, None, changed_at)
        states = await self._states_of(name)
        is_same_file = known is not None and known.inode == status.st_ino  # else a state may stand for other messages
        read = states if is_same_file else {}
        found: Iterator[StoredSession]
        found = DATABASES[format](path, read) if format in DATABASES else message_lists.read_agents_sdk(path)
        while (stored := await asyncio.to_thread(_next_session, found)) is not None:
            native = safe_id(stored.native_id)
            file = WholeFile(path=path, name=name, is_changed=native in states, is_complete=True)
            await self._writer.write(stored.session, stored.messages, file)
            # What could not be read whole is read again.
            is_whole = not any(isinstance(one, BrokenEntry) for one in stored.messages)
            states[native] = stored.state if is_whole else 0
            of_session = source._replace(path=_session_source(name, native), read_bytes=states[native])
            await self._imports.keep_source(self._owner, of_session)
        self._on_bytes(status.st_size)
        self.counts.files += 1
        await self._imports.keep_source(self._owner, source)

    async def _states_of(self, name: str) -> dict[str, int]:
        """By the native id of each session of a database the state of it that was read last."""
        if name not in self._states:
            prefix = _session_source(name, "")
            self._states[name] = {
                source.path.removeprefix(prefix): source.read_bytes
                for source in await self._imports.sources(self._owner)
                if source.path.startswith(prefix)
            }
        return self._states[name]

    async def _import_elements(self, values: Iterator[Weighed], file: WholeFile, known: str = "json") -> None:
        """Write conversation by conversation. Runs, spans and messages are gathered, because one conversation has
        many, but no more than fit in memory."""
        gathered: dict[str, list[Mapping[str, Any]]] = {"langsmith": [], "otel": []}
        messages: list[Mapping[str, Any]] = []
        number = gathered_bytes = messages_bytes = 0
        while (found := await asyncio.to_thread(next, values, None)) is not None:
            value, weight = found
            number += 1
            if isinstance(value, BrokenEntry):
                self.counts.add_problem(f"{file.path}: entry {number} {value}")
                continue
            format = known if known == "task" else element_format(value)
            if format is None and is_beside_conversations(value):
                if str(file.path) not in self.counts.passed_over:
                    self.counts.passed_over.append(str(file.path))
                continue
            if format in gathered and isinstance(value, dict):
                gathered[format].append(value)
                gathered_bytes += weight
                if len(gathered[format]) >= _SPANS_AT_ONCE or gathered_bytes > MAX_WEIGHT_BYTES:
                    await self._write_gathered(gathered, file)
                    gathered_bytes = 0
            elif format is None and isinstance(value, dict) and isinstance(value.get("role"), str):
                messages_bytes += weight
                if messages_bytes > MAX_WEIGHT_BYTES:
                    self.counts.add_problem(f"{file.path}: is one conversation too large to be held in memory")
                    return
                messages.append(value)
            else:
                await self._write_element(value, format, file, number)
        await self._write_gathered(gathered, file)
        if messages:
            await self._write_element({"messages": messages}, "openai-chat", file, 1)

    async def _write_gathered(self, gathered: dict[str, list[Mapping[str, Any]]], file: WholeFile) -> None:
        for session, said in message_lists.read_langsmith(gathered["langsmith"]):
            await self._writer.write(session, said, file)
        for session, said in message_lists.read_otel(message_lists.spans_in(gathered["otel"])):
            await self._writer.write(session, said, file)
        for values in gathered.values():
            values.clear()

    async def _write_element(self, value: object, format: str | None, file: WholeFile, number: int) -> None:
        try:
            for session, said in _drafts(value, format, file.path):
                await self._writer.write(session, said, file)
        except BrokenEntry as problem:
            self.counts.add_problem(f"{file.path}: entry {number} {problem}")
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as problem:
            self.counts.add_problem(f"{file.path}: entry {number} is not a valid {format} conversation ({problem!r})")


class Weighed(NamedTuple):
    """What one element of a file says, and about how many bytes that takes in memory."""

    value: object
    weight: int


def oldest_first(paths: Iterable[Path]) -> list[Path]:
    """Files in the order in which they were last written to, so that conversations are made in the order of their
    last messages, which is the order in which they are listed."""

    def written_at(path: Path) -> int:
        try:
            return path.stat().st_mtime_ns
        except OSError:  # gone, which is told when it is read
            return 0

    return sorted(paths, key=written_at)


def database_changed_at(path: Path) -> int:
    """When a SQLite database was last written to, in microseconds: that can be in its write-ahead log only."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return max(file.stat().st_mtime_ns for file in files if file.exists()) // 1000


def _next_session(found: Iterator[StoredSession]) -> StoredSession | None:
    try:
        return next(found, None)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as problem:
        raise BrokenEntry(
            f"has tables that are not those of its agent, as far as they are known ({problem!r})"
        ) from problem


def _session_source(database: str, native_id: str) -> str:
    """What the source of one session of a database is called."""
    return f"{database}#{native_id}"


def _drafts(value: object, format: str | None, path: Path) -> Iterator[tuple[Session, Iterable[NativeMessage]]]:
    if not isinstance(value, dict) or format is None:
        raise BrokenEntry("is not a conversation in any known format")
    if format in ("task", "cline"):
        yield read_task(value, path)
    elif format == "letta":
        yield from message_lists.read_letta(value)
    elif format == "gemini-cli":
        sessions, said = read_document(value, path)
        for session in sessions.values():
            yield session, said
    else:
        yield _READ_ONE[format](value)


def _is_output(entry: zipfile.ZipInfo) -> bool:
    """Whether this is a large output of a tool, which its session names."""
    path = PurePosixPath(entry.filename)
    return len(path.parts) > 2 and path.parent.name == OUTPUTS


def _plain_name(claimed: str) -> str:
    """The last part of a path, as any file system takes it. Formats are told by how a name ends."""
    last = PurePosixPath(claimed.replace("\\", "/")).name
    short = last.encode("utf-8", "replace")[-_NAME_BYTES:].decode("utf-8", "ignore")
    return "entry" if short in ("", "..") else short


def _unpack(packed: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    """Never more than the entry claims to be: what it claims was checked."""
    with packed.open(entry) as source, target.open("wb") as file:
        left = entry.file_size
        while left > 0 and (piece := source.read(min(_CHUNK, left))):
            file.write(piece)
            left -= len(piece)


_SEVERAL = re.compile(rb"\n}\s*\n{")
"""Between two indented objects, one after the other: how programs write to a terminal."""


def _document(path: Path, on_bytes: Callable[[int], None]) -> Iterator[Weighed]:
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise BrokenEntry(f"is one JSON object of more than {MAX_DOCUMENT_BYTES >> 20} MB")
    raw = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    on_bytes(len(raw))
    if raw.lstrip().startswith(b'"') and isinstance(inner := parse_json(raw), str):
        raw = inner.encode("utf-8", "surrogatepass")
    if raw.lstrip().startswith(b"["):
        yield Weighed({"messages": parse_json(raw)}, weight_of(raw))
    elif _SEVERAL.search(raw):
        yield from _elements(io.BytesIO(raw), lambda _: None, is_array=False)
    else:
        yield Weighed(parse_line(raw), weight_of(raw))


def _each_line(file: BinaryIO, on_bytes: Callable[[int], None]) -> Iterator[Weighed]:
    for line in file:
        on_bytes(len(line))
        try:
            value = parse_line(line)
        except BrokenEntry as problem:
            yield Weighed(problem, 0)
        else:
            if value is not None:
                yield Weighed(value, weight_of(line))


def _elements(file: BinaryIO, on_bytes: Callable[[int], None], *, is_array: bool = True) -> Iterator[Weighed]:
    """The elements of a JSON array, or JSON values one after the other, with no more in memory than the largest of them
    twice."""
    decoder = json.JSONDecoder()
    decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
    text, at, is_end = "", 0, False
    is_text = True
    has_begun = not is_array
    while True:
        at = _after_space(text, at)
        if not has_begun and at < len(text):
            has_begun, at = True, at + 1  # the bracket
            continue
        if (text[at : at + 1] == "]") if is_array else (at >= len(text) and is_end):
            return
        try:
            if at >= len(text):
                raise ValueError
            value, end = decoder.raw_decode(text, at)
            if end >= len(text) and not is_end:
                raise ValueError  # a number may go on
        except (ValueError, RecursionError) as problem:
            if is_end:
                said = problem or "the file ends in it"
                yield Weighed(BrokenEntry(f"cannot be read, and nothing after it: {said}"), 0)
                return
            text, at = text[at:], 0
            if len(text) > MAX_DOCUMENT_BYTES or 2 * weight_of(text) > MAX_WEIGHT_BYTES:  # it is tried at twice as much
                said = f"is larger than {MAX_DOCUMENT_BYTES >> 20} MB, here or in memory, or not closed"
                yield Weighed(BrokenEntry(f"{said}; nothing after it was read"), 0)
                return
            raw = file.read(max(_CHUNK, len(text)))  # twice as much each time: the same text is tried few times
            on_bytes(len(raw))
            is_end = not raw
            more = decode(raw, final=is_end)
            if is_text and _NOT_TEXT.search(more):
                is_text = False
                yield Weighed(BrokenEntry("or a later one has bytes that are not UTF-8; each is � here"), 0)
            text += _NOT_TEXT.sub("�", more)
            continue
        weight, at = weight_of(text[at:end]), end
        yield Weighed(value, weight)


_NOT_TEXT = re.compile("[\udc80-\udcff]")
"""What stands for bytes that are not UTF-8."""


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at

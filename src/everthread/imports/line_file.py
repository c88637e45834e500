"""One file of JSON lines: its messages in batches, each with the bytes of its line, and where it was read to.

Lines that are no messages belong to the message before them (those at the beginning to the first one), so that the
bytes of all messages, one after the other, are the file. A last line without an end waits, unless it is a whole JSON
object, which nothing can be added to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePath
from typing import BinaryIO

from everthread.imports.claude_code import ClaudeCodeReader
from everthread.imports.codex import CodexReader
from everthread.imports.gemini_cli import GeminiReader
from everthread.imports.line_agents import (
    AntigravityReader,
    CopilotReader,
    CursorReader,
    DeepSeekReader,
    GooseReader,
    PiReader,
    QwenReader,
)
from everthread.imports.session import MAX_LINE_BYTES, BrokenEntry, LineReader, NativeMessage, line_digest, parse_line
from everthread.imports.streaming_agents import AiderReader, GrokReader, KimiReader

READERS: dict[str, Callable[[PurePath], LineReader]] = {
    "claude-code": ClaudeCodeReader,
    "codex": CodexReader,
    "gemini-cli": GeminiReader,
    "pi": PiReader,
    "omp": PiReader,
    "openclaw": PiReader,
    "qwen-code": QwenReader,
    "copilot-cli": CopilotReader,
    "cursor-cli": CursorReader,
    "antigravity": AntigravityReader,
    "deepseek": DeepSeekReader,
    "goose": GooseReader,
    "kimi": KimiReader,
    "grok": GrokReader,
    "aider": AiderReader,
}
_BOM = b"\xef\xbb\xbf"
_TEXT = {"aider"}
"""Formats whose lines are no JSON: a last line without an end is never whole."""
BATCH_MESSAGES = 500
BATCH_BYTES = 4 << 20
_CHUNK = 1 << 20
WINDOW = 4096


@dataclass(slots=True)
class Batch:
    """What was read at once."""

    messages: list[tuple[NativeMessage, int | None, bytearray]] = field(default_factory=list)
    before: bytearray = field(default_factory=bytearray)
    """Lines before the first message of the batch that belong to the last one before it."""
    before_at: int = 0
    problems: list[str] = field(default_factory=list)
    size: int = 0
    """How many bytes of the file are in it, and of files beside it."""
    beside: int = 0
    """How much its messages have of files beside it."""
    is_last: bool = False


class LineFile:
    """Reads a file from its beginning, whether its messages are written or only followed up to where they were."""

    def __init__(self, path: Path, format: str) -> None:
        self.path = path
        self.format = format
        self.reader = READERS[format](path)
        self.offset = 0
        """The end of the last line that was read."""
        self.digest = sha256()
        self.last_session: str | None = None
        """Whose the last message was."""
        self.last_message = ""
        """Its id."""
        self.torn_bytes = 0
        """The length of a last line that is not whole yet."""
        self.head, self.tail = b"", b""
        """The first and the last bytes that were read: whether the file is still the same."""
        self._line_number = 0
        self._is_too_long = False
        """Whether what comes next is still of a line that is too long to be read."""
        self._lead = bytearray()
        self.newest: dict[str, str] = {}
        """By the id of each message the digest of its last version in the file."""
        self._seen: dict[str, set[str]] = {}
        """By the id of each message the digests of its lines: what is written twice is one message."""

    def is_same(self, file: BinaryIO) -> bool:
        """Whether the file still has what was read, as far as its first and last bytes tell."""
        if os.fstat(file.fileno()).st_size < self.offset:
            return False
        file.seek(0)
        if file.read(len(self.head)) != self.head:
            return False
        file.seek(self.offset - len(self.tail))
        return file.read(len(self.tail)) == self.tail

    def skip_to(self, file: BinaryIO, end: int) -> bool:
        """Read up to a position without keeping anything; False where no line ends there."""
        while self.offset < end:
            before = self.offset
            self.read(file, until=end)
            if self.offset == before:
                return False
        return self.offset == end

    def read(self, file: BinaryIO, until: int | None = None) -> Batch:
        """Read some more lines: a batch of messages, or up to a position, or all there are."""
        batch = Batch(before_at=self.offset)
        file.seek(self.offset)
        rest = b""
        while True:
            wanted = _CHUNK if until is None else min(_CHUNK, until - self.offset - len(rest))
            chunk = file.read(wanted) if wanted > 0 else b""
            if chunk and self._is_too_long and not (chunk := self._after_long_line(chunk)):
                continue
            *lines, rest = (rest + chunk).split(b"\n") if chunk else (rest,)
            for line in lines:
                self._take(line + b"\n", batch)
                if batch.size >= BATCH_BYTES:
                    return batch
            if len(rest) > MAX_LINE_BYTES:
                self._line_number += 1
                batch.problems.append(
                    f"{self.path}:{self._line_number}: is longer than {MAX_LINE_BYTES:,} bytes; left out"
                )
                self._is_too_long = True
                self._pass(rest)
                rest = b""
            if not chunk:
                batch.is_last = True
                if rest and self.format not in _TEXT and (_is_whole(rest) or _pieces(rest)):
                    self._take(rest, batch)
                    rest = b""
                self.torn_bytes = len(rest)
                return batch
            if len(batch.messages) >= BATCH_MESSAGES:
                return batch

    def _after_long_line(self, chunk: bytes) -> bytes:
        """Pass over more of a line that is too long to be read; returns what stands behind its end."""
        end = chunk.find(b"\n") + 1
        self._is_too_long = not end
        self._pass(chunk[:end] if end else chunk)
        return chunk[end:] if end else b""

    def _pass(self, read: bytes) -> None:
        """Go on behind these bytes."""
        self.offset += len(read)
        self.digest.update(read)
        self.head = self.head if len(self.head) >= WINDOW else (self.head + read)[:WINDOW]
        self.tail = (self.tail + read)[-WINDOW:]

    def _take(self, line: bytes, batch: Batch) -> None:
        self._line_number += 1
        try:
            self._take_piece(line, self._read(line), batch)
        except BrokenEntry as problem:
            pieces = [] if self.format in _TEXT else _pieces(line)
            if not pieces or not _is_whole(pieces[0]):
                batch.problems.append(f"{self.path}:{self._line_number}: {problem}")
            for piece in pieces or [line]:
                try:
                    said = self._read(piece)
                except BrokenEntry:
                    said = []
                self._take_piece(piece, said, batch)

    def _read(self, line: bytes) -> list[NativeMessage]:
        """The messages of a line. Raises BrokenEntry, also for JSON of a shape that its agent never wrote."""
        try:
            return self.reader.read(line.removeprefix(_BOM) if self.offset == 0 else line)
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as problem:
            raise BrokenEntry(f"is not a valid line of {self.format} ({problem!r})") from problem

    def _take_piece(self, line: bytes, said: list[NativeMessage], batch: Batch) -> None:
        first_byte = self.offset
        self._pass(line)
        beside = sum(len(text) for text in map(_text_beside, said) if len(text) > len(line))
        batch.beside += beside
        batch.size += len(line) + beside
        new = [message for message in said if self._is_new(message)]
        if new and new[0].grows and self._has_grown(new[0], line, batch):
            return
        if not new:
            self._take_other(line, batch)
            return
        kept = bytearray(line)
        if self.last_session is None:
            first_byte -= len(self._lead)
            kept[:0] = self._lead
        batch.messages.append((new[0], first_byte, kept))
        batch.messages += [(message, None, bytearray()) for message in new[1:]]
        self.last_session, self.last_message = new[0].session.id, new[-1].payload["id"]

    def _take_other(self, line: bytes, batch: Batch) -> None:
        if self.last_session is None:
            self._lead += line
        elif batch.messages:
            owner = next(kept for _, first_byte, kept in reversed(batch.messages) if first_byte is not None)
            owner += line
        else:
            batch.before += line

    def _has_grown(self, message: NativeMessage, line: bytes, batch: Batch) -> bool:
        """Put a message in the place of what it was some lines before, if that is still to be written."""
        before, first_byte, kept = batch.messages[-1] if batch.messages else (None, None, bytearray())
        if before is None or first_byte is None or before.session is not message.session:
            return False
        if before.payload["id"] != message.payload["id"]:
            return False
        kept += line
        batch.messages[-1] = (message, first_byte, kept)
        return True

    def has(self, session_id: str, message_id: str) -> bool:
        """Whether this message was in what was read so far."""
        return f"{session_id} {message_id}" in self._seen

    def _is_new(self, message: NativeMessage) -> bool:
        id = _key(message)
        known = self._seen.setdefault(id, set())
        digest = self.newest[id] = _version(message)
        if message.grows:
            return True
        is_new = digest not in known
        known.add(digest)
        return is_new


def _text_beside(message: NativeMessage) -> str:
    """The content of a message; where that is longer than its line, it came from a file beside it."""
    content = message.payload.get("content")
    return content if isinstance(content, str) else ""


def is_newest(message: NativeMessage, newest: Mapping[str, str]) -> bool:
    """Whether this is the last version that its file has of a message; `newest` is that of a `LineFile`."""
    return newest.get(_key(message)) == _version(message)


def _version(message: NativeMessage) -> str:
    """Of the versions of a message in its file, which one this is."""
    line = message.payload.get("line")
    return str(line) if line is not None else line_digest(str(message.payload).encode("utf-8", "replace"))


def _key(message: NativeMessage) -> str:
    return f"{message.session.id} {message.payload['id']}"


_OBJECT = re.compile(rb"(?<![:,\[\s]){\"")
"""Where an object can begin that stands in no other one."""
_MOST_PIECES = 100


def _pieces(line: bytes) -> list[bytes]:
    """A broken line, cut before the first object from which on the rest is whole; empty if there is none. A program
    that was killed while it wrote leaves half a line, or NULs after a power cut, and goes on right behind them."""
    for found in islice(_OBJECT.finditer(line, 1), _MOST_PIECES):
        if _is_whole(line[found.start() :]):
            return [line[: found.start()], line[found.start() :]]
    return []


def without_damage(line: bytes, *, is_first: bool) -> bytes | None:
    """What an agent can read of a line of JSON, which is given without its end: all of it, the object behind what a
    crash or a broken disk left, or nothing (None)."""
    plain = line.removeprefix(_BOM) if is_first else line
    if not plain.strip() or _is_whole(plain):
        return line
    pieces = _pieces(plain)
    if not pieces:
        return None
    return line if _is_whole(pieces[0]) else pieces[1]


def _is_whole(line: bytes) -> bool:
    try:
        return parse_line(line) is not None
    except BrokenEntry:
        return False

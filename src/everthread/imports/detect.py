"""Which program wrote a file: told by its content, never by its name alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import zstandard

from everthread.core.payloads import block_type
from everthread.imports.foreign_database import open_read_only
from everthread.imports.session import MAX_LINE_BYTES, BrokenEntry, dict_at, parse_json, parse_line
from everthread.imports.task_files import HISTORY

ARCHIVE_MAGIC = b"\x28\xb5\x2f\xfd"
"""How zstd begins, in which our archives are packed."""
_ARCHIVED = b'{"everthread":"archive"'
"""How the lines begin that are packed in one."""
_PACKINGS = (".zst", ".zstd")
PACKED_LINES = tuple(f".jsonl{packing}" for packing in _PACKINGS)
"""How the name of a file of lines ends that its agent has packed."""
_UTF_16 = tuple(
    mark + sign.encode(name) for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")) for sign in "[{"
)
"""How JSON in UTF-16 begins, as a shell on Windows writes it: who reads it says what is wrong with it."""
_HEAD_BYTES = 1 << 20
_MOST_LINES = 200
_OPEN_ENDS = (b"{", b"[", b",", b":")
"""How a line of an indented document ends that goes on in the next one."""
_CODEX = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CODEX_ITEMS = {"message", "reasoning", "function_call", "function_call_output", "local_shell_call"}


class Shape(Enum):
    """How a file is read."""

    ARCHIVE = "archive"
    ZIP = "zip"
    DATABASE = "database"
    LINES = "lines"
    """Lines of one session, which may grow."""
    ELEMENTS = "elements"
    """Lines with a conversation each."""
    ARRAY = "array"
    """One JSON array of conversations."""
    DOCUMENT = "document"
    """One JSON object."""


class Detected(NamedTuple):
    """What a file is."""

    shape: Shape
    format: str


def detect(path: Path) -> Detected | None:
    """What a file is; None for a file of no known kind."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head[:1] in b"{[":
            head += _rest_of_first_line(file, head)
        is_whole = not file.read(1)
    if head.startswith(ARCHIVE_MAGIC):
        unpacked = _unpacked_head(head) if path.name.endswith(PACKED_LINES) else _ARCHIVED
        is_archive = unpacked.startswith(_ARCHIVED)
        return Detected(Shape.ARCHIVE, "everthread") if is_archive else _lines(unpacked.split(b"\n"), is_whole=False)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Detected(Shape.ZIP, "zip")
    if head.startswith(b"SQLite format 3\x00"):
        return _database(path)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"[") and not _is_broken_line(text):
        # Told by its name: what is in it is what every chat with a model looks like.
        is_task = path.name == HISTORY
        return Detected(Shape.DOCUMENT, "task") if is_task else Detected(Shape.ARRAY, "json")
    if text.startswith(b"# aider chat started at "):
        return Detected(Shape.LINES, "aider")
    if not text.startswith((b"{", b"[")):  # else a document can be packed once more, as a JSON string
        return Detected(Shape.DOCUMENT, "json") if text.startswith((b'"{', *_UTF_16)) else None
    if _is_indented(text, is_whole=is_whole):
        return Detected(Shape.DOCUMENT, "json")
    found = _lines(text.split(b"\n"), is_whole=is_whole)
    return None if found is not None and found.format == "pi" and is_copy(path) else found


def _unpacked_head(head: bytes) -> bytes:
    with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(head, read_across_frames=True) as lines:
        unpacked = bytearray()
        with suppress(zstandard.ZstdError):
            while len(unpacked) < _HEAD_BYTES and (piece := lines.read(_HEAD_BYTES)):
                unpacked += piece
        return bytes(unpacked) + b"\n"


def plain_path(path: Path) -> Path:
    """What a file of lines is called while it is not packed."""
    return path.with_suffix("") if path.name.endswith(PACKED_LINES) else path


def is_packed_beside(name: str, names: Collection[str]) -> bool:
    """Whether a file is the packed one of two that are one session: then the plain one says what the session has."""
    return name.endswith(PACKED_LINES) and plain_path(Path(name)).name in names


def packings(path: Path) -> list[Path]:
    """All names of the same file of lines, packed and not."""
    plain = plain_path(path)
    return [plain, *(plain.with_name(plain.name + packing) for packing in _PACKINGS)]


def _rest_of_first_line(file: BinaryIO, head: bytes) -> bytes:
    """What must be read beyond the head of a file of JSON to have its first line, and some of the next ones: a line can
    hold a picture, or be too long to be read at all."""
    more = bytearray()
    if len(head) == _HEAD_BYTES and b"\n" not in head:
        while b"\n" not in more[-_HEAD_BYTES:] and len(more) < MAX_LINE_BYTES and (piece := file.read(_HEAD_BYTES)):
            more += piece
        more += file.read(_HEAD_BYTES)
    return bytes(more)


def _is_broken_line(text: bytes) -> bool:
    """Whether a text that begins as an array is no array, but lines of which the first is broken."""
    first, _, rest = text.partition(b"\n")
    second, _, _ = rest.lstrip().partition(b"\n")
    return second.startswith(b"{") and _is_broken(first) and not _is_broken(second)


def _is_indented(text: bytes, *, is_whole: bool) -> bool:
    """Whether this is one object on several lines, and not an object on each line."""
    first, _, rest = text.partition(b"\n")
    if not rest.strip() or not _is_broken(first):
        return False
    if not is_whole:
        return first.rstrip().endswith(_OPEN_ENDS)
    if not _is_broken(text):
        return True
    # One line may be torn, or the end of the file missing: then the other lines tell.
    return first.rstrip().endswith(_OPEN_ENDS) and all(map(_is_broken, rest.splitlines()))


def _is_broken(text: bytes) -> bool:
    try:
        parse_json(text)
    except BrokenEntry:
        return True
    return False


def is_copy(path: Path) -> bool:
    """Whether a file is a copy that OpenClaw makes of a session before it changes it: the session has it all."""
    return ".checkpoint." in path.name


def _database(path: Path) -> Detected | None:
    try:
        with closing(open_read_only(path)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            columns = {row[1] for row in connection.execute("PRAGMA table_info(messages)")}
            threads = {row[1] for row in connection.execute("PRAGMA table_info(threads)")}
    except sqlite3.Error:
        return None
    if tables >= {"session", "message", "part"}:
        return Detected(Shape.DATABASE, "opencode")
    if tables >= {"agent_sessions", "agent_messages"}:
        return Detected(Shape.DATABASE, "openai-agents")
    if "content_json" in columns:
        return Detected(Shape.DATABASE, "goose")
    if {"session_id", "role", "content", "timestamp"} <= columns:
        return Detected(Shape.DATABASE, "hermes")
    return Detected(Shape.DATABASE, "zed") if {"data_type", "data"} <= threads else None


def _lines(lines: list[bytes], *, is_whole: bool) -> Detected | None:
    """Look at the first lines: one of them may be torn, broken, or say nothing about its program."""
    rest = lines if is_whole else lines[:-1]
    parsed = 0
    for line in rest[:_MOST_LINES]:
        try:
            value = parse_line(line)
        except BrokenEntry:
            continue
        if value is None:
            continue
        parsed += 1
        if (format := _session_format(value)) is not None:
            return Detected(Shape.LINES, format)
        if (format := element_format(value)) is not None:
            return Detected(Shape.ELEMENTS if len(rest) > 1 else Shape.DOCUMENT, format)
    return None if parsed else Detected(Shape.DOCUMENT, "json")


def _session_format(value: Mapping[str, Any]) -> str | None:
    kind = block_type(value)
    if kind in _CODEX and isinstance(value.get("payload"), dict):
        return "codex"
    if (
        kind in _CODEX_ITEMS
        and "sessionId" not in value
        and ("role" in value or "call_id" in value or "summary" in value)
    ):
        return "codex"
    if kind == "session" and "createdAt" in value:
        return "deepseek"
    if (kind == "metadata" and "protocol_version" in value) or str(kind).startswith("context.append_"):
        return "kimi"
    if "sessionUpdate" in dict_at(dict_at(value, "params"), "update"):
        return "grok"
    if value.get("source") in ("USER_EXPLICIT", "MODEL") and "created_at" in value:
        return "antigravity"
    if "working_dir" in value and "role" not in value and "messages" not in value:
        return "goose"
    if "$set" in value or "$rewindTo" in value or (kind == "gemini" and "content" in value):
        return "gemini-cli"
    if "sessionId" in value and "startTime" in value and "messages" not in value:
        return "gemini-cli"
    return _format_of_message(value, kind, value.get("message"))


def _format_of_message(value: Mapping[str, Any], kind: object, message: object) -> str | None:
    if (
        isinstance(kind, str)
        and kind.startswith(("session.", "user.", "assistant."))
        and isinstance(value.get("data"), dict)
    ):
        return "copilot-cli"
    if kind == "session" and "version" in value and "timestamp" in value:
        return "pi"
    if kind == "summary" and "leafUuid" in value:
        return "claude-code"
    if not isinstance(message, dict):
        return None
    if kind in ("user", "assistant"):
        return "qwen-code" if "parts" in message else "claude-code" if "content" in message else None
    return "cursor-cli" if value.get("role") in ("user", "assistant") and "content" in message else None


_OTLP = {"resourceSpans", "scopeSpans", "resourceLogs"}
_ELEMENTS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("chatgpt", lambda value: isinstance(value.get("mapping"), dict)),
    ("claude-ai", lambda value: isinstance(value.get("chat_messages"), list)),
    ("open-webui", lambda value: isinstance(value.get("chat"), dict)),
    ("librechat", lambda value: "conversationId" in value and isinstance(value.get("messages"), list)),
    ("cline", lambda value: {"sessionId", "agent"} <= value.keys() and isinstance(value.get("messages"), list)),
    ("gemini-cli", lambda value: "sessionId" in value and isinstance(value.get("messages"), list)),
    ("langsmith", lambda value: "run_type" in value),
    ("otel", lambda value: bool(value.keys() & _OTLP) or _is_span(value)),
    (
        "letta",
        lambda value: bool(value.keys() & {"core_memory", "llm_config"}) or isinstance(value.get("agents"), list),
    ),
    ("sharegpt", lambda value: isinstance(value.get("conversations") or value.get("items"), list)),
    ("openai-chat", lambda value: isinstance(value.get("messages"), list) or _is_batch(value)),
)


def element_format(value: object) -> str | None:
    """The format of one conversation of an export."""
    if not isinstance(value, dict):
        return None
    return next((name for name, fits in _ELEMENTS if fits(value)), None)


def is_beside_conversations(value: object) -> bool:
    """Whether this is what Claude.ai exports beside conversations: a user, or a project with its documents."""
    if not isinstance(value, dict) or "uuid" not in value or "chat_messages" in value:
        return False
    return value.keys() >= {"full_name", "email_address"} or (isinstance(value.get("docs"), list) and "name" in value)


def _is_span(value: Mapping[str, Any]) -> bool:
    return "attributes" in value and bool(value.keys() & {"traceId", "context", "trace_id"})


def _is_batch(value: Mapping[str, Any]) -> bool:
    body = value.get("body")
    return isinstance(body, dict) and isinstance(body.get("messages"), list)

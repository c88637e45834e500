"""What the readers of this room give: sessions of other programs, and the messages said in them.

A reader is pure: it takes the lines or the document of one file and knows nothing of a database (a few look for the
session's title and folder in a small file beside it). It names the message that each message follows, so that branches
are kept; `intents.py` turns that into places in our log.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, NamedTuple, Protocol

import orjson

from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.plain_words import not_json
from everthread.text.secrets import redact_secrets

MAX_TITLE = 80
_MOST_OF_A_TITLE = 10_000
"""So many characters are looked at for a title."""
MAX_BESIDE_BYTES = 16 << 20
MAX_LINE_BYTES = 64 << 20
MAX_WEIGHT_BYTES = 1 << 30
"""What is held in memory of one conversation or document, at most."""
_LIGHT_BYTES = 1 << 20
"""What is no longer takes no time to speak of, whatever is in it."""
_NOT_TYPED = re.compile(
    r"\s*(<(command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat"
    r"|system-reminder|bash-input|bash-stdout|bash-stderr|task-notification|session-start-hook|user-prompt-submit-hook"
    r"|ide_opened_file|ide_selection|tick|goal)>|\[Request interrupted by user)"
)
"""How what Claude Code adds to a prompt begins, in its own sessions and in those that were taken to another agent."""
START = ""
"""Instead of the id of a message before: this one begins the conversation anew, as an edit of the first prompt does."""
_MILLIS, _MICROS, _NANOS = 1e11, 1e14, 1e17
"""Numbers from which on a time counts milliseconds, microseconds, nanoseconds: as seconds they would be past the year
5000."""


class BrokenEntry(Exception):
    """A line or an element that cannot be read; the text says why. The rest of its file is read on."""


@dataclass(slots=True, kw_only=True)
class Session:
    """One session of another program, which becomes one conversation. Filled in as its file is read."""

    id: str
    """The id of the conversation: the agent and its own id of the session, as in `claude-code:5f1c…`."""
    agent: str
    parent_id: str | None = None
    title: str | None = None
    created_at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def name_after(self, text: str) -> None:
        """Take the first thing that a person said as the title, unless there is one."""
        if (
            self.title is None
            and not _NOT_TYPED.match(text)
            and (line := next((one for one in map(str.strip, text.splitlines()) if one), ""))
        ):
            self.title = one_line_title(line)

    def note(self, **fields: object) -> None:
        """Add what is known about the session; what was known first stays."""
        for name, value in fields.items():
            if value not in (None, "", [], {}):
                self.metadata.setdefault(name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeMessage:
    """One message of a session, in our form."""

    session: Session
    payload: dict[str, Any]
    """With an `id` that is the same whenever and wherever in its file the message is read."""
    after: str | None = None
    """The id of the message that it follows, or START; None where the file does not say: then it follows the last."""
    grows: bool = False
    """Whether the lines that follow can add to it: then it comes again, whole, with the same id."""
    replaces_nothing: bool = False
    """Whether what the log has under its id stands: where it is a part of what was once there, or all that it says
    besides its id is a guess."""


class StoredSession(NamedTuple):
    """A session of an agent's database, as it is now."""

    native_id: str
    state: int
    """What tells this state of the session from any other, before and after it; 0 where nothing does."""
    session: Session
    messages: list[NativeMessage | BrokenEntry]


def state_of(*facts: object) -> int:
    """A number for what is known about the state of a session: never 0, and below 2^63."""
    return int.from_bytes(sha256(repr(facts).encode()).digest()[:8]) >> 1 or 1


class LineReader(Protocol):
    """Reads the lines of one file in order, from its first. It has no other input, so it can begin again any time."""

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions that were read so far, by the ids of their conversations."""

    def read(self, line: bytes) -> list[NativeMessage]:
        """Return the messages that this line says; none for what is no message. Raises BrokenEntry."""


class LineIds:
    """Ids for messages that have none of their own: a hash of the line. Equal lines are told apart by their count."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, line: bytes) -> str:
        digest = line_digest(line)
        self._seen[digest] += 1
        return digest if self._seen[digest] == 1 else f"{digest}-{self._seen[digest]}"


def line_digest(line: bytes) -> str:
    return sha256(line.strip()).hexdigest()[:32]


def parse_line(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON object; None for an empty one. Raises BrokenEntry."""
    if not line.strip():
        return None
    value = parse_json(line)
    if not isinstance(value, dict):
        raise BrokenEntry(f"is a JSON {type(value).__name__}, not an object")
    return value


def weight_of(text: bytes | str) -> int:
    """About how many bytes a JSON text takes once it is parsed, or more: an empty list takes thirty times what is
    written of it, and one wide letter makes a string four times as long."""
    opened, listed, named = (b"[", b",", b"{") if isinstance(text, bytes) else ("[", ",", "{")
    values = 80 * text.count(opened) + 50 * text.count(listed) + 250 * text.count(named)  # type: ignore[arg-type]
    return len(text) * (1 if text.isascii() else 4) + values


def parse_json(text: bytes) -> object:
    """Any JSON, also what orjson refuses and Python reads: lone surrogates, very large numbers. Raises BrokenEntry,
    also for what would fill the memory."""
    if len(text) > _LIGHT_BYTES and weight_of(text) > MAX_WEIGHT_BYTES:
        raise BrokenEntry(f"would take more than {MAX_WEIGHT_BYTES >> 20} MB of memory")
    with suppress(ValueError):
        return orjson.loads(text)
    try:
        return json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as problem:
        raise BrokenEntry(f"is {not_json(problem)}") from problem


def time_of(value: object) -> str | None:
    """A time in any of the usual forms (ISO 8601; seconds, milliseconds, microseconds or nanoseconds) as ISO in UTC."""
    moment = moment_of(value)
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def moment_of(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return moment_of(float(value)) if value.replace(".", "", 1).isdecimal() else None
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value)
        for limit, factor in ((_NANOS, 1e9), (_MICROS, 1e6), (_MILLIS, 1e3)):
            if seconds >= limit:
                seconds /= factor
                break
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def one_line_title(text: str) -> str:
    """At most 80 characters of one line, as databases can hold it. Credentials are masked before it is cut: half of one
    is recognised by nobody."""
    masked = redact_secrets(text.lstrip()[:_MOST_OF_A_TITLE])
    line = " ".join(masked.encode("utf-8", "replace").decode().replace("\x00", "").split())
    return line if len(line) <= MAX_TITLE else f"{line[: MAX_TITLE - 1]}…"


def safe_id(*parts: object) -> str:
    """An id of ours from one of theirs: joined by colons, and hashed where it would be too long or hold a NUL."""
    id = ":".join(str(part) for part in parts)
    if 0 < len(id) <= MAX_ID_CHARACTERS and id.isprintable():
        return id
    plain = "".join(one if one.isascii() and one.isprintable() else "?" for one in id[:60])
    return f"{plain}-{sha256(repr(id).encode()).hexdigest()[:32]}"


def small_document(path: PurePath) -> dict[str, Any]:
    """What an agent keeps beside a session: its title, its folder. Empty where there is no such file, or no object."""
    try:
        value = orjson.loads(Path(path).read_bytes()) if Path(path).stat().st_size <= MAX_BESIDE_BYTES else None
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def dict_at(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name; an empty one where there is something else."""
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def summary_payload(id: str, content: object, common: Mapping[str, Any]) -> dict[str, Any]:
    """A summary that an agent wrote over what it forgot: kept, and never shown as if somebody had said it."""
    marker = {"lc_source": "summarization"}
    return {**common, "id": id, "role": "user", "content": content or "", "additional_kwargs": marker}


def tool_call(id: object, name: object, arguments: object) -> dict[str, Any]:
    """A call as an assistant's message has it. Arguments that are JSON text are decoded."""
    if isinstance(arguments, str):
        try:
            decoded = json.loads(arguments)
        except (ValueError, RecursionError):
            decoded = None
        arguments = decoded if isinstance(decoded, dict) else {"input": arguments}
    args = arguments if isinstance(arguments, dict) else {} if arguments is None else {"input": arguments}
    return {"id": id, "name": str(name or "tool"), "args": args, "type": "tool_call"}


def texts_in(content: object) -> Iterator[str]:
    """The texts in a content of any shape: a string, blocks, parts."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            yield from texts_in(block)
    elif isinstance(content, dict):
        if isinstance(content.get("text"), str):
            yield content["text"]
        elif "content" in content:
            yield from texts_in(content["content"])


def text_in(content: object) -> str:
    return "\n".join(texts_in(content))

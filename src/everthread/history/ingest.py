"""Ingest: turns a message as the caller has it into the bytes that the log stores.

What is stored must come back exactly, and this is checked rather than assumed: the bytes are decoded again and
compared before they leave this module. What would not come back equal (NaN, keys that are not strings, objects
JSON does not know) is refused with the path where it stands; nothing of its batch is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

import orjson

from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.entries import UNCOUNTED, Entry, EntryOrigin, Flag, Kind
from everthread.core.errors import Invalid
from everthread.core.ids import check_id, check_text, new_id
from everthread.core.payloads import is_mapping
from everthread.core.plain_words import not_json
from everthread.history.json_values import json_payload
from everthread.history.payload_json import decode_json
from everthread.text.secrets import find_secrets

MAX_ROLE_CHARACTERS = 64
MAX_DEPTH = 254
"""How deep JSON may be nested, which is as deep as orjson writes it.

A fixed limit, so that what was taken can be read back from any stack: Python's own reader goes as deep as the
caller's stack leaves it room.
"""
_STRICT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
_DEFAULTS: tuple[tuple[str, Any], ...] = (("example", False), ("status", "success"))


class Prepared(NamedTuple):
    """A message that is ready to be written. A named tuple, because one is made for every message."""

    id: str
    has_own_id: bool
    """Whether the caller gave the id; a generated one cannot be in the log yet."""
    kind: Kind
    role: str
    raw: bytes
    payload: Mapping[str, Any]
    text: str
    """The text that is searched and whose tokens are counted."""
    tokens: int
    flags: Flag
    origin: EntryOrigin = EntryOrigin.UNKNOWN


_ORIGINS = {"assistant": EntryOrigin.MODEL, "tool": EntryOrigin.OWN_TOOL}
"""The origin of messages by their role, unless the door says otherwise; for other roles it is the user or the
program."""


def prepare_all(
    messages: Sequence[object], *, count_later: bool = False, origin: EntryOrigin | None = None
) -> list[Prepared]:
    """Return the batch ready to be written. Raises Invalid, naming the message that cannot be stored.

    With `count_later` the tokens are left to the store. `origin` is set by doors that know more than the role says.
    """
    batch = [
        prepare(message, field=f"messages[{position}]", count_later=count_later, origin=origin)
        for position, message in enumerate(messages)
    ]
    seen: set[str] = set()
    for position, message in enumerate(batch):
        if message.id in seen:
            raise Invalid(
                f"the id {message.id!r} appears twice in this batch; append one of them separately",
                field=f"messages[{position}].id",
            )
        seen.add(message.id)
    return batch


def as_batch(messages: object) -> list[object]:
    """The caller's messages as a list; one message alone is a batch of one."""
    if isinstance(messages, Mapping | bytes | bytearray) or _is_langchain(messages) or _shorthand(messages):
        return [messages]
    if isinstance(messages, str) or not isinstance(messages, Iterable):
        raise Invalid(
            f'must be a list of messages such as {{"role": "user", "content": "hi"}}, not {type(messages).__name__}',
            field="messages",
        )
    return list(messages)


def rough_bytes(batch: Sequence[object]) -> int:
    """Estimate cheaply how much text a batch holds, to decide whether to prepare it in a thread."""
    return sum(map(_rough, batch))


def _rough(message: object) -> int:
    if isinstance(message, bytes | bytearray):
        return len(message)
    content = message.get("content") if is_mapping(message) else getattr(message, "content", None)
    if isinstance(content, str):
        return len(content)
    return sum(map(_rough_block, content)) if isinstance(content, list) else 0


def _rough_block(block: object) -> int:
    parts = block.values() if isinstance(block, Mapping) else [block]
    return sum(len(part) for part in parts if isinstance(part, str))


def prepare(message: object, *, field: str, count_later: bool = False, origin: EntryOrigin | None = None) -> Prepared:
    """One message, ready to be written."""
    payload, raw = encode(message, field=field)
    role = _checked_role(payload, field)
    own = payloads.message_id(payload)
    kind = Kind.SUMMARY if payloads.is_summary(payload) else Kind.MESSAGE
    text = payloads.searchable(payload)
    return Prepared(
        id=new_id() if own is None else check_id(own, f"{field}.id"),
        has_own_id=own is not None,
        kind=kind,
        role=role,
        raw=raw,
        payload=payload,
        text=text,
        tokens=UNCOUNTED if count_later else count_tokens(text),
        flags=Flag.SECRET if find_secrets(text) else Flag.NONE,
        origin=_ORIGINS.get(role, EntryOrigin.USER) if origin is None else origin,
    )


def counted(message: Prepared) -> Prepared:
    """The message with its tokens counted, if that was left to the store."""
    if message.tokens != UNCOUNTED:
        return message
    return message._replace(tokens=count_tokens(message.text))


def count_raw(raw: bytes) -> int:
    """The tokens of a message by its bytes; 0 for bytes that are not a message."""
    try:
        payload = decode_json(raw)
    except ValueError:
        return 0
    return count_tokens(payloads.searchable(payload)) if isinstance(payload, dict) else 0


def _checked_role(payload: Mapping[str, Any], field: str) -> str:
    role = payloads.role(payload)
    if role is None:
        raise Invalid('has no role; add "role": "user", "assistant", "tool" or "system"', field=field)
    if len(role) > MAX_ROLE_CHARACTERS:
        raise Invalid(
            f"must have at most {MAX_ROLE_CHARACTERS} characters, this has {len(role)}", field=f"{field}.role"
        )
    return check_text(role, f"{field}.role")


def check_said(batch: Sequence[Prepared]) -> None:
    """Invalid for what nobody says: a mistyped role, a user's message without words, no time as the time, an order to
    remove.

    For doors at which somebody writes a message. What has been said already, elsewhere, is taken as it is.
    """
    for position, message in enumerate(batch):
        field = f"messages[{position}]"
        if message.role == "remove":
            raise Invalid(
                "a RemoveMessage is an order to LangGraph, not a message; `delete_message(id)` hides one here, and the "
                "captures (EverthreadSaver, ArchivingSaver, archive_stream, EverthreadMiddleware) follow such orders",
                field=field,
            )
        is_said = not _is_of_a_framework(message.payload)
        if is_said and message.role not in payloads.KNOWN_ROLES and message.payload.get("type") != "chat":
            raise Invalid(unknown_role(message.role), field=f"{field}.role")
        check_content(message, f"{field}.content")
        given = payloads.time_given(message.payload)
        if given is not None and payloads.said_at(message.payload) is None:
            raise Invalid(
                f"{str(given)[:40]!r} cannot be read as a time; use ISO 8601 such as 2026-05-01T10:00:00Z, seconds or "
                "milliseconds since 1970, or a datetime",
                field=f"{field}.created_at",
            )


def _is_of_a_framework(payload: Mapping[str, Any]) -> bool:
    """Whether it is LangChain's, by its `type` or envelope, or an item of OpenAI's that nobody says."""
    return "role" not in payload or payload.get("lc") == 1


def check_content(message: Prepared, field: str) -> None:
    """Invalid unless what a person says is text, or blocks. A tool's result may be any JSON; an assistant may only call
    tools."""
    if message.role != "user":
        return
    fields = payloads.fields(message.payload)
    if "content" not in fields:
        if _is_of_a_framework(message.payload):
            return
        raise Invalid('is missing; add "content": "…", or a list of content blocks', field=field)
    content = fields["content"]
    if not isinstance(content, str | list):
        raise Invalid(f"must be text or a list of content blocks, not {_json_type(content)}", field=field)
    for index, block in enumerate(content) if isinstance(content, list) else ():
        if not isinstance(block, str) and not is_mapping(block):
            raise Invalid(
                f'must be a content block such as {{"type": "text", "text": "…"}}, not {_json_type(block)}',
                field=f"{field}[{index}]",
            )


def _json_type(value: object) -> str:
    """The type's name in JSON: callers who send JSON do not know `dict` or `NoneType`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object"


def unknown_role(role: str) -> str:
    """The message about an unknown role, with the known ones."""
    bare = role.strip().lower()
    meant = payloads.ROLES.get(bare, bare)
    guess = f'did you mean "{meant}"? ' if meant in payloads.KNOWN_ROLES else ""
    return (
        f"{role!r} is not a role that a model knows; {guess}use user (or human), assistant (or ai), system, developer, "
        "tool or function"
    )


def encode(message: object, *, field: str) -> tuple[Mapping[str, Any], bytes]:
    """The payload and the bytes to keep: those received, or for an object our own JSON in its key order."""
    if type(message) is dict:  # nearly all of them: spares three questions
        raw, payload = _dumped(_with_plain_time(message), field)
        return payload, raw
    if isinstance(message, bytes | bytearray):
        return _decoded(bytes(message), field), bytes(message)
    if _is_langchain(message):
        message = _model_dump(message, field)
    if not isinstance(message, Mapping):
        raise Invalid(
            'must be {"role": "user", "content": "…"}, JSON bytes or a LangChain message, not '
            f"{_shorthand(message) or type(message).__name__}",
            field=field,
        )
    raw, payload = _dumped(_with_plain_time(message if isinstance(message, dict) else dict(message)), field)
    return payload, raw


def _with_plain_time(message: dict[str, Any]) -> dict[str, Any]:
    """A datetime as the time at which it was said, which JSON has not, in ISO 8601; one without a zone is UTC."""
    at = message.get("created_at")
    if not isinstance(at, datetime):
        return message
    return {**message, "created_at": (at.replace(tzinfo=UTC) if at.tzinfo is None else at).isoformat()}


def _shorthand(message: object) -> str | None:
    """LangChain's `("user", "hi")` in its own words, and in those that are meant."""
    match message:
        case (str() as role, str()) if len(role) <= MAX_ROLE_CHARACTERS and isinstance(message, tuple):
            return f'a tuple; write ({role!r}, "…") as {{"role": {role!r}, "content": "…"}}'
    return None


def _model_dump(message: Any, field: str) -> object:
    try:
        dumped = message.model_dump(warnings=False)
        return json_payload(_with_plain_time(dict(dumped))) if isinstance(dumped, Mapping) else dumped
    except (ValueError, RecursionError) as problem:  # a circle, or an object that pydantic cannot take apart
        raise Invalid(f"cannot be parsed: {problem}", field=field) from problem


def _decoded(raw: bytes, field: str) -> Mapping[str, Any]:
    try:
        payload = json.loads(raw, parse_constant=_no_constant)
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
            _refuse_deep(payload, field)
    except (ValueError, RecursionError) as problem:
        raise Invalid(f"is {not_json(problem)}", field=field) from problem
    if not isinstance(payload, dict):
        raise Invalid(f"must be a JSON object, not {type(payload).__name__}", field=field)
    return payload


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON; send null or a string instead")


def _is_langchain(message: object) -> bool:
    """Recognise a LangChain message by its shape, because this package does not import LangChain."""
    return hasattr(message, "model_dump") and isinstance(getattr(message, "type", None), str)


def dump(value: Mapping[str, Any], *, field: str) -> bytes:
    """JSON bytes that are known to decode to an equal value."""
    return _dumped(value, field)[0]


def _dumped(value: Mapping[str, Any], field: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes and what they decode to: a copy that the caller cannot change any more."""
    try:
        raw = orjson.dumps(value, option=_STRICT)
        decoded: dict[str, Any] = orjson.loads(raw)
        if decoded == value:
            return raw, decoded
    except (TypeError, ValueError, RecursionError):
        pass  # lone surrogates, large integers, deep nesting: what orjson refuses, the careful way may take
    return _dumped_carefully(value, field)


def _dumped_carefully(value: Mapping[str, Any], field: str) -> tuple[bytes, dict[str, Any]]:
    try:
        _refuse_deep(value, field)
        plain = _plain(value, field)
        raw = json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
        decoded: dict[str, Any] = json.loads(raw)
        if decoded != plain:
            raw = json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
            decoded = json.loads(raw)
    except RecursionError as problem:
        raise Invalid("is nested too deeply to be read back; flatten it", field=field) from problem
    except (TypeError, ValueError) as problem:
        raise Invalid(f"cannot be kept as JSON: {problem}", field=field) from problem
    return raw, decoded


def _refuse_deep(value: object, field: str, room: int = MAX_DEPTH) -> None:
    if not isinstance(value, Mapping | list | tuple):
        return
    if not room:
        raise Invalid(f"is nested more than {MAX_DEPTH} deep; flatten it", field=field)
    for inner in value.values() if isinstance(value, Mapping) else value:
        _refuse_deep(inner, field, room - 1)


def _plain(value: object, path: str) -> Any:
    """The value as JSON knows it, where a tuple is a list; Invalid at the first thing that JSON has not."""
    if isinstance(value, Mapping):
        return {_plain_key(key, path): _plain(inner, f"{path}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, f"{path}[{position}]") for position, inner in enumerate(value)]
    if isinstance(value, float) and not isfinite(value):
        raise Invalid(f"{value} is not JSON; send null or a string instead", field=path)
    if not isinstance(value, str | int | float | None):
        raise Invalid(f"a value of type {type(value).__name__} is not JSON; convert it first", field=path)
    return value


def _plain_key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise Invalid(f"the key {key!r} is of type {type(key).__name__}; JSON keys are strings", field=path)
    return key


def canonical(payload: Mapping[str, Any]) -> str:
    """Equal for two payloads that say the same: null, empty and default fields left out, keys sorted.

    So is the id: a message that comes back with the id it was given here is the same message.
    """
    inner = payloads.fields(payload)
    if inner is payload:
        said = _without_defaults(payload)
    else:
        said = {key: _without_defaults(value) if value is inner else value for key, value in payload.items()}
    # Escaped, a pair of surrogates would be equal to the one character that it stands for elsewhere.
    return json.dumps(said, sort_keys=True, default=str, ensure_ascii=False)


def says_the_same(message: Prepared, known: Entry) -> bool:
    """Whether an entry holds the same message, in whatever form it was written."""
    if known.raw == message.raw:
        return True
    return known.raw is not None and canonical(json.loads(known.raw)) == canonical(message.payload)


def _without_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "id" and not _is_default(key, value)}


def _is_default(key: str, value: Any) -> bool:
    return value is None or value in ([], {}) or (key, value) in _DEFAULTS

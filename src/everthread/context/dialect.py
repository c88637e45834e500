"""Writing into a view in the dialect of the message at hand: calls, results, a user's word.

The counterpart of `shape`: what repair puts into a view must be in the shape its neighbours have, or the adapter
that sends them would refuse it. Every function returns a new value and leaves what it was given alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from everthread.context.shape import Answer, Call, Message, Place, speaks_langchain
from everthread.core.payloads import is_mapping

Fields = dict[str, Any]

INVALID_ARGUMENTS = "invalid_arguments"
"""The one key of an object that keeps arguments which were none."""
_PIECE = 4_096
"""Characters that are looked at in one go, so that a long text needs no second one of its length."""


def _block_call(block: Mapping[str, Any], call: Call) -> Fields:
    if block["type"] == "tool_use":
        return {**block, "id": call.id, "name": call.name, "input": read_arguments(call.arguments)}
    if block["type"] == "tool_call":
        return {**block, "id": call.id, "name": call.name, "args": read_arguments(call.arguments)}
    return {**block, "call_id": call.id, "name": call.name, "arguments": as_text(call.arguments)}


def _langchain_call(entry: Mapping[str, Any], call: Call) -> Fields:
    if isinstance(entry.get("function"), Mapping):
        return _openai_call(entry, call)
    rest = {key: value for key, value in entry.items() if key not in ("error", "type")}
    written = {**rest, "name": call.name, "args": read_arguments(call.arguments), "id": call.id}
    return {**written, "type": "tool_call"} if "type" in entry else written


def _openai_call(entry: Mapping[str, Any], call: Call) -> Fields:
    function = entry.get("function")
    rest = function if isinstance(function, Mapping) else {}
    outer = {key: value for key, value in entry.items() if key not in ("name", "args", "arguments", "custom")}
    return {
        **outer,
        "id": call.id,
        "type": "function",
        "function": {**rest, "name": call.name, "arguments": as_text(call.arguments)},
    }


def with_calls(message: Message, calls: Sequence[Call]) -> Fields:
    """The message with each of these calls written in all its places."""
    changed: Fields = {}
    listed = _langchain_call if speaks_langchain(message) else _openai_call
    for call in calls:
        for place in call.places:
            column = changed.setdefault(place.field, list(message[place.field]))
            write = _block_call if place.field == "content" else listed
            column[place.at] = write(column[place.at], call)
    return {**message, **changed}


def entry_at(message: Message, place: Place) -> Mapping[str, Any]:
    """A call as it is written down."""
    entry: Mapping[str, Any] = message[place.field][place.at]
    return entry


def answer_message(caller: Message, call: Call, content: str) -> Fields:
    """A result for a call that has none, as a message in its caller's dialect."""
    if speaks_langchain(caller):
        return {"type": "tool", "content": content, "tool_call_id": call.id, "name": call.name, "status": "error"}
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def answer_block(call: Call, content: str) -> Fields:
    """The same as a content block, for callers that wrote their call as one."""
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": True}


def with_answer_ids(message: Message, answers: Sequence[Answer]) -> Fields:
    """The message with these results answering other ids: each keeps its place."""
    content = message.get("content")
    blocks = list(content) if isinstance(content, list) else []
    changed: Fields = {}
    for answer in answers:
        if answer.block is None:
            changed["tool_call_id"] = answer.call_id
        else:
            blocks[answer.block] = {**blocks[answer.block], "tool_use_id": answer.call_id}
            changed["content"] = blocks
    return {**message, **changed}


def user_message(neighbour: Message, content: str | list[Any]) -> Fields:
    """A message in the user's name, written like the one it stands beside."""
    return {"type" if speaks_langchain(neighbour) else "role": _user_word(neighbour), "content": content}


def _user_word(neighbour: Message) -> str:
    return "human" if speaks_langchain(neighbour) else "user"


def read_arguments(arguments: object) -> Mapping[str, Any] | None:
    """The arguments as an object; None when they are none."""
    if not isinstance(arguments, str):
        return arguments if is_mapping(arguments) and _is_json(arguments) else None
    try:
        read = json.loads(arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON: so OpenAI wants arguments."""
    return value if isinstance(value, str) else as_json(value)


def as_json(value: object) -> str:
    """Any value as JSON that can be sent: Chinese stays Chinese, half a character does not stay."""
    return encodable(json.dumps(value, ensure_ascii=False, default=str))


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs joined, or replaced where the other half is missing."""
    if text.isascii():
        return text
    try:
        for start in range(0, len(text), _PIECE):
            text[start : start + _PIECE].encode("utf-16-le")  # five times as fast as UTF-8
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """The value with every string in it changed; the very same object when nothing was."""
    if isinstance(value, str):
        return change(value)
    if is_mapping(value):
        pairs = {key: map_strings(item, change) for key, item in value.items()}
        return value if all(pairs[key] is item for key, item in value.items()) else pairs
    if isinstance(value, list):
        items = [map_strings(item, change) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value

"""Reading a message payload, whatever shape it came in.

Three families are understood: OpenAI (`role`, `content`), LangChain (`type`, `content`, or `type` + `data`, or
the `lc` constructor envelope) and content blocks as Anthropic and LangChain write them. Nothing here changes a
payload, and nothing here fails on a strange one: what cannot be read is simply not there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

Payload = Mapping[str, Any]

ROLES = {
    "human": "user",
    "HumanMessage": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "SystemMessageChunk": "system",
    "ToolMessage": "tool",
    "ToolMessageChunk": "tool",
    "FunctionMessage": "function",
    "FunctionMessageChunk": "function",
}
"""LangChain's names for OpenAI's roles; any other word stands for itself."""
KNOWN_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "function"})
"""The roles that some model knows."""


_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Asked of every message many times over: a plain dict is told without asking the slow protocol check."""
    return type(value) is dict or (value is not None and isinstance(value, Mapping))


def block_type(block: Mapping[str, Any]) -> str:
    """The type of a content block; empty where it is no text, which clients can send and readers must pass over."""
    found = block.get("type")
    return found if isinstance(found, str) else ""


def fields(payload: Payload) -> Payload:
    """The part of the payload that holds the message's fields."""
    if "content" in payload:  # by far the most: asked four times for every message that comes in
        return payload
    data = payload.get("data")
    if is_mapping(data) and isinstance(payload.get("type"), str) and "content" not in payload:
        return data
    kwargs = payload.get("kwargs")
    if payload.get("lc") == 1 and is_mapping(kwargs):
        return kwargs
    return payload


def role(payload: Payload) -> str | None:
    """`user`, `assistant`, `system`, `tool` or the caller's own word; None when there is none."""
    if payload.get("lc") == 1 and isinstance(payload.get("id"), list) and payload["id"]:
        found: object = payload["id"][-1]
    else:
        found = payload.get("role") or payload.get("type")
    if found in ("chat", "ChatMessage", "ChatMessageChunk"):
        found = fields(payload).get("role")
    if not isinstance(found, str) or not found:
        return None
    return ROLES.get(found, found)


def message_id(payload: Payload) -> object:
    """The caller's id, unchecked; None when there is none, or an empty one."""
    inner = fields(payload)
    found = inner.get("id")
    if inner is payload and payload.get("lc") == 1:
        return None
    return None if found == "" else found


def name(payload: Payload) -> str | None:
    """The speaker, or the tool."""
    found = fields(payload).get("name")
    return found if isinstance(found, str) else None


_AT_ITS_LIMIT = frozenset({"length", "max_tokens", "MAX_TOKENS", "max_output_tokens"})


def is_cut(payload: Payload) -> bool:
    """Whether the model stopped at its output limit, as OpenAI, Anthropic, Google and llama.cpp say it."""
    about = fields(payload).get("response_metadata")
    if not is_mapping(about):
        return False
    details = about.get("incomplete_details")
    reasons = [about.get(name) for name in ("finish_reason", "stop_reason", "done_reason")]
    if is_mapping(details):
        reasons.append(details.get("reason"))
    return any(isinstance(reason, str) and reason in _AT_ITS_LIMIT for reason in reasons)


_FIRST_MILLISECOND = 100_000_000_000
"""From this number on a time is in milliseconds: as seconds it is in the year 5138, as milliseconds in 1973."""


def time_given(payload: Payload) -> object:
    """The message's own `created_at`, unread; None when it has none."""
    found = fields(payload).get("created_at")
    found = payload.get("created_at") if found in (None, "") else found
    return None if found == "" else found


def said_at(payload: Payload) -> datetime | None:
    """When it was said, by the message's own `created_at`: ISO 8601 (UTC where it names no zone), or seconds or
    milliseconds since 1970."""
    found = time_given(payload)
    try:
        if isinstance(found, str):
            moment = datetime.fromisoformat(found)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return datetime.fromtimestamp(found / 1000 if abs(found) >= _FIRST_MILLISECOND else found, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def with_content(payload: Payload, content: object) -> dict[str, Any]:
    """The same message with other content, which LangChain's format has one level down."""
    if payload.get("lc") == 1 and is_mapping(inner := payload.get("kwargs")):
        return {**payload, "kwargs": {**inner, "content": content, "id": None}}
    kept = {name: value for name, value in payload.items() if name != "id"}
    if isinstance(kept.get("data"), dict):
        return {**kept, "data": {**kept["data"], "content": content, "id": None}}
    return {**kept, "content": content}


def is_summary(payload: Payload) -> bool:
    """Whether a framework marked this as its own summary (by marker, never by its text)."""
    extra = fields(payload).get("additional_kwargs")
    return bool(extra) and is_mapping(extra) and extra.get("lc_source") == "summarization"


def text(payload: Payload) -> str:
    """What a person would read: the text of the content, without thinking and without tool arguments.

    Content that is neither text nor blocks, such as a result that a tool gave as an object, is read as JSON.
    """
    content = fields(payload).get("content")
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) or (is_mapping(content) and (block_type(content) or "text" in content)):
        return "\n".join(_texts(content if isinstance(content, list) else [content]))
    return _encode(content)


def _texts(blocks: list[Any]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif is_mapping(block):
            if isinstance(block.get("text"), str):
                yield block["text"]
            elif block.get("type") == "tool_result":
                inner = block.get("content")
                if isinstance(inner, str):
                    yield inner
                elif isinstance(inner, list):
                    yield from _texts(inner)


def searchable(payload: Payload) -> str:
    """The text and, so that these are found too, the names and arguments of tool calls made and the texts of files that
    came with the message."""
    inner = fields(payload)
    content, attached = inner.get("content"), inner.get("attachments")
    if isinstance(content, str) and not attached and not inner.get("tool_calls"):  # by far the most
        return content
    said = text(payload)
    more = [*_calls(inner), *_attached(attached)]
    return "\n".join([said, *more]) if more else said


def _attached(attached: object) -> Iterator[str]:
    """What an export has of the files themselves, as that of Claude.ai does."""
    for file in attached if isinstance(attached, list) else ():
        if is_mapping(file) and isinstance(extracted := file.get("extracted_content"), str) and extracted:
            yield f"{file.get('file_name') or 'file'}:\n{extracted}"


def _calls(inner: Payload) -> Iterator[str]:
    made = inner.get("tool_calls")
    blocks = inner.get("content")
    for call in made if isinstance(made, list) else ():
        if is_mapping(call):
            function = call.get("function")
            source = function if is_mapping(function) else call
            yield _call_text(source.get("name"), source.get("arguments", source.get("args")))
    for block in blocks if isinstance(blocks, list) and not made else ():
        if is_mapping(block) and block.get("type") == "tool_use":
            yield _call_text(block.get("name"), block.get("input"))


def _call_text(called: object, arguments: object) -> str:
    if not isinstance(arguments, str):
        arguments = _encode(arguments)
    return f"{called} {arguments}"

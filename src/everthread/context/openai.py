"""Any stored message in OpenAI's shape, so that a request has one dialect whatever its messages came in.

Only what the API takes is written: role, content, name, tool calls and the id a result answers. A user message that
carries results as blocks (Anthropic's way) becomes one tool message for each, and the rest of it after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from everthread.context.dialect import Fields, as_text
from everthread.context.shape import (
    CALL_ID_KEYS,
    Message,
    answers_of,
    calls_of,
    content_of,
    inner,
    role_of,
)
from everthread.core.payloads import is_mapping

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the API takes as a speaker's name."""


def to_openai(message: Message) -> list[Fields]:
    """The message as the API takes it; more than one where it carries results as blocks."""
    role = role_of(message)
    if role == "tool":
        fields = inner(message)
        return [{"role": "tool", "tool_call_id": fields.get("tool_call_id"), "content": _content(message)}]
    if role == "assistant":
        return [_assistant(message)]
    if role == "user" and answers_of(message):
        return _results(message)
    return [_named({"role": role, "content": _content(message)}, message)]


def _assistant(message: Message) -> Fields:
    written: Fields = {"role": "assistant", "content": _content(message, without=frozenset(CALL_ID_KEYS))}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": as_text({} if call.arguments is None else call.arguments)},
        }
        for call in calls_of(message)
    ]
    return _named({**written, "tool_calls": calls} if calls else written, message)


def _results(message: Message) -> list[Fields]:
    blocks: list[Any] = list(content_of(message) or ())  # type: ignore[call-overload]
    answers = {answer.block: answer.call_id for answer in answers_of(message)}
    results = [
        {"role": "tool", "tool_call_id": call_id, "content": _result_content(blocks[block])}
        for block, call_id in answers.items()
        if block is not None
    ]
    rest = [block for index, block in enumerate(blocks) if index not in answers]
    return [*results, {"role": "user", "content": rest}] if rest else results


def _result_content(block: Mapping[str, Any]) -> Any:
    content = block.get("content")
    return "" if content is None else content


def _content(message: Message, *, without: frozenset[str] = frozenset()) -> Any:
    content = content_of(message)
    if not isinstance(content, list) or not without:
        return content
    kept = [block for block in content if not (is_mapping(block) and block.get("type") in without)]
    return kept or None


def _named(written: Fields, message: Message) -> Fields:
    """The speaker: by the API's field where it takes the name, else in front of what is said."""
    name = inner(message).get("name")
    if not isinstance(name, str) or not name.strip():
        return written
    if _NAME.fullmatch(name):
        return {**written, "name": name}
    content = written.get("content")
    return {**written, "content": f"{name}: {content}"} if isinstance(content, str) and content else written

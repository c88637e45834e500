"""Short words for OpenAI-shape messages, so that a test reads as the conversation it is about."""

from __future__ import annotations

import json
from typing import Any

Message = dict[str, Any]


def system(content: str = "You are helpful.", **fields: Any) -> Message:
    return {"role": "system", "content": content, **fields}


def user(content: Any = "hello", **fields: Any) -> Message:
    return {"role": "user", "content": content, **fields}


def ai(content: Any = "hi", *calls: str, **fields: Any) -> Message:
    """An assistant message that makes a call of each of these ids."""
    message: Message = {"role": "assistant", "content": content, **fields}
    return {**message, "tool_calls": [call(call_id) for call_id in calls]} if calls else message


def call(call_id: str, name: str = "search", arguments: Any = None) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {"query": "x"})
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def result(call_id: str, content: Any = "found", **fields: Any) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}

"""The tool calls of a stored message in LangChain's words: OpenAI's and Anthropic's are read too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import InvalidToolCall, ToolCall

Calls = tuple[list[ToolCall], list[InvalidToolCall]]


def calls_of(valid: object, invalid: object, content: object) -> Calls | None:
    """The calls that can be made and those that cannot; None when the message says nothing about calls."""
    if not isinstance(valid, list) and not isinstance(invalid, list):
        valid = [block for block in _mappings(content) if block.get("type") == "tool_use"]
        if not valid:
            return None
    read = [_read(call) for call in _mappings(valid)]
    kept = [cast(InvalidToolCall, dict(call)) for call in _mappings(invalid)]
    good = [cast(ToolCall, call) for call in read if call["type"] == "tool_call"]
    bad = [cast(InvalidToolCall, call) for call in read if call["type"] != "tool_call"]
    return good, [*bad, *kept]


def _mappings(found: object) -> list[Mapping[str, Any]]:
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def _read(call: Mapping[str, Any]) -> dict[str, Any]:
    """One call, whoever's words it came in. LangChain's own comes back unchanged."""
    function = call.get("function")
    if isinstance(function, Mapping):
        return _parsed(function.get("name"), function.get("arguments"), call.get("id"))
    if "input" in call and "args" not in call:
        return _parsed(call.get("name"), call.get("input"), call.get("id"))
    if isinstance(call.get("args"), Mapping):
        return {"type": "tool_call", **call}
    return _parsed(call.get("name"), call.get("args"), call.get("id"))


def _parsed(name: object, arguments: object, id: object) -> dict[str, Any]:
    """A call whose arguments are no JSON object cannot be made; it is kept as an invalid one."""
    try:
        args = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError as problem:
        return _invalid(name, arguments, id, str(problem))
    if not isinstance(args, Mapping):
        return _invalid(name, arguments, id, "the arguments are no JSON object")
    return {"name": name, "args": dict(args), "id": id, "type": "tool_call"}


def _invalid(name: object, arguments: object, id: object, error: str) -> dict[str, Any]:
    args = arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments)
    return {"name": name, "args": args, "id": id, "error": error, "type": "invalid_tool_call"}

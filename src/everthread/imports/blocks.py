"""Content made of blocks, as most agents have it in one spelling or another: what of it is said, called, and answered.

Anthropic's `tool_use` and `tool_result`, the AI SDK's `tool-call` and `tool-result`, Goose's `toolRequest` and
`toolResponse`, and thinking under its many names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everthread.core.payloads import block_type
from everthread.imports.session import dict_at, text_in, tool_call, without_none

_CALLS = ("tool_use", "tool-call", "toolCall", "toolRequest")
_RESULTS = ("tool_result", "tool-result", "toolResult", "toolResponse")
_THOUGHTS = ("thinking", "reasoning", "think")


def message_payloads(role: str, content: object, **more: object) -> list[dict[str, Any]]:
    """The messages that one of an agent is: each result of a tool is one, and what else it says another. `more` is kept
    with what an assistant said."""
    blocks = content if isinstance(content, list) else []
    results = [one for one in blocks if isinstance(one, dict) and block_type(one) in _RESULTS]
    rest = [one for one in blocks if one not in results] if blocks else content
    payloads = [_result(one) for one in results]
    if role == "tool":
        return payloads or [{"role": "tool", "content": rest or ""}]
    said: Any = [_plain(one) for one in rest if not _is_call(one)] if isinstance(rest, list) else rest or ""
    calls = [_call(one) for one in rest if _is_call(one)] if isinstance(rest, list) else []
    if said or calls or not results:
        fields = more if role == "assistant" else {}
        payloads.append(without_none({"role": role, "content": said, "tool_calls": calls or None, **fields}))
    return payloads


def _is_call(block: object) -> bool:
    return isinstance(block, dict) and block_type(block) in _CALLS


def _plain(block: object) -> object:
    """Thinking as everybody else reads it; every other block as it is."""
    if isinstance(block, dict) and block_type(block) in _THOUGHTS:
        said = next((block[key] for key in ("thinking", "text", "think") if isinstance(block.get(key), str)), "")
        kept = {name: value for name, value in block.items() if name not in ("text", "think")}
        return {**kept, "type": "thinking", "thinking": said}
    return block


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    called = block
    if block.get("type") == "toolRequest":
        called = {"id": block.get("id"), **dict_at(dict_at(block, "toolCall"), "value")}
    id = called.get("id") or called.get("toolCallId")
    name = called.get("name") or called.get("toolName")
    given = next((called[key] for key in ("input", "args", "arguments") if key in called), None)
    return tool_call(id, name, given)


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    id = next((block[key] for key in ("tool_use_id", "toolCallId", "id") if block.get(key)), None)
    content = next((block[key] for key in ("content", "output", "result") if key in block), None)
    is_error = block.get("is_error") is True or block.get("isError") is True
    if block.get("type") == "toolResponse":
        result = dict_at(block, "toolResult")
        is_error = result.get("status") == "error"
        content = result.get("value", result.get("error"))
        content = content.get("content", content) if isinstance(content, dict) else content
    said = content if isinstance(content, str | list) else text_in(content) or ("" if content is None else str(content))
    status = "error" if is_error else None
    return without_none({"role": "tool", "tool_call_id": id, "content": said, "status": status})

"""`to_langchain`: stored messages as LangChain's, whatever shape they came in; tool calls of OpenAI's and Anthropic's
shapes are read too.

LangChain's own `load` is not used: it imports and calls what the stored data names. Here stored data chooses among
the message classes below and nothing else; an envelope inside a message (in an artifact, say) stays a dict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast, overload

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from pydantic import ValidationError

from everthread.context.assemble import Context
from everthread.core import payloads
from everthread.core.errors import Invalid, NotFound
from everthread.core.nouns import Message
from everthread.history.json_values import from_json_value

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
    """One call, in whichever format it came. LangChain's own comes back unchanged."""
    function = call.get("function")
    if isinstance(function, Mapping):
        return _parsed(function.get("name"), function.get("arguments"), call.get("id"))
    if "input" in call and "args" not in call:
        return _parsed(call.get("name"), call.get("input"), call.get("id"))
    if isinstance(call.get("args"), Mapping):
        return {"type": "tool_call", **call}
    return _parsed(call.get("name"), call.get("args"), call.get("id"))


def _parsed(name: object, arguments: object, id: object) -> dict[str, Any]:
    """A call whose arguments are not a JSON object cannot be made; it is kept as an invalid one."""
    try:
        args = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError as problem:
        return _invalid(name, arguments, id, str(problem))
    if not isinstance(args, Mapping):
        return _invalid(name, arguments, id, "the arguments are not a JSON object")
    return {"name": name, "args": dict(args), "id": id, "type": "tool_call"}


def _invalid(name: object, arguments: object, id: object, error: str) -> dict[str, Any]:
    args = arguments if isinstance(arguments, str) or arguments is None else json.dumps(arguments)
    return {"name": name, "args": args, "id": id, "error": error, "type": "invalid_tool_call"}


Payload = Mapping[str, Any]

_WHOLE: dict[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "chat": ChatMessage,
    "function": FunctionMessage,
    "human": HumanMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}
_CLASSES = _WHOLE | {name: kind for kind in _WHOLE.values() for name in (kind.__name__, f"{kind.__name__}Chunk")}
"""LangChain's words for the classes that stored data may become. A chunk becomes a whole message."""

_ROLES: dict[str, type[BaseMessage]] = {
    "assistant": AIMessage,
    "developer": SystemMessage,
    "function": FunctionMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "user": HumanMessage,
}
"""OpenAI's roles; any other word becomes a ChatMessage of that role."""

_NOT_OF_A_WHOLE = {"type", "tool_call_chunks", "chunk_position"}


@overload
def to_langchain(messages: Message | Payload, *, with_ids: bool = False) -> BaseMessage: ...
@overload
def to_langchain(messages: Context | Iterable[Message | Payload], *, with_ids: bool = False) -> list[BaseMessage]: ...
def to_langchain(
    messages: Context | Message | Payload | Iterable[Message | Payload], *, with_ids: bool = False
) -> BaseMessage | list[BaseMessage]:
    """LangChain's form of a stored message (or payload), or of several; equal to what was appended. Of a context:
    the request, ready for a chat model.

    With `with_ids`, a message that came without an id gets the one the log gave it: a graph that is handed these
    messages then logs none of them twice.
    """
    if isinstance(messages, Message | Mapping):
        return _to_message(messages, with_ids)
    if isinstance(messages, Context):
        messages = messages.messages
    return [_to_message(message, with_ids) for message in messages]


def state_message(payload: Payload, id: str) -> dict[str, Any]:
    """A message with the keys that LangGraph gives it in a state, whatever format it came in."""
    word = {"user": "human", "assistant": "ai"}.get(role := payloads.role(payload) or "", role)
    try:
        found = _to_message(
            {name: value for name, value in payload.items() if name != "created_at"}, False
        ).model_dump()
    except (Invalid, ValueError, TypeError, NotImplementedError, KeyError):  # nothing that LangChain has a class for
        found = {"additional_kwargs": {}, "response_metadata": {}, "name": None, **payload, "type": word}
    return {**found, "id": found.get("id") or id}


def _to_message(stored: Message | Payload, with_ids: bool) -> BaseMessage:
    if isinstance(stored, Message) and stored.is_erased:
        raise NotFound(f"message {stored.id!r} was erased; there is nothing to convert")
    payload = from_json_value(stored.payload if isinstance(stored, Message) else dict(stored))
    try:
        message = _build(payload)
    except (ValidationError, TypeError, AttributeError) as problem:  # validators use fields before they check them
        raise Invalid(f"cannot be read as a LangChain message: {problem}", field="message") from problem
    if with_ids and message.id is None and isinstance(stored, Message):
        message.id = stored.id
    return message


def _build(payload: Payload) -> BaseMessage:
    word = _class_word(payload)
    # Some words (`tool`, `system`) are also used beside OpenAI's role.
    has_langchain_fields = word == "chat" or "role" not in payload or "additional_kwargs" in payload
    if word in _CLASSES and has_langchain_fields:
        return _from_fields(_CLASSES[word], payloads.fields(payload))
    return _from_role(payload)


def _class_word(payload: Payload) -> str:
    """LangChain's word for the message's class; Invalid where an envelope names something else."""
    if "lc" not in payload:
        return str(payload.get("type"))
    path = payload.get("id")
    name = str(path[-1]) if isinstance(path, list) and path else ""
    if payload.get("type") != "constructor" or name not in _CLASSES:
        raise Invalid(f"{name or 'this envelope'} is not a message class, and is not revived", field="message")
    return name


def _from_fields(kind: type[BaseMessage], fields: Payload) -> BaseMessage:
    """A message from LangChain's own fields. What is null is left to the class's default."""
    known = kind.model_fields
    given = {
        name: value
        for name, value in fields.items()
        if name not in _NOT_OF_A_WHOLE and not (value is None and name in known)
    }
    given.setdefault("content", "")
    if kind is ToolMessage:
        given.setdefault("tool_call_id", "")
    if kind is AIMessage:
        return _ai_message(given)
    return kind(**given)


def _ai_message(given: dict[str, Any]) -> AIMessage:
    """Its calls are set afterwards: the constructor drops fields of a call that it does not know."""
    calls = calls_of(given.pop("tool_calls", None), given.pop("invalid_tool_calls", None), given.get("content"))
    message = AIMessage(**given)
    if calls is not None:
        message.tool_calls, message.invalid_tool_calls = calls
    return message


def _from_role(payload: Payload) -> BaseMessage:
    """A message from OpenAI's fields; what LangChain has no field for goes to `additional_kwargs`, as it does there."""
    role = payload.get("role")
    if not isinstance(role, str) or role == "remove":
        raise Invalid(f"unknown message role {role or payload.get('type')!r}", field="message")
    kind = _ROLES.get(role, ChatMessage)
    known = kind.model_fields
    fields = {name: value for name, value in payload.items() if name in known and name != "type"}
    unknown = {name: value for name, value in payload.items() if name not in known and value is not None}
    extra = {name: value for name, value in unknown.items() if name not in ("role", "type")}
    extra |= fields.get("additional_kwargs") or {}
    if role == "developer":
        extra["__openai_role__"] = role
    if kind is ChatMessage:
        fields["role"] = role
    return _from_fields(kind, fields | {"content": _content(payload.get("content")), "additional_kwargs": extra})


def _content(content: object) -> object:
    if content is None:
        return ""
    if isinstance(content, Mapping):
        return [content]
    return content if isinstance(content, str | list) else json.dumps(content)

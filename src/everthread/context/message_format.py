"""One message, in whichever of three formats it is written: reading it, writing into it, and converting it to OpenAI's.

The formats are OpenAI's (`role`, `tool_calls`, `tool_call_id`), LangChain's (`type`, `args`, `invalid_tool_calls`) and
content blocks as Anthropic writes them (`tool_use`, `tool_result`, `thinking`). Everything else in this room asks its
questions here, so they are known in one place.

Reading never fails on a strange message: what cannot be read is not there. Writing returns a new value in the format of
the message at hand, because the adapter that sends the messages would refuse a mix.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Literal, NamedTuple, get_args

from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.payloads import block_type, is_mapping

Message = Mapping[str, Any]
Block = Mapping[str, Any]
Provider = Literal["openai", "anthropic"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

CALL_ID_KEYS = {"tool_use": "id", "tool_call": "id", "function_call": "call_id"}
"""Content blocks that are tool calls, and where each keeps its id."""
SIGNED_BLOCKS = frozenset({"thinking", "redacted_thinking"})
"""Reasoning that Anthropic signs: sent back unaltered or not at all."""
REASONING_BLOCKS = SIGNED_BLOCKS | {"reasoning", "reasoning_content"}
IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})
FILE_BLOCKS = frozenset({"audio", "document", "file", "input_audio", "input_file", "video"})

SPOKEN_ROLES = frozenset({"user", "assistant", "tool"})
_NEWER_ROLES = {"developer": "system", "function": "tool"}
"""`function` is how OpenAI wrote tool results before there were several calls in a message, each with an id."""

MAX_LEADING_SYSTEM = 8
"""System messages at the beginning of a path that hold for all of it."""


class CallLocation(NamedTuple):
    """Where in its message a call is written down."""

    field: Literal["tool_calls", "invalid_tool_calls", "content"]
    at: int


class Call(NamedTuple):
    """A tool call a message makes. LangChain writes one twice, as a content block and in `tool_calls`.

    A named tuple, as is its place: they are made for every call whenever its message is looked at.
    """

    id: str
    name: str
    arguments: object
    """A JSON text in OpenAI's shape, an object in the others."""
    locations: tuple[CallLocation, ...]

    @property
    def in_blocks_only(self) -> bool:
        """Whether it is written as Anthropic writes calls, so that its answer must be a block too."""
        return all(location.field == "content" for location in self.locations)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """A tool result a message carries: the message itself, or one of its content blocks."""

    call_id: str
    block: int | None = None


def check_provider(provider: object) -> Provider | None:
    """A provider whose rules are known, or none; Invalid for any other name."""
    for known in PROVIDERS:
        if provider == known:
            return known
    if provider is None:
        return None
    raise Invalid(f"{provider!r} is not known; choose from {', '.join(PROVIDERS)}, or leave it out", field="provider")


def check_messages(messages: object) -> None:
    """Invalid for what is no list of messages as mappings: a framework's objects would be read as nothing at all."""
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise Invalid(f"must be a list of messages, not {type(messages).__name__}", field="messages")
    for index, message in enumerate(messages):
        if not is_mapping(message):
            raise Invalid(
                f'is of type {type(message).__name__}; give it as a dict such as {{"role": "user", "content": "…"}} '
                "(LangChain: `message_to_dict(message)`)",
                field=f"messages[{index}]",
            )


def is_message(message: object) -> bool:
    """Whether it can be read at all: a mapping with a role a provider knows."""
    return is_mapping(message) and (role_of(message) in SPOKEN_ROLES or is_system(message))


def role_of(message: Message) -> str:
    """`system`, `user`, `assistant`, `tool`, or the sender's own word; empty when there is none."""
    if type(message) is not dict and not is_mapping(message):  # a plain dict, by far the most, is told at once
        return ""
    found = message.get("role")
    if found not in SPOKEN_ROLES:
        found = payloads.role(message) or ""
    return _NEWER_ROLES.get(found, found)


def unwrap(message: Message) -> Message:
    """The message without a serializer's envelope."""
    return message if "content" in message else payloads.fields(message)


def is_system(message: Message) -> bool:
    """A standing instruction (OpenAI's newer word for it is `developer`)."""
    return role_of(message) == "system"


def count_leading_system(messages: Iterable[Message]) -> int:
    """How many system messages a path begins with: they stand in every request, wherever the window is."""
    return sum(1 for _ in takewhile(is_system, islice(messages, MAX_LEADING_SYSTEM)))


def is_langchain(message: Message) -> bool:
    """Whether the message is written in LangChain's words, so that what we add to it must be too."""
    return "role" not in message and isinstance(message.get("type"), str)


def content_of(message: Message) -> object:
    """Its content as it stands: a text, a list of blocks, nothing, or something a provider refuses."""
    return unwrap(message).get("content") if is_mapping(message) else None


def blocks_of(message: Message) -> list[Block]:
    """Its content blocks; none when the content is a text."""
    content = content_of(message)
    return [block for block in content if is_mapping(block)] if isinstance(content, list) else []


def calls_of(message: Message) -> tuple[Call, ...]:
    """The calls an assistant message makes, in order, each once, valid or not."""
    if role_of(message) != "assistant":
        return ()
    fields = unwrap(message)
    is_listed = fields.get("tool_calls") or fields.get("invalid_tool_calls") or legacy_call(fields)
    if not is_listed and type(fields.get("content")) is str:
        return ()  # by far the most
    calls = [*_listed(fields, "tool_calls"), *_listed(fields, "invalid_tool_calls")]
    content = fields.get("content")
    return _with_block_calls(calls, content) if isinstance(content, list) else tuple(calls)


def _listed(fields: Message, key: Literal["tool_calls", "invalid_tool_calls"]) -> Iterator[Call]:
    listed = fields.get(key)
    if not listed and key == "tool_calls" and (legacy := legacy_call(fields)) is not None:
        listed = [legacy]
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        if is_mapping(entry):
            source, arguments = _name_and_arguments(entry)
            yield Call(_text(entry.get("id")), _text(source.get("name")), arguments, (CallLocation(key, index),))


def legacy_call(fields: Message) -> dict[str, Any] | None:
    """The one call of a message in OpenAI's older words (`function_call`), in the newer; LangChain keeps it aside."""
    extra = fields.get("additional_kwargs")
    found = fields.get("function_call") or (extra.get("function_call") if is_mapping(extra) else None)
    if not is_mapping(found) or not isinstance(found.get("name"), str):
        return None
    return {"id": "", "type": "function", "function": dict(found)}


def _name_and_arguments(entry: Mapping[str, Any]) -> tuple[Mapping[str, Any], object]:
    """Where a listed call keeps its name, and its arguments (an OpenAI custom tool takes a bare text)."""
    function, custom = entry.get("function"), entry.get("custom")
    if is_mapping(custom):
        return custom, {"input": custom.get("input")}
    source = function if is_mapping(function) else entry
    return source, source.get("arguments", source.get("args"))


def _with_block_calls(listed: Sequence[Call], content: Sequence[object]) -> tuple[Call, ...]:
    """The calls that are listed, and those of content blocks; one that is both once, with both its places."""
    calls = list(listed)
    unmirrored = {number: call.id for number, call in enumerate(listed)}
    for index, block in enumerate(content):
        if not is_mapping(block) or block_type(block) not in CALL_ID_KEYS:
            continue
        location = CallLocation("content", index)
        call_id = _text(block.get(CALL_ID_KEYS[block["type"]]))
        mirrored = next((number for number, id in unmirrored.items() if id == call_id), None)
        if mirrored is not None:
            del unmirrored[mirrored]
            calls[mirrored] = calls[mirrored]._replace(locations=(*calls[mirrored].locations, location))
        else:
            arguments = block.get("input", block.get("args", block.get("arguments")))
            calls.append(Call(call_id, _text(block.get("name")), arguments, (location,)))
    return tuple(calls)


def results_of(message: Message) -> tuple[CallResult, ...]:
    """The calls this message answers: one for a tool message, any number for a user message of blocks."""
    role = role_of(message)
    if role == "tool":
        return (CallResult(call_id=_text(unwrap(message).get("tool_call_id"))),)
    content = content_of(message)
    if role != "user" or not isinstance(content, list):
        return ()
    return tuple(
        CallResult(call_id=_text(block.get("tool_use_id")), block=index)
        for index, block in enumerate(content)
        if is_mapping(block) and block.get("type") == "tool_result"
    )


def is_user_turn(message: Message) -> bool:
    """Whether a person speaks here: a request may begin with it, a window may be cut before it."""
    return role_of(message) == "user" and not results_of(message)


def thinking_of(message: Message) -> list[Block]:
    """The signed reasoning an assistant message carries."""
    return [block for block in blocks_of(message) if block_type(block) in SIGNED_BLOCKS]


def is_signed(block: Block) -> bool:
    """Whether a thinking block can be sent back: with its signature, or (redacted) with its data."""
    extras = block.get("extras")
    signature = block.get("signature") or (is_mapping(extras) and extras.get("signature"))
    return bool(block.get("data") if block.get("type") == "redacted_thinking" else signature)


def is_blank(block: Block) -> bool:
    """A text block without a visible character, which Anthropic refuses."""
    return block.get("type") == "text" and not _text(block.get("text")).strip()


def has_content(message: Message) -> bool:
    """Whether anything would be left to send if reasoning and calls were taken away."""
    content = content_of(message)
    if isinstance(content, list):
        return any(_is_content(block) for block in content)
    return bool(content.strip()) if isinstance(content, str) else bool(content)


def _is_content(block: object) -> bool:
    if not is_mapping(block):
        return bool(block.strip() if isinstance(block, str) else block)
    unsaid = block_type(block) in REASONING_BLOCKS or block_type(block) in CALL_ID_KEYS
    return not unsaid and not is_blank(block)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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
    listed = _langchain_call if is_langchain(message) else _openai_call
    for call in calls:
        for location in call.locations:
            column = changed.setdefault(location.field, list(message[location.field]))
            write = _block_call if location.field == "content" else listed
            column[location.at] = write(column[location.at], call)
    return {**message, **changed}


def entry_at(message: Message, location: CallLocation) -> Mapping[str, Any]:
    """A call as it is written down."""
    entry: Mapping[str, Any] = message[location.field][location.at]
    return entry


def result_message(caller: Message, call: Call, content: str) -> Fields:
    """A result for a call that has none, as a message in its caller's dialect."""
    if is_langchain(caller):
        return {"type": "tool", "content": content, "tool_call_id": call.id, "name": call.name, "status": "error"}
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def result_block(call: Call, content: str) -> Fields:
    """The same as a content block, for callers that wrote their call as one."""
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": True}


def with_result_ids(message: Message, answers: Sequence[CallResult]) -> Fields:
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
    speaker = {"type": "human"} if is_langchain(neighbour) else {"role": "user"}
    return {**speaker, "content": content}


def read_arguments(arguments: object) -> Mapping[str, Any] | None:
    """The arguments as an object; None when they are none."""
    if not isinstance(arguments, str):
        return arguments if is_mapping(arguments) and _is_json(arguments) else None
    try:
        read = json.loads(arguments, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _refuse_constant(constant: str) -> object:
    raise ValueError(f"{constant} is not valid JSON")


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


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What the API takes as a speaker's name."""


def to_openai(message: Message) -> list[Fields]:
    """The message as the API takes it; more than one where it carries results as blocks."""
    role = role_of(message)
    if role == "tool":
        fields = unwrap(message)
        result = {"role": "tool", "tool_call_id": fields.get("tool_call_id"), "content": _openai_content(message)}
        name = fields.get("name")
        return [{**result, "name": name} if isinstance(name, str) and _NAME.fullmatch(name) else result]
    if role == "assistant":
        return [_openai_assistant(message)]
    if role == "user" and results_of(message):
        return _openai_results(message)
    return [_with_speaker_name({"role": role, "content": _openai_content(message)}, message)]


def _openai_assistant(message: Message) -> Fields:
    written: Fields = {"role": "assistant", "content": _openai_content(message, without=frozenset(CALL_ID_KEYS))}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": as_text({} if call.arguments is None else call.arguments)},
        }
        for call in calls_of(message)
    ]
    return _with_speaker_name({**written, "tool_calls": calls} if calls else written, message)


def _openai_results(message: Message) -> list[Fields]:
    blocks: list[Any] = list(content_of(message) or ())  # type: ignore[call-overload]
    answers = {answer.block: answer.call_id for answer in results_of(message)}
    results = [
        {
            "role": "tool",
            "tool_call_id": call_id,
            "content": "" if (said := blocks[block].get("content")) is None else said,
        }
        for block, call_id in answers.items()
        if block is not None
    ]
    rest = [block for index, block in enumerate(blocks) if index not in answers]
    return [*results, {"role": "user", "content": rest}] if rest else results


def _openai_content(message: Message, *, without: frozenset[str] = frozenset()) -> Any:
    content = content_of(message)
    if not isinstance(content, list) or not without:
        return content
    kept = [block for block in content if not (is_mapping(block) and block_type(block) in without)]
    return kept or None


def _with_speaker_name(written: Fields, message: Message) -> Fields:
    """The speaker: by the API's field where it takes the name, else in front of what is said."""
    name = unwrap(message).get("name")
    if not isinstance(name, str) or not name.strip():
        return written
    if _NAME.fullmatch(name):
        return {**written, "name": name}
    content = written.get("content")
    return {**written, "content": f"{name}: {content}"} if isinstance(content, str) and content else written

"""One message made valid by itself, before `repair` looks at the order of all of them.

Everything that can be wrong inside a single message is put right here: an envelope around it, content of an unexpected
type, blank text blocks, blocks in another provider's words, reasoning that lost its signature, images where none are
allowed, call arguments that are not a JSON object, names and texts that cannot be sent. What a person or a model said
is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from everthread.context.content_blocks import (
    convert_block,
    describe_block,
    is_accepted,
    names_image,
    takes_images,
)
from everthread.context.message_format import (
    IMAGE_BLOCKS,
    INVALID_ARGUMENTS,
    REASONING_BLOCKS,
    SIGNED_BLOCKS,
    Call,
    Fields,
    Message,
    Provider,
    as_json,
    as_text,
    calls_of,
    encodable,
    entry_at,
    is_blank,
    is_langchain,
    is_signed,
    legacy_call,
    map_strings,
    read_arguments,
    role_of,
    thinking_of,
    with_calls,
)
from everthread.core import payloads
from everthread.core.payloads import block_type, is_mapping

MessageRepairKind = Literal[
    "unwrapped",  # taken out of a serializer's envelope
    "content_reshaped",  # content of a type no provider takes, written as text
    "blank_left_out",  # a text block without a visible character
    "thinking_left_out",  # reasoning that this provider, or any without its signature, refuses
    "image_left_out",  # an image where the provider takes none
    "block_rewritten",  # a content block in another provider's words, said in this one's
    "block_left_out",  # a content block that the provider does not take
    "invalid_arguments",  # arguments that are no JSON object, wrapped into one
    "call_reshaped",  # a call in another dialect than its message, or with a name no provider takes
    "name_changed",  # a speaker's name with characters OpenAI refuses
    "text_replaced",  # half a surrogate pair, which no request can carry
]

CALL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SPEAKER_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
IMAGE_LEFT_OUT = "[image left out: only a user message may carry one]"
IMAGE_UNREADABLE = "[image left out: its block does not say where the image is]"


@dataclass(slots=True)
class RepairedMessage:
    """The message, and what was done to it: (kind, call id or nothing)."""

    message: Fields
    done: list[tuple[MessageRepairKind, str]] = field(default_factory=list)
    is_plain: bool = False
    """Whether somebody says words with it and nothing else: no instruction, no calls and no results, so that nothing
    has to be done about it in the order of a request. Nearly all messages are."""

    def set(self, key: str, value: object, why: MessageRepairKind) -> None:
        self.message = {**self.message, key: value}
        self.note(why)

    def note(self, why: MessageRepairKind, call_id: str = "") -> None:
        self.done.append((why, call_id))


def repair_message(message: Message, *, provider: Provider | None = None) -> RepairedMessage:
    """The message as every provider (or the one named) takes it; the input is left as it was."""
    draft = RepairedMessage(_unwrapped(message))
    if draft.message.keys() != message.keys():
        draft.note("unwrapped")
    _fix_legacy(draft)
    _fix_surrogates(draft)
    _fix_content(draft)
    _fix_thinking(draft, provider)
    _fix_blocks(draft, provider)
    _fix_calls(draft)
    _fix_name(draft)
    draft.is_plain = _is_plain(draft.message)
    return draft


def _is_plain(message: Fields) -> bool:
    content = message.get("content")
    if type(content) is not str or not content.strip():
        return False
    role = role_of(message)
    return role == "user" or (role == "assistant" and not calls_of(message))


def _unwrapped(message: Message) -> Fields:
    inner = payloads.fields(message)
    if inner is message:
        return dict(message)
    role = role_of(message)
    return {**inner, "type": {"user": "human", "assistant": "ai"}.get(role, role)}


def _fix_legacy(draft: RepairedMessage) -> None:
    """OpenAI's older words for a call and its result, `function_call` and the role `function`."""
    told = draft.message
    if role_of(told) == "assistant" and not told.get("tool_calls") and (call := legacy_call(told)) is not None:
        told = {key: value for key, value in told.items() if key != "function_call"}
        if is_mapping(extra := told.get("additional_kwargs")):
            told["additional_kwargs"] = {key: value for key, value in extra.items() if key != "function_call"}
        draft.message = {**told, "tool_calls": [call]}
        draft.note("call_reshaped")
    elif payloads.role(told) == "function":
        draft.message = {**told, "role" if "role" in told else "type": "tool"}
        draft.note("call_reshaped")


def _fix_surrogates(draft: RepairedMessage) -> None:
    whole = map_strings(draft.message, encodable)
    if whole is not draft.message:
        draft.message = whole
        draft.note("text_replaced")


# --- content ---------------------------------------------------------------------------------


def _fix_content(draft: RepairedMessage) -> None:
    content = draft.message.get("content")
    if content is None:
        _fix_absent(draft)
    elif isinstance(content, list):
        blocks = _valid_blocks(content, draft)
        if blocks != content or not blocks:
            draft.message = {**draft.message, "content": blocks or ""}
    elif not isinstance(content, str):
        draft.set("content", as_json(content), "content_reshaped")
    elif content and not content.strip():
        draft.set("content", "", "blank_left_out")


def _fix_absent(draft: RepairedMessage) -> None:
    """OpenAI keeps a refusal beside the content, and takes a tool message only with a content."""
    refusal = draft.message.get("refusal")
    if role_of(draft.message) == "tool":
        draft.set("content", "", "content_reshaped")
    elif isinstance(refusal, str) and refusal.strip():
        rest = {key: value for key, value in draft.message.items() if key != "refusal"}
        draft.message = {**rest, "content": refusal}
        draft.note("content_reshaped")


def _valid_blocks(blocks: list[Any], draft: RepairedMessage) -> list[Any]:
    valid = []
    for block in blocks:
        whole = _valid_block(block, draft)
        if is_blank(whole):
            draft.note("blank_left_out")
        else:
            valid.append(whole)
    return valid


def _valid_block(block: object, draft: RepairedMessage) -> Mapping[str, Any]:
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        draft.note("content_reshaped")
        said = block.get("text") if isinstance(block, Mapping) else block
        return {"type": "text", "text": said if isinstance(said, str) else as_json(block)}
    if block["type"] == "text" and not isinstance(block.get("text"), str):
        draft.note("content_reshaped")
        return {**block, "text": "" if block.get("text") is None else as_json(block["text"])}
    if block["type"] == "tool_result" and not isinstance(block.get("content"), str | None):
        return _valid_result(block, draft)
    return block


def _valid_result(block: Mapping[str, Any], draft: RepairedMessage) -> Mapping[str, Any]:
    content = block["content"]
    if not isinstance(content, list):
        draft.note("content_reshaped")
        return {**block, "content": as_json(content)}
    inner = _valid_blocks(content, draft)
    return block if inner == content and inner else {**block, "content": inner or ""}


def _fix_thinking(draft: RepairedMessage, provider: Provider | None) -> None:
    """Whole or not at all: a signature covers the reasoning as it was, where it was."""
    content = draft.message.get("content")
    if not isinstance(content, list):
        return
    is_kept = provider == "anthropic" and has_valid_thinking(draft.message)
    refused = REASONING_BLOCKS - SIGNED_BLOCKS if is_kept else REASONING_BLOCKS
    said = [block for block in content if block_type(block) not in refused]
    if len(said) < len(content):
        draft.set("content", said or "", "thinking_left_out")


def has_valid_thinking(message: Message) -> bool:
    """Anthropic's rule: signed, before everything else, and never the last word."""
    thinking = thinking_of(message)
    if not thinking:
        return True
    content = message["content"]
    calls_follow = any(not call.in_blocks_only for call in calls_of(message))
    return (
        content[0] is thinking[0]
        and (calls_follow or content[-1] is not thinking[-1])
        and all(is_signed(block) for block in thinking)
    )


def _fix_blocks(draft: RepairedMessage, provider: Provider | None) -> None:
    content = draft.message.get("content")
    if isinstance(content, list):
        blocks = [_accepted_block(block, role_of(draft.message), provider, draft) for block in content]
        if any(new is not old for new, old in zip(blocks, content, strict=True)):
            draft.message = {**draft.message, "content": blocks}


def _accepted_block(
    block: Mapping[str, Any], role: str, provider: Provider | None, draft: RepairedMessage
) -> Mapping[str, Any]:
    """The block as it can be sent, or a line in its place."""
    if is_accepted(block, role, provider):
        is_result = block["type"] == "tool_result" and isinstance(block.get("content"), list)
        return _accepted_result(block, draft) if is_result else block
    whole = convert_block(block, provider)
    if is_accepted(whole, role, provider):
        draft.note("block_rewritten")
        return whole
    is_image = whole["type"] in IMAGE_BLOCKS
    draft.note("image_left_out" if is_image else "block_left_out")
    if is_image and not takes_images(role, provider):
        return {"type": "text", "text": IMAGE_LEFT_OUT}
    return {"type": "text", "text": IMAGE_UNREADABLE} if is_image and not names_image(whole) else describe_block(whole)


def _accepted_result(block: Mapping[str, Any], draft: RepairedMessage) -> Mapping[str, Any]:
    """A result as a block is written in Anthropic's way, whoever it goes to: so is what it holds."""
    inner = [_accepted_block(one, "tool", "anthropic", draft) for one in block["content"]]
    is_same = all(new is old for new, old in zip(inner, block["content"], strict=True))
    return block if is_same else {**block, "content": inner}


def _fix_name(draft: RepairedMessage) -> None:
    name = draft.message.get("name")
    if name is None or role_of(draft.message) == "tool":
        return
    if not isinstance(name, str) or not SPEAKER_NAME.fullmatch(name):
        sent = re.sub(r"[\s<|\\/>]+", "_", str(name))[:64]
        rest = {key: value for key, value in draft.message.items() if key != "name"}
        draft.message = {**rest, "name": sent} if sent else rest
        draft.note("name_changed")


# --- calls -----------------------------------------------------------------------------------


def _fix_calls(draft: RepairedMessage) -> None:
    calls = calls_of(draft.message)
    if not calls and not {"tool_calls", "invalid_tool_calls"} & draft.message.keys():
        return
    valid = [_valid_call(call, draft) for call in calls]
    rewritten = with_calls(draft.message, valid)
    for before, after in zip(calls, valid, strict=True):
        if before == after and any(
            entry_at(rewritten, location) != entry_at(draft.message, location) for location in before.locations
        ):
            draft.note("call_reshaped", before.id)
    draft.message = rewritten
    _list_invalid_calls(draft)


def _valid_call(call: Call, draft: RepairedMessage) -> Call:
    valid = call
    if not CALL_NAME.fullmatch(call.name):
        name = re.sub(r"[^a-zA-Z0-9_-]+", "_", call.name)[:64] or "unknown_tool"
        valid = valid._replace(name=name)
        draft.note("call_reshaped", call.id)
    if read_arguments(call.arguments) is None:
        raw = call.arguments
        kept = {} if raw is None or raw == "" else {INVALID_ARGUMENTS: as_text(raw)}
        valid = valid._replace(arguments=kept)
        draft.note("invalid_arguments", call.id)
    return valid


def _list_invalid_calls(draft: RepairedMessage) -> None:
    """LangChain sends its invalid calls to OpenAI as calls all the same, so they stand with the others and
    are answered like them. An empty list is refused by OpenAI and usual in LangChain."""
    listed = draft.message.get("tool_calls")
    invalid = draft.message.get("invalid_tool_calls") or []
    entries = [entry for column in (listed, invalid) if isinstance(column, list) for entry in column]
    valid = [entry for entry in entries if isinstance(entry, Mapping)]
    if valid != entries:
        draft.note("call_reshaped")
    if invalid:
        draft.message = {**draft.message, "invalid_tool_calls": []}
    if listed is None and not valid:
        return
    if valid or is_langchain(draft.message):
        draft.message = {**draft.message, "tool_calls": valid}
    else:
        draft.message = {key: value for key, value in draft.message.items() if key != "tool_calls"}

"""A message of the log made ready for a request, as far as that depends on nothing but the message.

Most of a window is what it was a turn ago, so this is done once for each message and kept with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everthread.context.ingredients import LogMessage
from everthread.context.message_format import Fields, Provider, is_message, role_of, to_openai
from everthread.context.quotes import without_forged_blocks
from everthread.context.repair_message import RepairedMessage, repair_message
from everthread.context.tokens import message_tokens
from everthread.core import payloads

QUOTING_TOOLS = frozenset({"history_search", "history_open", "forget", "kb_search"})
"""Tools of ours whose results are our own blocks, with what they quote made safe already."""


class PreparedMessage(NamedTuple):
    """One message of a request, before all of them are put in order. Never to be changed: the next request uses it
    too."""

    message: Fields
    seq: int | None = None
    """The message of the log that it is."""
    repaired: RepairedMessage | None = None
    """None where no provider has a role for it, or it was written for this request."""
    tokens: int = 0
    """Of the repaired message."""

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but words of a user or an assistant."""
        return self.repaired is not None and self.repaired.is_plain


def prepare(stored: LogMessage, provider: Provider | None) -> Sequence[PreparedMessage]:
    """A message of the log in OpenAI's words, what a tool wrote without forged blocks of ours; more than one where it
    carries several results."""
    known = stored.prepared.get(provider)
    if known is None:
        known = stored.prepared[provider] = tuple(_prepare(message, stored.seq, provider) for message in _told(stored))
    return known


def _told(stored: LogMessage) -> Sequence[Fields]:
    told = to_openai(stored.payload)
    if role_of(stored.payload) == "tool" and payloads.name(stored.payload) not in QUOTING_TOOLS:
        return [_without_forged_blocks(message) for message in told]
    return told


def _prepare(message: Fields, seq: int, provider: Provider | None) -> PreparedMessage:
    if not is_message(message):
        return PreparedMessage(message, seq)
    repaired = repair_message(message, provider=provider)
    return PreparedMessage(message, seq, repaired, message_tokens(repaired.message))


def _without_forged_blocks(message: Fields) -> Fields:
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": without_forged_blocks(content)}
    if not isinstance(content, list):
        return message
    blocks = [
        {**block, "text": without_forged_blocks(block["text"])}
        if isinstance(block, Mapping) and isinstance(block.get("text"), str)
        else block
        for block in content
    ]
    return {**message, "content": blocks}


def own_copy(message: Mapping[str, Any]) -> Fields:
    """The message for a caller, who may change all of it."""
    return {key: _copied(value) if type(value) in (list, dict) else value for key, value in message.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value

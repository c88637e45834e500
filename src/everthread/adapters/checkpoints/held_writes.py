"""The messages of a task's write, which wait there until a checkpoint names them.

Writes arrive in the order of completion, which is not that of the conversation, so nothing of them is logged yet. The
messages wait in the write's row, durably. The checkpoint that follows makes the entries, in the order of its list, and
the row then refers to them. What it does not name becomes an entry of its own, except chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import ormsgpack
from langchain_core.messages import BaseMessage, convert_to_messages
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.types import Overwrite

from everthread.adapters.checkpoints.row_format import Blobs, MessageRef, pack_refs
from everthread.adapters.checkpoints.stored_message import StoredMessage, is_loggable, stored_message
from everthread.core.checkpoints import REFERS, StoredWrite

HISTORY = "messages"
"""The one channel that feeds history."""

WriteKey = tuple[str, int]


class HeldMessage(NamedTuple):
    """One message in a write, as it was when it was written."""

    message: BaseMessage
    stored: StoredMessage


class HeldMessages(NamedTuple):
    """The messages of one write."""

    shape: str
    """`one`, `list`, or `other` when they stand inside something else: then the value's bytes are kept."""
    parts: tuple[HeldMessage, ...]


def held_messages(value: object, serde: SerializerProtocol) -> HeldMessages | None:
    """The messages in a value; None when there are none that could be logged."""
    shape, messages = _messages_in(value)
    if not any(map(is_loggable, messages)):
        return None
    return HeldMessages(
        shape,
        tuple(
            HeldMessage(message, stored_message(message.model_dump(warnings=False), message, serde))
            for message in messages
        ),
    )


def held_in_row(write: StoredWrite, serde: SerializerProtocol) -> HeldMessages:
    """The messages of a write, from its row."""
    return held_messages(serde.loads_typed((write.kind, write.value)), serde) or HeldMessages("other", ())


def _messages_in(value: object) -> tuple[str, Sequence[BaseMessage]]:
    if isinstance(value, BaseMessage):
        return "one", [value]
    if value.__class__ is list and all(isinstance(item, BaseMessage) for item in value):
        return "list", value
    if isinstance(value, Overwrite):
        return "other", _messages_in(value.value)[1]
    if isinstance(value, list | tuple | str | Mapping):
        return "other", as_messages(value)
    return "other", ()


def as_messages(value: Any) -> Sequence[BaseMessage]:
    """LangChain's shorthands, `"hi"`, `("user", "hi")` and dicts, as the messages they mean."""
    try:
        return convert_to_messages(value if isinstance(value, list) else [value])
    except (ValueError, NotImplementedError, TypeError):
        return ()


def with_references(
    write: StoredWrite, held: HeldMessages, references: Sequence[MessageRef | None], blobs: Blobs
) -> StoredWrite:
    """The write with references in the place of its messages, or as it is where one differs from its entry."""
    refs = [ref for ref in references if ref is not None]
    if held.shape == "other" or len(refs) < len(references):
        return write._replace(is_held=False)
    return write._replace(kind=REFERS, value=ormsgpack.packb([held.shape, pack_refs(refs, blobs)]), is_held=False)

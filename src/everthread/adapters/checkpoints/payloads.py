"""The way into the log: a LangChain message as the payload that `append` keeps, and its id where it has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.adapters.checkpoints.plain import to_plain
from everthread.core.errors import Invalid
from everthread.history.made_ids import made_id as made_id


def from_langchain(message: BaseMessage) -> dict[str, Any]:
    """The complete dump of a message: what `append(message)` stores.

    Only where a message holds what JSON does not know (bytes or times in an artifact, say) do the two differ:
    `append` refuses it, and this writes it so that `to_langchain` gives it back (see `plain`).
    """
    try:
        return plain_payload(message.model_dump(warnings=False))
    except (ValueError, RecursionError) as problem:  # a circle in an artifact
        raise Invalid(f"cannot be taken apart: {problem}", field=f"message {message.id}") from problem


def plain_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload of its own, all JSON; a later change of the original does not reach it."""
    return {key: to_plain(value) for key, value in payload.items()}


def child_id(thread_id: str, namespace: Sequence[str], first_message_id: str) -> str:
    """The id of the conversation that a subgraph's own messages go to; the same again for a resumed run."""
    name = json.dumps([thread_id, list(namespace), first_message_id])
    return "subagent-" + sha256(name.encode()).hexdigest()[:32]

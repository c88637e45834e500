"""The way into the log: a LangChain message as the payload that `append` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.core.errors import Invalid
from everthread.integrations.langchain.plain import to_plain


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

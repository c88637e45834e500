"""A LangChain message as the JSON payload that the log keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.core.errors import Invalid
from everthread.history.json_values import json_payload
from everthread.history.made_ids import made_id as made_id


def from_langchain(message: BaseMessage) -> dict[str, Any]:
    """The complete dump of a message: what `append(message)` stores."""
    try:
        return json_payload(message.model_dump(warnings=False))
    except (ValueError, RecursionError) as problem:  # a circle in an artifact
        raise Invalid(f"cannot be parsed: {problem}", field=f"message {message.id}") from problem


def subgraph_conversation_id(thread_id: str, namespace: Sequence[str], first_message_id: str) -> str:
    """The id of the conversation that a subgraph's own messages go to; the same again for a resumed run."""
    name = json.dumps([thread_id, list(namespace), first_message_id])
    return "subagent-" + sha256(name.encode()).hexdigest()[:32]

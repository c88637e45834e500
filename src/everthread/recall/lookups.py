"""An agent's searches of its own past. Neither they nor what they found are found again, which would quote twice what
was quoted before; nor is the question that such a search is to answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.context.message_format import calls_of, results_of
from everthread.context.quotes import LOOKUP_INTRODUCTION
from everthread.core import payloads
from everthread.core.nouns import Message
from everthread.recall.links import TOOL_ROLES
from everthread.text.passages import WHOLE_TOKENS

LOOKUP_TOOLS = frozenset({"history_search", "history_open"})


def is_lookup(payload: payloads.Payload) -> bool:
    """Whether a message is nothing but such searches, or what one of them found."""
    text = payloads.text(payload)
    if payloads.role(payload) in TOOL_ROLES:
        return payloads.name(payload) in LOOKUP_TOOLS or text.startswith(LOOKUP_INTRODUCTION)
    if text.strip():
        return text.startswith(LOOKUP_INTRODUCTION) and bool(results_of(payload))
    calls = calls_of(payload)
    return bool(calls) and all(call.name in LOOKUP_TOOLS for call in calls)


def message_asked(newest: Sequence[Message], query: str) -> int | None:
    """The seq of the user's message that is the question, of the newest ones of a branch: word for word, or because an
    agent calls something to answer it. A long one may hold the answer where only a part of it is shown."""
    calls = False
    for one in reversed(newest):
        if one.role == "user" and not results_of(one.payload):
            is_answered = calls and one.tokens <= WHOLE_TOKENS
            return one.seq if is_answered or one.text.strip() == query.strip() else None
        calls = calls or any(call.name in LOOKUP_TOOLS for call in calls_of(one.payload))
    return None

"""Words the tests of contexts and compactions share: histories of every kind, and what must hold of any context."""

from __future__ import annotations

from typing import Any

from everthread import Budget, Compaction, Context, Conversation
from everthread.context import find_violations
from tests.context.random_histories import PIXEL
from tests.contracts.message_helpers import history, says

Payload = dict[str, Any]

IMAGE = f"data:image/png;base64,{PIXEL}"


def tight(limit: int) -> Budget:
    """A budget by what a request may count to."""
    return Budget(window=limit + 100, output_reserve=100)


def call(*ids: str, text: str | None = None, name: str = "lookup") -> Payload:
    """The assistant calls tools."""
    calls = [{"id": id, "type": "function", "function": {"name": name, "arguments": '{"order": 7}'}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(id: str, text: object = "found it") -> Payload:
    """What a tool answered."""
    return {"role": "tool", "tool_call_id": id, "content": text}


def turn(number: int) -> list[Payload]:
    """A question, a tool used, an answer: four messages that say something a summary can hold."""
    return [
        says(f"Question {number}: what became of order A-{number}00 of 2024-05-{number % 28 + 1:02d}?"),
        call(f"c{number}"),
        result(f"c{number}", f"Order A-{number}00 left the depot of Town {number} at 09:{number % 60:02d}. " * 6),
        {"role": "assistant", "content": f"Order A-{number}00 costs {number * 7} euro; we decided to ship it by rail."},
    ]  # fmt: skip


async def tell(conv: Conversation, turns: int, *, first: int = 0, **options: Any) -> list[str]:
    """Append so many turns; give the ids of their messages."""
    said = [message for number in range(first, first + turns) for message in turn(number)]
    return [receipt.id for receipt in await conv.append(said, **options)]


def accounted(context: Context, compactions: list[Compaction]) -> set[int]:
    """Every seq that a context shows, summarises or names as left out."""
    spans = {one.id: range(one.first_seq, one.last_seq + 1) for one in compactions}
    found: set[int] = set()
    for part in context.parts:
        for id in part.summary_ids:
            found |= set(spans[id])
        if part.kind != "summary":
            found |= set(part.seqs)
    for omission in context.omitted:
        found |= set(range(omission.seq, (omission.last_seq or omission.seq) + 1))
    return found


async def check(conv: Conversation, context: Context, *, branch: Any = None) -> None:
    """What must hold of every context: a provider takes it, it is within the limit, and there is no silent hole."""
    for provider in (None, "openai", "anthropic"):
        assert find_violations(context.messages, provider) == []
    assert context.tokens <= context.limit
    assert sum(part.tokens for part in context.parts) == context.tokens
    known = [compaction async for compaction in conv.compactions()]
    visible = {message.seq for message in await history(conv, branch=branch)}
    assert visible - accounted(context, known) == set()


async def live(conv: Conversation) -> list[Compaction]:
    """The compactions in use or ready to be, oldest first."""
    return [compaction async for compaction in conv.compactions() if compaction.is_live]


def text_of(context: Context) -> str:
    """All that the model reads."""
    return "\n".join(str(message.get("content")) for message in context.messages)

"""`Watch it happen`: the journey of the demo is written into a new conversation while somebody watches.

The messages are appended a turn at a time, the compactions are those that the default policy makes by itself for a
window of 8,192 tokens, the last question is a turn of the real agent that recalls what it needs, and the chain is
verified at the end. Only what is said is made up: the model's answers come from a script, and the look-ups are as long
as those of real tools are, so that the window fills.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from everthread.adapters.models.scripted import ScriptedModel
from everthread.bootstrap import agent
from everthread.context.budget import Budget
from everthread.core.ids import LOCAL
from everthread.core.turn_events import Recall
from everthread.demo.load import MessageWriter
from everthread.demo.story import CLOSING, turns
from everthread.demo.tools import lengthened
from everthread.instance import Everthread
from everthread.turn import run_turn

TITLE: Final = "Watch it happen: a slow journey by train"
WINDOW: Final = 8_192
_TURNS: Final = 39
"""How many turns fill the window three times: the opening, and the first seven towns."""
_WIDEST_WINDOW: Final = 100
"""Messages: the tokens fill the window, not their number."""
_WRITING_SECONDS: Final = 14.0
"""How long all turns together take to appear."""
_LOOKING_SECONDS: Final = 2.2
"""How long each step stays on the screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStep:
    """Something that has happened to the conversation."""

    kind: str
    """begun, said, compacted, asked, answered or verified."""
    details: dict[str, Any]


async def replay(et: Everthread, owner: str = LOCAL, *, speed: float = 1.0) -> AsyncGenerator[ReplayStep]:
    """Write the conversation step by step, at a pace to watch; it ends when the caller stops iterating."""
    conversation = await et.conversations.create(owner=owner, title=TITLE, metadata={"demo": True, "window": WINDOW})
    await et.compaction_config.set({"max_message_history": _WIDEST_WINDOW}, conversation=conversation)
    yield ReplayStep(kind="begun", details={"conversation_id": conversation.id})
    said = await _turn_by_turn()
    for number, messages in enumerate(said, 1):
        receipts = await conversation.append(messages)
        yield ReplayStep(kind="said", details={"seq": receipts[-1].seq, "turn": number, "turns": len(said)})
        outcome = await conversation.compact_if_due(budget=Budget(window=WINDOW))
        if outcome.compaction is not None:
            made = outcome.compaction
            yield ReplayStep(
                kind="compacted",
                details={
                    "first_seq": made.first_seq,
                    "last_seq": made.last_seq,
                    "tokens_before": made.tokens_before,
                    "tokens_after": made.tokens_after,
                },
            )
            await asyncio.sleep(_LOOKING_SECONDS / speed)
        await asyncio.sleep(_WRITING_SECONDS / len(said) / speed)
    question, answer = CLOSING[0]
    yield ReplayStep(kind="asked", details={"question": question})
    recalled: list[int] = []
    async for event in run_turn(conversation, question, agent=agent(et), model=ScriptedModel([answer])):
        if isinstance(event, Recall):
            recalled += event.seqs
    newest = (await conversation.tail(1))[-1]
    yield ReplayStep(kind="answered", details={"seq": newest.seq, "recalled": recalled})
    await asyncio.sleep(3 * _LOOKING_SECONDS / speed)
    report = await et.verify(owner=owner, conversation=conversation.id)
    yield ReplayStep(kind="verified", details={"entries": report.entries, "ok": report.ok})


async def _turn_by_turn() -> Sequence[list[dict[str, Any]]]:
    """The messages of each turn, with look-ups as long as those of real tools."""
    writer = MessageWriter("m")
    return [
        [lengthened(message) if message["role"] == "tool" else message for message in await writer.turn(turn)]
        for turn in islice(turns(), _TURNS)
    ]

"""A process that is killed in its turn: `python -m tests.turn.killed_process URL CONVERSATION QUESTION answer|tool`.

It says "now" when the turn is where it should be killed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from langchain_core.tools import tool

import everthread
from everthread.core.turn_events import Token, ToolCall
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn import begin_turn
from tests.turn.turns import agent_for

LONG: Final = " ".join(f"word{number}" for number in range(4_000))


@tool
async def wait_for_ever() -> str:
    """Wait."""
    await asyncio.sleep(3600)
    return "never"


async def main(url: str, conversation: str, question: str, where: str) -> None:
    script = {
        "answer": [Reply(text=LONG, pace_seconds=0.005)],
        "tool": [Reply(text="I will look.", calls=[("wait_for_ever", {})])],
    }[where]
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get(conversation)
        agent = agent_for(et, tools=[wait_for_ever])
        await agent.close_dead()
        live = await begin_turn(conv, question, agent=agent, model=ScriptedModel(script))
        async for event in live.event_log.listen():
            if isinstance(event, Token | ToolCall) and (where == "answer" or isinstance(event, ToolCall)):
                break
        await asyncio.sleep(1)
        print("now", flush=True)
        await live.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

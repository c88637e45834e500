"""No framework: a loop of your own that asks a model, keeps everything, and sends what fits.

Run it: python examples/own_loop.py [database], by default sqlite:///agent.db in the working folder.
`ask` is where your provider's client is called; it is given messages in OpenAI's shape.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import everthread
from everthread import Budget
from everthread.langchain import to_langchain
from everthread.testing import ScriptedModel

MODEL = ScriptedModel(lambda messages: f"I was sent {len(messages)} messages.")


async def ask(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One request to a model."""
    answer = await MODEL.ainvoke(to_langchain(messages))
    return {"role": "assistant", "content": answer.text}


async def main(database: str) -> None:
    async with everthread.open(database) as et:
        talk = await et.conversations.create(title="A long talk")
        budget = Budget(window=4_000, output_reserve=500)
        for number in range(100):
            await talk.append({"role": "user", "content": f"Remark {number}: " + "the weather is fine " * 10})
            context = await talk.context(system="Be brief.", budget=budget)
            await talk.append(await ask(context.messages))

        print("kept:", len([message async for message in talk.messages()]))
        print("sent in the last request, fewer than 120:", len(context.messages) < 120)
        print("chain verified:", (await et.verify()).ok)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///agent.db"))

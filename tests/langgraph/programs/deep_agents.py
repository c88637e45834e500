"""A deep agent that writes a file, has a subagent look something up, and reads the file again in the next process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from everthread.langgraph import EverthreadSaver


class Script(FakeMessagesListChatModel):
    """Says one thing after the other."""

    def bind_tools(self, tools: Any, **options: Any) -> Script:
        return self


def says(text: str, tool: str | None = None, **arguments: Any) -> AIMessage:
    calls = [] if tool is None else [{"id": f"call-{tool}-{text}", "name": tool, "args": arguments}]
    return AIMessage(text, tool_calls=calls)


FIRST = [
    says("one", "write_file", file_path="/notes.md", content="zebras are striped"),
    says("two", "task", subagent_type="researcher", description="what do they eat?"),
    says("Written."),
]
NEXT = [says("three", "read_file", file_path="/notes.md"), says("Read.")]


async def main(url: str) -> None:
    async with EverthreadSaver.from_url(url) as saver:
        config: Any = {"configurable": {"thread_id": "zebras"}}
        is_first = await saver.aget(config) is None
        researcher: Any = {
            "name": "researcher",
            "description": "Looks things up.",
            "system_prompt": "Look it up.",
            "model": Script(responses=[AIMessage("They eat grass.")]),
        }
        agent: Any = create_deep_agent(
            model=Script(responses=FIRST if is_first else NEXT), subagents=[researcher], checkpointer=saver
        )
        done = await agent.ainvoke({"messages": [("user", "go on")]}, config)
        results = [message.text for message in done["messages"] if message.type == "tool"]
        last = results[-1].splitlines()[-1].lstrip(" 0123456789\t")  # how lines are numbered differs between versions
        print(f"{len(done['messages'])} messages, {list(done['files'])}; {last}")


asyncio.run(main(sys.argv[1]))

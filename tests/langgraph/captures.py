"""The captures that scenes are played under, and what the log then holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.scenarios import Config, Rig
from everthread import Conversation, Everthread
from everthread.langgraph import ArchivingSaver, archive_stream


def archiving(et: Everthread, middleware: Sequence[AgentMiddleware[Any, Any, Any]] = ()) -> Rig:
    """A saver that archives, and perhaps middleware."""
    return Rig(ArchivingSaver(InMemorySaver(), et), middleware)


def listening(et: Everthread, rig: Rig) -> Rig:
    """The same, with its streams archived too."""

    async def run(agent: Any, given: Any, config: Config, options: Mapping[str, Any]) -> None:
        stream = agent.astream(given, config, stream_mode="values", subgraphs=True, **options)
        async for _ in archive_stream(et, stream, config["configurable"]["thread_id"]):
            pass

    rig.run = run
    return rig


async def texts_in(conversation: Conversation, branch: str | None = None) -> list[str]:
    return [message.text async for message in conversation.messages(branch=branch)]


async def paths_of(conversation: Conversation) -> list[list[str]]:
    """What each branch tells."""
    return [await texts_in(conversation, branch.id) async for branch in conversation.branches()]


async def children_of(conversation: Conversation) -> list[list[str]]:
    """What each subagent was told and said, the first one first."""
    return [await texts_in(child) async for child in conversation.children()][::-1]

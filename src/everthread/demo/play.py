"""Plays the demo: a scripted agent holds the conversation under LangChain's summarising middleware, everthread captures
the stream, and afterwards the messages are counted, verified and searched.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from everthread import bootstrap
from everthread.conversation import Conversation
from everthread.core.ids import new_id
from everthread.core.nouns import Message
from everthread.demo.report import DemoResult, DemoSearch
from everthread.demo.story import SEARCHES, StoryTurn, turns
from everthread.demo.tools import TOOLS
from everthread.instance import Everthread
from everthread.langgraph import archive_stream
from everthread.settings import masked
from everthread.testing.scripted import Reply, ScriptedModel, Step

TRIGGER_MESSAGES = 24
KEEP_MESSAGES = 8


class MessageRecorder(AgentMiddleware[Any, Any, Any]):
    """Records every message as it is said: the ground truth for checkpoint and log."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[BaseMessage] = []

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        self.messages.append(state["messages"][-1])

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        answer = await handler(request)
        if isinstance(answer, ToolMessage):
            self._insert_result(answer)
        return answer

    def _insert_result(self, answer: ToolMessage) -> None:
        """Tools called in parallel finish in any order; their results are put in the order of the calls."""
        called = max(index for index, message in enumerate(self.messages) if isinstance(message, AIMessage))
        order = [call["id"] for message in self.messages[called:] for call in getattr(message, "tool_calls", ())]
        answers = [message for message in self.messages[called:] if isinstance(message, ToolMessage)] + [answer]
        answers.sort(key=lambda one: order.index(one.tool_call_id))
        self.messages[called + 1 :] = answers


class DemoAgent:
    """A LangChain agent whose middleware summarises, and removes what it has summarised from the state."""

    def __init__(self, story: Sequence[StoryTurn], thread_id: str) -> None:
        self.thread_id = thread_id
        self.recorder = MessageRecorder()
        self.summariser = ScriptedModel(_summary)
        self._story = story
        self._config: Any = {"configurable": {"thread_id": thread_id}}
        self._agent: Any = create_agent(
            ScriptedModel([step for turn in story for step in _steps(turn)]),
            TOOLS,
            middleware=[
                self.recorder,
                SummarizationMiddleware(
                    self.summariser, trigger=("messages", TRIGGER_MESSAGES), keep=("messages", KEEP_MESSAGES)
                ),
            ],
            checkpointer=InMemorySaver(),
        )

    async def play(self, et: Everthread) -> None:
        """Hold the whole conversation, capturing it into the log."""
        for turn in self._story:
            question = HumanMessage(turn.question)
            self.recorder.messages.append(question)
            stream = self._agent.astream({"messages": [question]}, self._config, stream_mode="values", subgraphs=True)
            async for _ in archive_stream(et, stream, self.thread_id):
                pass

    async def checkpoint(self) -> list[BaseMessage]:
        """The messages that the framework's own state still has."""
        state = await self._agent.aget_state(self._config)
        messages: list[BaseMessage] = state.values["messages"]
        return messages


def _steps(turn: StoryTurn) -> Iterator[Step]:
    thinking = turn.thinking
    for calls in (turn.calls, turn.then):
        if calls:
            yield Reply(calls=calls, thinking=thinking)
            thinking = ""
    yield Reply(text=turn.answer, thinking=thinking)


def _summary(messages: Sequence[BaseMessage]) -> str:
    """A typical summary: the gist, without the details that are asked for at the end."""
    return "A family plans a journey by train through the southwest of China; trains and weather were looked up."


async def run(database_url: str | None = None) -> DemoResult:
    """Hold the conversation and measure what became of it; without a URL in a temporary SQLite file."""
    if database_url is not None:
        return await _play(database_url, masked(database_url))
    with tempfile.TemporaryDirectory(prefix="everthread-demo-") as folder:
        return await _play(f"sqlite:///{Path(folder) / 'demo.db'}", None)


async def _play(url: str, shown: str | None) -> DemoResult:
    start = time.monotonic()
    story = list(turns())
    agent = DemoAgent(story, f"demo-{new_id()}")
    async with bootstrap.open(url) as et:
        await agent.play(et)
        conversation = await et.conversations.get(agent.thread_id)
        history = [message async for message in conversation.messages()]
        left = {message.id for message in await agent.checkpoint()}
        report = await et.verify()
        return DemoResult(
            conversation_id=conversation.id,
            database=shown,
            turns=len(story),
            said=len(agent.recorder.messages),
            in_checkpoint=sum(message.id in left for message in agent.recorder.messages),
            in_log=len({message.id for message in history} & {message.id for message in agent.recorder.messages}),
            is_exact=_is_exact(history, agent.recorder.messages),
            summaries=len(agent.summariser.requests),
            verified_entries=report.entries,
            is_verified=report.ok,
            searches=[await _search(et, conversation, query, left) for query in SEARCHES],
            seconds=round(time.monotonic() - start, 2),
        )


def _is_exact(history: Sequence[Message], heard: Sequence[BaseMessage]) -> bool:
    return [(message.id, message.text) for message in history] == [(message.id, message.text) for message in heard]


async def _search(et: Everthread, conversation: Conversation, query: str, left: set[str | None]) -> DemoSearch:
    hits = await et.search(query, conversation=conversation.id, limit=1)
    if not hits:
        return DemoSearch(query=query, seq=0, role="", text="", in_checkpoint=False)
    found = await conversation.message(hits[0].id)
    return DemoSearch(query=query, seq=found.seq, role=found.role, text=found.text, in_checkpoint=found.id in left)

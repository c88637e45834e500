"""Agents that tests listen to, and a recorder that hears all they say without looking at any log."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from everthread import Conversation, Everthread
from everthread.demo.play import MessageRecorder
from everthread.langgraph import archive_stream
from everthread.testing import Reply, ScriptedModel


@tool
async def look_up(word: str) -> str:
    """What is known about a word."""
    return f"known about {word}"


def two_look_ups(messages: Sequence[BaseMessage]) -> Reply:
    """Ask two tools at once for every question, then answer."""
    if isinstance(messages[-1], ToolMessage):
        return Reply(text=f"so much for {messages[-1].text}")
    return Reply(text="let me see", calls=[("look_up", {"word": messages[-1].text}), ("look_up", {"word": "life"})])


class Talk:
    """A thread of an agent whose middleware destroys its history, and all that was really said in it."""

    def __init__(
        self,
        et: Everthread,
        thread_id: str = "talk",
        *,
        model: ScriptedModel | None = None,
        trigger: int = 20,
        middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    ) -> None:
        self.recorder = MessageRecorder()
        self.thread_id = thread_id
        self.config: Any = {"configurable": {"thread_id": thread_id}, "recursion_limit": 1000}
        self._et = et
        summariser = SummarizationMiddleware(
            ScriptedModel(lambda messages: "in short"), trigger=("messages", trigger), keep=("messages", 6)
        )
        self.agent: Any = create_agent(
            model or ScriptedModel(two_look_ups),
            [look_up],
            middleware=[self.recorder, summariser, *middleware],
            checkpointer=InMemorySaver(),
        )

    async def ask(self, question: str) -> None:
        """One turn, captured."""
        message = HumanMessage(question)
        self.recorder.messages.append(message)
        await self.listen(self.stream(message))

    def stream(self, *messages: BaseMessage) -> AsyncIterable[Any]:
        return archive_stream(self._et, self.bare_stream(*messages), self.thread_id)

    def bare_stream(self, *messages: BaseMessage) -> AsyncIterable[Any]:
        events: AsyncIterable[Any] = self.agent.astream(
            {"messages": list(messages)}, self.config, stream_mode="values", subgraphs=True
        )
        return events

    @staticmethod
    async def listen(stream: AsyncIterable[Any]) -> list[Any]:
        return [event async for event in stream]

    async def checkpoint(self) -> list[BaseMessage]:
        state = await self.agent.aget_state(self.config)
        found: list[BaseMessage] = state.values["messages"]
        return found

    async def conversation(self) -> Conversation:
        return await self._et.conversations.get(self.thread_id)


async def said_in(conversation: Conversation) -> list[tuple[str, str]]:
    """What the log holds, each with its id."""
    return [(message.id, message.text) async for message in conversation.messages()]


def said_by(messages: Sequence[BaseMessage]) -> list[tuple[str | None, str]]:
    return [(message.id, message.text) for message in messages]


def last_answer(messages: Sequence[BaseMessage]) -> AIMessage:
    return next(message for message in reversed(messages) if isinstance(message, AIMessage))

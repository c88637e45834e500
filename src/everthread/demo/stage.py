"""Where the demo plays: a LangChain agent that forgets, a capture beside it, and a witness that trusts neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from everthread.demo.story import Turn
from everthread.demo.tools import TOOLS
from everthread.instance import Everthread
from everthread.langgraph import archive_stream
from everthread.testing.scripted import Reply, ScriptedModel, Step

TRIGGER_MESSAGES = 24
KEEP_MESSAGES = 8


class Witness(AgentMiddleware[Any, Any, Any]):
    """Hears every message when it is said: the ground truth that checkpoint and log are measured against."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[BaseMessage] = []

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        self.heard.append(state["messages"][-1])

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        answer = await handler(request)
        if isinstance(answer, ToolMessage):
            self._hear(answer)
        return answer

    def _hear(self, answer: ToolMessage) -> None:
        """Tools called together end in any order; their answers stand in the order of the calls."""
        called = max(place for place, message in enumerate(self.heard) if isinstance(message, AIMessage))
        order = [call["id"] for message in self.heard[called:] for call in getattr(message, "tool_calls", ())]
        answers = [message for message in self.heard[called:] if isinstance(message, ToolMessage)] + [answer]
        answers.sort(key=lambda one: order.index(one.tool_call_id))
        self.heard[called + 1 :] = answers


class Stage:
    """An agent whose middleware removes what it has summarised from its state, as LangChain's does."""

    def __init__(self, story: Sequence[Turn], thread_id: str) -> None:
        self.thread_id = thread_id
        self.witness = Witness()
        self.summariser = ScriptedModel(_summary)
        self._story = story
        self._config: Any = {"configurable": {"thread_id": thread_id}}
        self._agent: Any = create_agent(
            ScriptedModel([step for turn in story for step in _steps(turn)]),
            TOOLS,
            middleware=[
                self.witness,
                SummarizationMiddleware(
                    self.summariser, trigger=("messages", TRIGGER_MESSAGES), keep=("messages", KEEP_MESSAGES)
                ),
            ],
            checkpointer=InMemorySaver(),
        )

    async def play(self, et: Everthread) -> None:
        """Hold the whole conversation, captured into the log."""
        for turn in self._story:
            question = HumanMessage(turn.question)
            self.witness.heard.append(question)
            stream = self._agent.astream({"messages": [question]}, self._config, stream_mode="values", subgraphs=True)
            async for _ in archive_stream(et, stream, self.thread_id):
                pass

    async def checkpoint(self) -> list[BaseMessage]:
        """The messages that the framework's own state still has."""
        state = await self._agent.aget_state(self._config)
        messages: list[BaseMessage] = state.values["messages"]
        return messages


def _steps(turn: Turn) -> Iterator[Step]:
    thinking = turn.thinking
    for calls in (turn.calls, turn.then):
        if calls:
            yield Reply(calls=calls, thinking=thinking)
            thinking = ""
    yield Reply(text=turn.answer, thinking=thinking)


def _summary(messages: Sequence[BaseMessage]) -> str:
    """As summaries go: it has the gist, and not the detail that is asked for in the end."""
    return "A family plans a journey by train through the southwest of China; trains and weather were looked up."

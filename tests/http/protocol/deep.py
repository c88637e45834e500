"""A deep agent that has one subagent; both say what they are told to."""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class _Model(FakeMessagesListChatModel):
    """Says the first until a tool has answered, and then the last."""

    def bind_tools(self, tools: Any, **options: Any) -> _Model:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        answered = any(isinstance(message, ToolMessage) for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self.responses[-1 if answered else 0].model_copy())])


_CALL = {"id": "call-1", "name": "task", "args": {"subagent_type": "researcher", "description": "look it up"}}
graph = create_deep_agent(
    model=_Model(responses=[AIMessage("", tool_calls=[_CALL]), AIMessage("All done.")]),
    subagents=[
        {
            "name": "researcher",
            "description": "Looks things up.",
            "system_prompt": "Look it up.",
            "model": _Model(responses=[AIMessage("Found.")]),
        }
    ],
)

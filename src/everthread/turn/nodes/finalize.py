"""There is an answer when this node is left: at the limit of loops, or where the model said nothing, it is asked once
more, with no tools to call."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from everthread.turn.asking import ask
from everthread.turn.nodes.plan import calls_of
from everthread.turn.scene import Scene
from everthread.turn.state import AppState

NO_ANSWER = "(The model gave no answer. What it did is above; ask again to go on.)"


async def finalize(state: AppState, scene: Scene, config: RunnableConfig) -> dict[str, Any]:
    """The answer in words."""
    newest = state["messages"][-1]
    if isinstance(newest, AIMessage) and not calls_of(newest) and newest.text.strip():
        return {}
    message = await ask(state, scene, config, (), must_answer=True)
    if calls_of(message) or not message.text.strip():
        message = message.model_copy(
            update={"content": message.text.strip() or NO_ANSWER, "tool_calls": [], "invalid_tool_calls": []}
        )
    return {"messages": [message], "loops": state.get("loops", 0) + 1}

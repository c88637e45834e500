"""The model is asked what to do next: it answers, or it calls tools."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from everthread.core.turn_events import Compacted
from everthread.turn.asking import ask
from everthread.turn.requests import offered_tools
from everthread.turn.scene import Scene
from everthread.turn.state import AppState


async def plan(state: AppState, scene: Scene, config: RunnableConfig) -> dict[str, Any]:
    """One call of the model. A message that calls tools is finished and enters the log here; an answer waits for what
    `persist` adds to it."""
    told = await tell_of_summaries(state, scene)
    message = await ask(state, scene, config, offered_tools(state, scene))
    if calls_of(message):
        await scene.say(message)
        scene.utterance = None
    return {"messages": [message], "loops": state.get("loops", 0) + 1, **told}


def calls_of(message: object) -> list[dict[str, Any]]:
    """The calls of a message, those that cannot be read too."""
    if not isinstance(message, AIMessage):
        return []
    broken = [{"args": {}, **call, "is_broken": True} for call in message.invalid_tool_calls]
    return [*map(dict, message.tool_calls), *broken]


async def tell_of_summaries(state: AppState, scene: Scene) -> dict[str, Any]:
    """Say which summaries are new since the last turn."""
    if scene.first is None:
        return {}
    ids = list(scene.first.context.manifest.summary_ids)
    fresh = [id for id in ids if id not in state.get("conversation_summary", ())]
    if fresh:
        covered = [await scene.conversation.compaction(id) for id in fresh]
        messages = sum(one.original_count - one.new_count + 1 for one in covered)
        scene.event_log.emit(lambda number: Compacted(number=number, ids=fresh, messages=messages))
    return {"conversation_summary": ids} if fresh or ids != state.get("conversation_summary") else {}

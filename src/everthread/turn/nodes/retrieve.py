"""Passages of the knowledge base that `route` chose, within a time limit; without an answer the turn goes on."""

from __future__ import annotations

import asyncio
from typing import Any

from everthread.core.errors import EverthreadError
from everthread.core.turn_events import Recall
from everthread.turn.scene import Scene
from everthread.turn.state import AppState

_MOST_PASSAGES = 6


async def retrieve(state: AppState, scene: Scene) -> dict[str, Any]:
    """What documents say to the question."""
    knowledge, collection = scene.agent.knowledge, state.get("kb_prefix")
    if knowledge is None or collection is None or not state.get("use_retrieval"):
        return {}
    try:
        async with asyncio.timeout(scene.agent.limits.retrieve_seconds):
            found = await knowledge.search(scene.conversation.owner, collection, scene.question)
    except (EverthreadError, TimeoutError):
        scene.event_log.emit(lambda number: Recall(number=number, degraded=["retrieve"]))
        return {"degraded": ["retrieve"]}
    passages = [passage._asdict() for passage in found[:_MOST_PASSAGES]]
    if passages:
        scene.event_log.emit(lambda number: Recall(number=number, passages=len(passages)))
    return {"retrieval_results": passages}

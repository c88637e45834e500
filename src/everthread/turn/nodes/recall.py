"""What the model will see of the past: the window, the summaries, and what the question brings back from before.

Asked once per turn and within a time limit. When it fails or takes too long, the turn goes on with the window and the
summaries alone, and says so.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from langchain_core.messages import SystemMessage

from everthread.context.assemble import Context
from everthread.core.errors import ContextOverflow, EverthreadError, NotFound
from everthread.core.events import Recalled
from everthread.core.turn_events import Recall
from everthread.turn.requests import context_for, request_messages
from everthread.turn.scene import FirstRequest, Scene
from everthread.turn.state import AppState

_NOT_OF_RECALL = (ContextOverflow, NotFound)
"""What would fail without it too."""


async def recall(state: AppState, scene: Scene) -> dict[str, Any]:
    """The first request of the turn, with what was recalled for it."""
    since = time.perf_counter()
    context, degraded = await _made(state, scene)
    if _is_asked(scene):
        found = len(context.manifest.recalled)
        scene.agent.et.hear(_recalled(scene, found, time.perf_counter() - since, degraded=bool(degraded)))
    request = request_messages(context, "")
    scene.first = FirstRequest(context, request)
    window = [message for message in request if not isinstance(message, SystemMessage)]
    seqs = [passage[0] for passage in context.manifest.recalled]
    if seqs or degraded:
        scene.event_log.emit(lambda number: Recall(number=number, seqs=seqs, degraded=degraded))
    return {"messages": window, "episodic_memory": seqs, **({"degraded": degraded} if degraded else {})}


def _is_asked(scene: Scene) -> bool:
    return bool(scene.switches.recall and scene.question.strip())


def _recalled(scene: Scene, found: int, seconds: float, *, degraded: bool) -> Recalled:
    return Recalled(
        owner=scene.ref.owner,
        conversation_id=scene.ref.id,
        turn_id=scene.turn.id,
        found=found,
        seconds=round(seconds, 4),
        degraded=degraded,
    )


async def _made(state: AppState, scene: Scene) -> tuple[Context, list[str]]:
    if _is_asked(scene):
        try:
            async with asyncio.timeout(scene.agent.limits.recall_seconds):
                return await context_for(state, scene, query=scene.question), []
        except _NOT_OF_RECALL:
            raise
        except (EverthreadError, TimeoutError):
            return await context_for(state, scene, query=None), ["recall"]
    return await context_for(state, scene, query=None), []

"""What is kept of the turn beside its messages: the answer with its result metadata, and what is to be done later.

It is decided here and committed in one transaction, with the turn's state, once the graph's checkpoint stands
(`run.py`, step 8): a turn that waits begins after it, and finds the state of this one.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from everthread.core.turns import MESSAGE_KEY
from everthread.turn.results import FIELDS
from everthread.turn.scene import Outcome, Scene
from everthread.turn.state import AppState


async def persist(state: AppState, scene: Scene) -> dict[str, Any]:
    """The answer, as it will stand in the log."""
    answer = state["messages"][-1]
    assert isinstance(answer, AIMessage)
    about = {**answer.additional_kwargs.get(MESSAGE_KEY, {}), "manifests": scene.manifests}
    if result := {name: value for name, value in state.get("result", {}).items() if name in FIELDS}:
        about["result"] = result
    if degraded := state.get("degraded"):
        about["degraded"] = degraded
    if scene.subagents:
        about["subagents"] = scene.subagents
    kept = answer.model_copy(update={"additional_kwargs": {**answer.additional_kwargs, MESSAGE_KEY: about}})
    scene.outcome = Outcome(answer=kept)
    return {"messages": [kept]}

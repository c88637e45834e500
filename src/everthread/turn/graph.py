"""The graph of a turn, drawn once per agent.

route ─▶ recall ∥ retrieve ─▶ plan ⇄ tools ─▶ finalize ─▶ persist
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from everthread.core.turn_events import StateChanged
from everthread.turn.nodes.finalize import finalize
from everthread.turn.nodes.persist import persist
from everthread.turn.nodes.plan import calls_of, plan
from everthread.turn.nodes.recall import recall
from everthread.turn.nodes.retrieve import retrieve
from everthread.turn.nodes.route import route
from everthread.turn.nodes.tools import tools
from everthread.turn.scene import Scene
from everthread.turn.state import AppState
from everthread.turn.tracing import span

TurnGraph: TypeAlias = "CompiledStateGraph[AppState, Scene, AppState, AppState]"
NODES: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "route": route,
    "recall": recall,
    "retrieve": retrieve,
    "plan": plan,
    "tools": tools,
    "finalize": finalize,
    "persist": persist,
}


def built(saver: BaseCheckpointSaver[Any]) -> TurnGraph:
    """The graph over a checkpointer."""
    graph = StateGraph(AppState, context_schema=Scene)
    for name, node in NODES.items():
        graph.add_node(name, observed(name, node))
    graph.add_edge(START, "route")
    graph.add_edge("route", "recall")
    graph.add_edge("route", "retrieve")
    graph.add_edge(["recall", "retrieve"], "plan")
    graph.add_conditional_edges("plan", _at_once(after_plan), ["tools", "finalize"])
    graph.add_conditional_edges("tools", _at_once(after_tools), ["plan", "finalize"])
    graph.add_edge("finalize", "persist")
    graph.add_edge("persist", END)
    return graph.compile(checkpointer=saver, name="everthread")


def after_plan(state: AppState) -> str:
    """Tools, if the model called any."""
    return "tools" if calls_of(state["messages"][-1]) else "finalize"


def after_tools(state: AppState) -> str:
    """Ask again, unless it was asked often enough."""
    return "plan" if state["loops"] < state["max_loops"] else "finalize"


def _at_once(choose: Callable[[AppState], str]) -> Callable[[AppState], Awaitable[str]]:
    """As LangGraph runs it in the loop: a function that is not async would get a thread."""

    async def chosen(state: AppState) -> str:
        return choose(state)

    chosen.__name__ = choose.__name__
    return chosen


def observed(name: str, node: Callable[..., Awaitable[dict[str, Any]]]) -> Any:
    """A node with a span around it, that tells when it has ended."""
    takes_config = "config" in signature(node).parameters

    async def run(state: AppState, config: RunnableConfig, runtime: Runtime[Scene]) -> dict[str, Any]:
        scene = runtime.context
        began = time.perf_counter()
        about = {"everthread.conversation": scene.conversation.id, "everthread.turn": scene.turn.id}
        with span(f"everthread.turn.{name}", about):
            changed = await (node(state, scene, config) if takes_config else node(state, scene))
        details = _details(changed, time.perf_counter() - began, scene) if state.get("debug") else {}
        loops = changed.get("loops", state.get("loops", 0))
        scene.event_log.emit(lambda number: StateChanged(number=number, node=name, loops=loops, details=details))
        return changed

    run.__name__ = name
    return run


def _details(changed: dict[str, Any], seconds: float, scene: Scene) -> dict[str, Any]:
    """For `debug`: how long it took, what it changed, and which request was last made. Messages are told by others."""
    return {
        "seconds": round(seconds, 4),
        "changed": sorted(changed),
        "update": {name: value for name, value in changed.items() if name != "messages"},
        "manifest": scene.manifests[-1] if scene.manifests else None,
    }

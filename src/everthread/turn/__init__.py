"""One turn of a conversation, as a LangGraph graph. Open `run.py` first: it reads as the story of one message.

    route ─▶ recall ∥ retrieve ─▶ plan ⇄ tools ─▶ finalize ─▶ persist

Nothing here is imported with `everthread` itself: LangGraph is an extra (`everthread[agent]`).
"""

from __future__ import annotations

from everthread.turn.agent import Agent, AgentType, Limits
from everthread.turn.options import Options
from everthread.turn.results import Result, result_of
from everthread.turn.run import begin_turn, follow, run_turn
from everthread.turn.scene import Scene, current
from everthread.turn.state import AppState
from everthread.turn.switches import Switches

__all__ = [
    "Agent",
    "AgentType",
    "AppState",
    "Limits",
    "Options",
    "Result",
    "Scene",
    "Switches",
    "begin_turn",
    "current",
    "follow",
    "result_of",
    "run_turn",
]

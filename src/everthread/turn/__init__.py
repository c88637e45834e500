"""One turn of a conversation, as a LangGraph graph. Open `run.py` first: it tells the way of one message.

    route ─▶ recall ∥ retrieve ─▶ plan ⇄ tools ─▶ finalize ─▶ persist

Nothing here is imported with `everthread` itself: LangGraph is an extra (`everthread[agent]`).
"""

from __future__ import annotations

from everthread.turn.agent import (
    Agent,
    AgentType,
    ChatModel,
    Features,
    KnowledgeSource,
    ModelProvider,
    RetrievedPassage,
    ToolProvider,
    TurnLimits,
)
from everthread.turn.request import TurnOptions
from everthread.turn.result import ResultMetadata, result_metadata
from everthread.turn.run import begin_turn, follow, run_turn
from everthread.turn.skills import SkillSet
from everthread.turn.state import AppState
from everthread.turn.turn_context import TurnContext, current

__all__ = [
    "Agent",
    "AgentType",
    "AppState",
    "ChatModel",
    "Features",
    "KnowledgeSource",
    "ModelProvider",
    "ResultMetadata",
    "RetrievedPassage",
    "SkillSet",
    "ToolProvider",
    "TurnContext",
    "TurnLimits",
    "TurnOptions",
    "begin_turn",
    "current",
    "follow",
    "result_metadata",
    "run_turn",
]

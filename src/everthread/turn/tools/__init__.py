"""What a model may do in a turn: `make_tools` makes the tools. Which of them are offered, `graph.route` decides."""

from __future__ import annotations

from everthread.turn.tools.provider import make_tools
from everthread.turn.tools.tool_context import StateChanges, Todo, ToolContext, WorkspaceFiles

__all__ = ["StateChanges", "Todo", "ToolContext", "WorkspaceFiles", "make_tools"]

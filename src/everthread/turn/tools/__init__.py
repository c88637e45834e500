"""What a model may do in a turn: tools made for its desk (`tools_of`). Which it is offered, `nodes/route.py` says."""

from __future__ import annotations

from everthread.turn.tools.desk import Desk, Files, Notes, Todo
from everthread.turn.tools.making import tools_of

__all__ = ["Desk", "Files", "Notes", "Todo", "tools_of"]

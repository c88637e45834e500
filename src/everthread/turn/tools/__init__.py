"""What a model may do in a turn: tools made for its desk (`tools_of`), and which of them it is offered (`choose`)."""

from __future__ import annotations

from everthread.turn.tools.choosing import Chosen, choose, mentions
from everthread.turn.tools.desk import Desk, Files, Notes, Todo
from everthread.turn.tools.making import tools_of

__all__ = ["Chosen", "Desk", "Files", "Notes", "Todo", "choose", "mentions", "tools_of"]

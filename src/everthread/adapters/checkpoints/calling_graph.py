"""Which graph reads from the checkpointer: the nearest one among the calling frames. A trick, kept here alone.

What it gives: a graph that is compiled with `EverthreadSaver(et)` gets its own types back with no setting, also after
a restart. LangGraph hands a checkpointer nothing of the graph; only under `LANGGRAPH_STRICT_MSGPACK=true` does it name
types, and then not those of sequences, named tuples or structured answers (langgraph 1.2). Every run and every look at
a state begins with a read that `Pregel` makes itself, in its caller's thread. It costs 3 to 8 µs for each, by how deep
the calls are.

To remove it: set `ENABLED` to False, then name the types (`EverthreadSaver(et, allowed=[…])`) or set that variable, and
delete this module.
"""

from __future__ import annotations

import sys
from typing import Any

from langgraph.pregel import Pregel

ENABLED = True
_MAX_FRAMES = 60
_PREGEL = Pregel.__module__


def calling_graph() -> Pregel[Any, Any, Any, Any] | None:
    """The graph that is reading; None when the caller is no graph."""
    frame = sys._getframe(1) if ENABLED else None
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return None
        if frame.f_globals.get("__name__") == _PREGEL and isinstance(graph := frame.f_locals.get("self"), Pregel):
            return graph
        frame = frame.f_back
    return None

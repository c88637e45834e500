"""All tools of one turn, made for its desk."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.tools import BaseTool

from everthread.turn.tools import commands, files, own, past, plain, plots, remembering, skilled
from everthread.turn.tools.calling import guarded
from everthread.turn.tools.desk import Desk

_FAMILIES = (plain, files, past, remembering, plots, skilled, commands)


def tools_of(desk: Desk) -> Sequence[BaseTool]:
    """Ours, those made elsewhere for this turn, then the users' own; of two by one name the first stays."""
    made = [tool for family in _FAMILIES for tool in family.tools(desk)]
    found: dict[str, BaseTool] = {}
    theirs = [guarded(tool, desk.policy.timeout_seconds) for tool in desk.more]
    for tool in (*made, *theirs, *own.tools(desk)):
        found.setdefault(tool.name, tool)
    return tuple(found.values())

"""The tool by which a model reads a skill: its name is known, its text is not before it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread.core.errors import NotFound
from everthread.turn.skills import SkillBook, told
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool


def tools(desk: Desk) -> Sequence[BaseTool]:
    if not desk.skills:
        return []
    known = "\n".join(f"- {skill.name}: {skill.description}" for skill in desk.skills)
    return [as_tool(use_skill, desk=desk, description=f"{use_skill.__doc__}\n\n{known}")]


async def use_skill(
    desk: Desk,
    name: str,
    file: Annotated[str, Field(description="a file that lies beside it; empty for the skill itself")] = "",
) -> str:
    """Read how to do one kind of work before doing it. The skills there are:"""
    skill = SkillBook(skills=tuple(desk.skills)).get(name.removeprefix("@"))
    if skill is None:
        raise NotFound(f"there is no skill {name!r}; there are: {', '.join(one.name for one in desk.skills)}")
    if file:
        return await asyncio.to_thread(skill.read, file)
    desk.notes.activate(skill)
    return await asyncio.to_thread(told, skill)

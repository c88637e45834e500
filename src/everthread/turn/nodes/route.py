"""The first node: who answers, with which tools, and whether a knowledge base is asked."""

from __future__ import annotations

import asyncio
import re
from fnmatch import fnmatchcase
from typing import Any

from langchain_core.tools import BaseTool

from everthread.core.errors import EverthreadError
from everthread.core.tools import WHEN_NAMED
from everthread.turn.agent import GENERAL
from everthread.turn.scene import Scene
from everthread.turn.state import AppState

_MENTION = re.compile(r"(?<![\w@])@([A-Za-z][\w.-]{0,63})")


async def route(state: AppState, scene: Scene) -> dict[str, Any]:
    """Everything that is decided once, before anything is read."""
    kind = state.get("agent_type") or GENERAL
    mentioned = mentions(scene.question)
    scene.skills = scene.agent.skills.named([*mentioned, state.get("active_skill")])
    prefix, degraded = await _knowledge_base(state, scene)
    return {
        "agent_type": kind,
        "mentioned_agents": mentioned,
        "allowed_tools": allowed(state, scene, kind, mentioned),
        "kb_prefix": prefix,
        "use_retrieval": prefix is not None,
        "loops": 0,
        **({"degraded": degraded} if degraded else {}),
    }


def mentions(text: str) -> list[str]:
    """What a text names with an @, each once; no addresses of mail."""
    return list(dict.fromkeys(found.rstrip(".-") for found in _MENTION.findall(text)))


def allowed(state: AppState, scene: Scene, kind: str, mentioned: list[str]) -> list[str]:
    """Which tools are offered: those of the agent's type, those the session keeps, those the request allows (by name,
    or by a pattern such as `notes_*`), those that are mentioned and those of the skills that it works by; in the order
    in which the agent has them. Where the type names none, these are all that need not be named."""
    base = scene.agent.type_named(kind).tools
    asked = [*state.get("persistent_tools", ()), *state.get("allowed_tools", ()), *mentioned]
    asked += [name for skill in scene.skills for name in skill.tools]

    def is_offered(tool: BaseTool) -> bool:
        is_standing = WHEN_NAMED not in (tool.tags or ()) if base is None else tool.name in base
        return is_standing or any(fnmatchcase(tool.name, pattern) for pattern in asked)

    return [tool.name for tool in scene.tools() if is_offered(tool)]


async def _knowledge_base(state: AppState, scene: Scene) -> tuple[str | None, list[str]]:
    """The one that is named, else the one that fits; none where retrieval is off or does not answer in time."""
    is_off = not scene.switches.retrieval or state.get("use_retrieval") is False
    if is_off or scene.agent.knowledge is None or not scene.question.strip():
        return None, []
    if named := state.get("kb_prefix"):
        return named, []
    limit = scene.agent.limits.retrieve_seconds
    try:
        async with asyncio.timeout(limit):
            return await scene.agent.knowledge.route(scene.conversation.owner, scene.question), []
    except (EverthreadError, TimeoutError):
        return None, ["route"]

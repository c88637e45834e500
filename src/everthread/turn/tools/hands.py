"""The hands of an agent: every tool that its turns can use, put together once for a program (`turn.ports.Hands`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from everthread.core.tools import ToolPolicy
from everthread.turn.scene import Scene
from everthread.turn.skills import SkillBook
from everthread.turn.tools.desk import Desk, Files, Notes
from everthread.turn.tools.making import tools_of
from everthread.turn.tools.mcp import McpServers, servers_in


@dataclass(slots=True, kw_only=True)
class AllHands:
    """Ours, the users' own, and those of MCP servers."""

    policy: ToolPolicy = field(default_factory=ToolPolicy)
    book: SkillBook = field(default_factory=SkillBook)
    servers: McpServers | None = None
    _theirs: Sequence[BaseTool] = ()

    @classmethod
    def of(cls, policy: ToolPolicy, *, book: SkillBook, mcp_file: Path | None = None) -> AllHands:
        """With the MCP servers that a file names."""
        return cls(policy=policy, book=book, servers=None if mcp_file is None else McpServers(servers_in(mcp_file)))

    def __call__(self, scene: Scene) -> Sequence[BaseTool]:
        """The tools of a turn; which of them are offered is the graph's to say."""
        et, conversation = scene.agent.et, scene.conversation
        desk = Desk(
            et=et,
            conversation=conversation,
            files=Files(et, conversation),
            notes=Notes(lambda: _last_state(scene)),
            policy=self.policy,
            skills=self.book.skills,
            more=self._theirs,
            uses_memory=scene.switches.memory,
            kb_prefix=scene.options.kb_prefix,
        )
        return tools_of(desk)

    async def prepare(self) -> None:
        """Before a turn: MCP servers that do not run are started. Making tools must not wait for them."""
        if self.servers is not None:
            self._theirs = await self.servers.tools()

    async def close(self) -> None:
        """End the servers."""
        if self.servers is not None:
            await self.servers.close()


async def _last_state(scene: Scene) -> Mapping[str, Any]:
    """What the turn before left."""
    config = RunnableConfig(configurable={"thread_id": scene.ref.id, "everthread_owner": scene.ref.owner})
    values: Mapping[str, Any] = (await scene.agent.graph.aget_state(config)).values
    return values

"""The hands of an agent: everything its turns can do, put together once for a program.

`Hands` gives a turn its tools and what its prompt says about skills. MCP servers are asked for their tools before a
turn begins (`refresh`), since making tools must not wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from everthread.conversation import Conversation
from everthread.core.tools import ToolPolicy
from everthread.instance import Everthread
from everthread.turn.skills import SHIPPED, Skill, SkillBook, listing, skills_in
from everthread.turn.tools.choosing import choose, mentions
from everthread.turn.tools.desk import Desk, Files, Notes
from everthread.turn.tools.making import tools_of
from everthread.turn.tools.mcp import McpServers, servers_in
from everthread.turn.tools.shaping import WHEN_NAMED
from everthread.turn.tools.skilled import told


@dataclass(slots=True, kw_only=True)
class Hands:
    """What all turns of a program can do."""

    policy: ToolPolicy = field(default_factory=ToolPolicy)
    book: SkillBook = field(default_factory=SkillBook)
    servers: McpServers | None = None
    _more: Sequence[BaseTool] = ()

    @classmethod
    def of(cls, policy: ToolPolicy, *, skills_dir: Path | None = None, mcp_file: Path | None = None) -> Hands:
        """With the shipped skills, those in a folder, and the MCP servers that a file names."""
        places = (SHIPPED,) if skills_dir is None else (SHIPPED, skills_dir)
        servers = None if mcp_file is None else McpServers(servers_in(mcp_file))
        return cls(policy=policy, book=skills_in(*places), servers=servers)

    async def refresh(self) -> None:
        """Before a turn: start the servers that do not run, and take their tools."""
        if self.servers is not None:
            self._more = await self.servers.tools()

    async def close(self) -> None:
        """End the servers."""
        if self.servers is not None:
            await self.servers.__aexit__(None, None, None)

    def tools(
        self,
        et: Everthread,
        conversation: Conversation,
        *,
        question: str = "",
        named: Sequence[str] = (),
        load: Callable[[], Awaitable[Mapping[str, Any]]] | None = None,
    ) -> Sequence[BaseTool]:
        """The tools of one turn, without those that must be named and are not."""
        desk = Desk(
            et=et,
            conversation=conversation,
            files=Files(et, conversation),
            notes=Notes(load),
            policy=self.policy,
            skills=self.book.skills,
            more=self._more,
        )
        asked = [*named, *mentions(question), *(name for skill in self.used(question) for name in skill.tools)]
        made = tools_of(desk)
        standing = [tool.name for tool in made if WHEN_NAMED not in (tool.tags or ())]
        return choose(made, allowed=[*standing, *asked]).tools

    def used(self, question: str, active: str | None = None) -> list[Skill]:
        """The skills that a question names, and the one that is active."""
        names = [*mentions(question), *([active] if active else [])]
        found = {skill.name: skill for name in names if (skill := self.book.get(name)) is not None}
        return list(found.values())

    def prompt(self, question: str, active: str | None = None) -> str:
        """What a request says of skills: the names of all, the text of those that are used."""
        return "\n\n".join(filter(None, [listing(self.book.skills), *map(told, self.used(question, active))]))

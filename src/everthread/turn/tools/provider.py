"""All tools of a turn: ours, those of MCP servers, the users' own. `DefaultTools` is what an agent has by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from everthread.core.tools import ToolPolicy
from everthread.turn.skills import SkillSet
from everthread.turn.tools import basics, commands, files, history_and_memory, plot, user_tools
from everthread.turn.tools.mcp import McpServers, load_servers
from everthread.turn.tools.tool_context import StateChanges, ToolContext, WorkspaceFiles
from everthread.turn.tools.wrap import guard
from everthread.turn.turn_context import TurnContext

_MODULES = (basics, files, history_and_memory, plot, commands)


def make_tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    """Ours, then the extra ones of this turn, then the users' own; of two with the same name the first stays."""
    ours = [tool for module in _MODULES for tool in module.tools(tool_context)]
    extra = [guard(tool, tool_context.policy.timeout_seconds) for tool in tool_context.extra_tools]
    by_name: dict[str, BaseTool] = {}
    for tool in (*ours, *extra, *user_tools.tools(tool_context)):
        by_name.setdefault(tool.name, tool)
    return tuple(by_name.values())


@dataclass(slots=True, kw_only=True)
class DefaultTools:
    """The tool provider of an agent that is given no other."""

    policy: ToolPolicy = field(default_factory=ToolPolicy)
    skills: SkillSet = field(default_factory=SkillSet)
    servers: McpServers | None = None
    _server_tools: Sequence[BaseTool] = ()

    @classmethod
    def create(cls, policy: ToolPolicy, *, skills: SkillSet, mcp_file: Path | None = None) -> DefaultTools:
        """With the MCP servers that a file names."""
        return cls(
            policy=policy, skills=skills, servers=None if mcp_file is None else McpServers(load_servers(mcp_file))
        )

    def __call__(self, ctx: TurnContext, /) -> Sequence[BaseTool]:
        """The tools of a turn; which of them are offered, the graph decides."""
        et, conversation = ctx.agent.et, ctx.conversation

        async def last_state() -> Mapping[str, Any]:
            """What the turn before left."""
            config = RunnableConfig(configurable={"thread_id": ctx.ref.id, "everthread_owner": ctx.ref.owner})
            values: Mapping[str, Any] = (await ctx.agent.graph.aget_state(config)).values
            return values

        return make_tools(
            ToolContext(
                et=et,
                conversation=conversation,
                files=WorkspaceFiles(et, conversation),
                state_changes=StateChanges(last_state),
                policy=self.policy,
                skills=self.skills.skills,
                extra_tools=self._server_tools,
                uses_memory=ctx.features.memory,
                kb_prefix=ctx.options.kb_prefix,
                has_read_documents=lambda: ctx.has_read_documents,
            )
        )

    async def prepare(self) -> None:
        """Before a turn: start the MCP servers that do not run, since making tools cannot wait for them."""
        if self.servers is not None:
            self._server_tools = await self.servers.tools()

    async def close(self) -> None:
        """Stop the servers."""
        if self.servers is not None:
            await self.servers.close()

"""The state of one chat: the conversation, the agent that answers in it, and the model behind it.

Nothing is printed here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import everthread
from everthread.cli.invocation import Invocation
from everthread.conversation import Conversation
from everthread.core.errors import Invalid, NotFound
from everthread.core.workspaces import Upload
from everthread.instance import MAX_PAGE, Everthread
from everthread.runs.leases import LiveRun
from everthread.turn.agent import Agent
from everthread.turn.run import begin_turn
from everthread.turn.skills import SkillSet
from everthread.turn.tools.provider import DefaultTools

if TYPE_CHECKING:
    from everthread.settings import Settings


_TITLE_CHARACTERS = 60
_LOOKED_AT = 1_000
"""Among so many of the newest conversations the last one is looked for."""


@dataclass(slots=True, kw_only=True)
class ChatSession:
    """One chat, which may go from conversation to conversation."""

    et: Everthread
    agent: Agent
    settings: Settings
    model: str | None = None
    skill: str | None = None
    conversation: Conversation | None = None
    """None until something is said: an empty chat leaves nothing behind."""
    handed_in: list[Upload] = field(default_factory=list)
    """Uploads that no message has told the model of yet."""
    known: list[Conversation] = field(default_factory=list)
    """Those that were last listed, by the numbers people type."""

    @property
    def owner(self) -> str:
        return self.settings.owner

    @property
    def book(self) -> SkillSet:
        return self.agent.skills

    def silent_servers(self) -> Mapping[str, str]:
        """MCP servers that give no tools, and why."""
        tools = self.agent.tools
        return tools.servers.problems if isinstance(tools, DefaultTools) and tools.servers is not None else {}

    async def ask(self, text: str) -> LiveRun:
        """Say something; what follows is told by the turn."""
        conversation = await self.started(text)
        told = [f"[uploaded: {one.path}, {one.mime}, {one.size_bytes:,} bytes]" for one in self.handed_in]
        live = await begin_turn(
            conversation,
            "\n".join([*told, text]),
            agent=self.agent,
            model=self.model,
            active_skill=self.skill,
            uploaded_files=[_as_file(upload) for upload in await self.uploads()],
        )
        self.handed_in = []
        return live

    async def started(self, text: str = "") -> Conversation:
        """The conversation, begun if there is none yet."""
        if self.conversation is None:
            title = " ".join(text.replace("\x00", "").split())[:_TITLE_CHARACTERS] or None
            self.conversation = await self.et.conversations.create(owner=self.owner, title=title)
        return self.conversation

    async def upload(self, file: Path) -> Upload:
        """Hand in a file; Invalid says why it cannot be taken."""
        try:
            body = await asyncio.to_thread(file.read_bytes)
        except OSError as problem:
            raise Invalid(f"{file} cannot be read: {problem.strerror}", field="file") from problem
        conversation = await self.started(file.name)
        workspace = await self.et.workspaces.open(conversation)
        try:
            upload = workspace.upload(file.name, body)
        finally:
            workspace.close()
        self.handed_in.append(upload)
        return upload

    async def uploads(self) -> Sequence[Upload]:
        conversation = await self.started()
        workspace = await self.et.workspaces.open(conversation)
        try:
            return workspace.uploads()
        finally:
            workspace.close()

    async def workspace_path(self) -> Path | None:
        if self.conversation is None:
            return None
        workspace = await self.et.workspaces.open(self.conversation)
        workspace.close()
        return workspace.path

    async def model_name(self) -> tuple[str, str | None]:
        """The name of the model that answers, and what its users must know of it."""
        chat_model = await self.agent.models.get(self.model, None)
        return chat_model.name, getattr(chat_model, "notice", None)

    async def todos(self) -> Sequence[Mapping[str, Any]]:
        """As the last turn left them."""
        if self.conversation is None:
            return ()
        config = {"configurable": {"thread_id": self.conversation.id, "everthread_owner": self.owner}}
        state = await self.agent.graph.aget_state(config)  # type: ignore[arg-type]
        return state.values.get("todos") or ()

    async def recent(self, limit: int = 15) -> list[Conversation]:
        """Conversations, the last used first; those of subagents are not among them."""
        page = await self.et.conversations.list(self.owner, limit=min(_LOOKED_AT, MAX_PAGE))
        own = [one for one in page.items if one.parent_id is None]
        self.known = sorted(own, key=lambda one: one.updated_at, reverse=True)[:limit]
        return self.known

    async def resume(self, name: str | None) -> Conversation:
        """Go on with another: by id, by the number it was listed with, or the last one."""
        if name is None:
            recent = await self.recent(1)
            if not recent:
                raise NotFound("there is no conversation to go on with; say something to begin one")
            self.conversation = recent[0]
        elif name.isdecimal() and 1 <= int(name) <= len(self.known):
            self.conversation = self.known[int(name) - 1]
        else:
            self.conversation = await self._named(name)
        self.skill, self.handed_in = None, []
        return self.conversation

    async def _named(self, name: str) -> Conversation:
        """By its id; a number that is none counts in the list as it is now."""
        try:
            return await self.et.conversations.get(name, self.owner)
        except NotFound as problem:
            if name.isdecimal() and not self.known and 1 <= int(name) <= len(await self.recent()):
                return self.known[int(name) - 1]
            raise NotFound(f"no conversation {name!r}; /resume lists those there are") from problem


def _as_file(upload: Upload) -> dict[str, Any]:
    return {"name": upload.name, "path": upload.path, "mime": upload.mime, "size_bytes": upload.size_bytes}


@asynccontextmanager
async def open_session(cli: Invocation, et: Everthread, model: str | None) -> AsyncIterator[ChatSession]:
    """A chat with everything at hand; turns whose process died are closed first."""
    agent = everthread.agent(et, settings=cli.settings)
    try:
        await agent.close_dead()
        yield ChatSession(et=et, agent=agent, settings=cli.settings, model=model)
    finally:
        if isinstance(agent.tools, DefaultTools):
            await agent.tools.close()

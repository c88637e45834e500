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
from everthread.core.errors import Invalid, NotFound
from everthread.core.imports import check_not_of_an_agent, imported_from
from everthread.core.nouns import MAX_PAGE
from everthread.imports.find import find_conversation
from everthread.instance import Everthread
from everthread.turn.run import begin_turn
from everthread.turn.tools.provider import DefaultTools

if TYPE_CHECKING:
    from everthread.conversation import Conversation
    from everthread.core.workspaces import Upload
    from everthread.runs.engine import LiveTurn
    from everthread.settings import Settings
    from everthread.turn.agent import Agent
    from everthread.turn.skills import SkillSet


_TITLE_CHARACTERS = 60


@dataclass(slots=True, kw_only=True)
class ChatSession:
    """One chat, which may move from conversation to conversation."""

    et: Everthread
    agent: Agent
    settings: Settings
    model: str | None = None
    skill: str | None = None
    conversation: Conversation | None = None
    """None until something is said: an empty chat leaves nothing behind."""
    known: list[Conversation] = field(default_factory=list)
    """The conversations last listed; people type their numbers."""

    @property
    def owner(self) -> str:
        return self.settings.owner

    @property
    def skills(self) -> SkillSet:
        return self.agent.skills

    def failed_servers(self) -> Mapping[str, str]:
        """MCP servers that provide no tools, and why."""
        tools = self.agent.tools
        return tools.servers.problems if isinstance(tools, DefaultTools) and tools.servers is not None else {}

    async def ask(self, text: str) -> LiveTurn:
        """Send a message; the turn tells what follows."""
        conversation = await self.ensure_conversation(text)
        return await begin_turn(conversation, text, agent=self.agent, model=self.model, active_skill=self.skill)

    async def ensure_conversation(self, text: str = "") -> Conversation:
        """The conversation, created if there is none yet."""
        if self.conversation is None:
            title = " ".join(text.replace("\x00", "").split())[:_TITLE_CHARACTERS] or None
            self.conversation = await self.et.conversations.create(owner=self.owner, title=title)
        return self.conversation

    async def upload(self, file: Path) -> Upload:
        """Upload a file; Invalid if it cannot be read or is refused."""
        try:
            body = await asyncio.to_thread(file.read_bytes)
        except OSError as problem:
            raise Invalid(f"{file} cannot be read: {problem.strerror}", field="file") from problem
        conversation = await self.ensure_conversation(file.name)
        workspace = await self.et.workspaces.open(conversation)
        try:
            return workspace.upload(file.name, body)
        finally:
            workspace.close()

    async def uploads(self) -> Sequence[Upload]:
        return await self.et.workspaces.uploads(await self.ensure_conversation())

    async def workspace_path(self) -> Path | None:
        if self.conversation is None:
            return None
        workspace = await self.et.workspaces.open(self.conversation)
        workspace.close()
        return workspace.path

    async def model_name(self) -> tuple[str, str | None]:
        """The name of the model, and a notice its users should see."""
        chat_model = await self.agent.models.get(self.model, None)
        return chat_model.name, getattr(chat_model, "notice", None)

    async def todos(self) -> Sequence[Mapping[str, Any]]:
        """The to-do list as the last turn left it."""
        if self.conversation is None:
            return ()
        config = {"configurable": {"thread_id": self.conversation.id, "everthread_owner": self.owner}}
        state = await self.agent.graph.aget_state(config)  # type: ignore[arg-type]
        return state.values.get("todos") or ()

    async def recent(self, limit: int = 15) -> list[Conversation]:
        """Conversations, that in which something was said last first, without those of subagents and what was
        imported."""
        self.known, cursor = [], None
        while True:
            page = await self.et.conversations.list(self.owner, limit=MAX_PAGE, order="said", cursor=cursor)
            self.known += [one for one in page.items if one.parent_id is None and imported_from(one.info) is None]
            cursor = page.next_cursor
            if cursor is None or len(self.known) >= limit:
                self.known = self.known[:limit]
                return self.known

    async def resume(self, name: str | None) -> Conversation:
        """Continue another conversation: by id or its beginning, by its number in the list, or the most recent one."""
        if name is None:
            recent = await self.recent(1)
            if not recent:
                raise NotFound("no conversation to continue beside what was imported; say something to start one")
            self.conversation = recent[0]
        elif name.isdecimal() and 1 <= int(name) <= len(self.known):
            self.conversation = self.known[int(name) - 1]
        else:
            found = await self._find(name)
            check_not_of_an_agent(found.info)
            self.conversation = found
        self.skill = None
        return self.conversation

    async def _find(self, name: str) -> Conversation:
        """By its id, or the beginning of it; a number that is not an id counts in the present list."""
        try:
            return await self.et.conversations.get(name, self.owner)
        except NotFound:
            if name.isdecimal() and not self.known and 1 <= int(name) <= len(await self.recent()):
                return self.known[int(name) - 1]
            return await find_conversation(self.et, self.owner, name)


@asynccontextmanager
async def open_session(cli: Invocation, et: Everthread, model: str | None) -> AsyncIterator[ChatSession]:
    """A chat session. Turns whose process died are closed first."""
    agent = everthread.agent(et, settings=cli.settings)
    try:
        await agent.close_dead()
        yield ChatSession(et=et, agent=agent, settings=cli.settings, model=model)
    finally:
        if isinstance(agent.tools, DefaultTools):
            await agent.tools.close()

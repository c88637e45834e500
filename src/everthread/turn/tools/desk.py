"""The desk of a turn: what its tools work with, and the notes they leave for the graph.

A tool that changes something of the conversation's state (todos, the active skill, a picture that was drawn) writes it
down in `Notes`; the wrapper around every tool hands it on as the graph wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from langchain_core.tools import BaseTool

from everthread.conversation import Conversation
from everthread.core.clock import Clock, system_clock
from everthread.core.errors import NotFound
from everthread.core.tools import ToolPolicy
from everthread.core.workspaces import Workspace
from everthread.instance import Everthread
from everthread.turn.skills import Skill

Result = TypeVar("Result")
TodoState = Literal["pending", "in_progress", "completed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One thing to do."""

    content: str
    status: TodoState = "pending"


Load = Callable[[], Awaitable[Mapping[str, Any]]]
"""Reads the state that the last turn left."""


class Notes:
    """What tools found and changed in this turn."""

    def __init__(self, load: Load | None = None) -> None:
        self._load = load
        self._todos: tuple[Todo, ...] | None = None
        self._changes: dict[str, Any] = {}

    async def todos(self) -> tuple[Todo, ...]:
        """As this turn wrote them, else as the last one left them."""
        if self._todos is None:
            state = {} if self._load is None else await self._load()
            kept = state.get("todos") or ()
            self._todos = tuple(Todo(content=one["content"], status=one["status"]) for one in kept)
        return self._todos

    def write_todos(self, todos: Sequence[Todo]) -> None:
        self._todos = tuple(todos)
        self._changes["todos"] = [asdict(todo) for todo in todos]

    def activate(self, skill: Skill) -> None:
        self._changes["active_skill"] = skill.name

    def drew(self, visualization: Mapping[str, Any]) -> None:
        """`success`, `image_url`, `pdf_url` and `data_url` of a picture, as answers carry them."""
        self._changes["result"] = {"visualization": dict(visualization)}

    def take_changes(self) -> dict[str, Any]:
        """Fields of the state that are not handed on yet."""
        taken, self._changes = self._changes, {}
        return taken


class Files:
    """The conversation's workspace while a turn runs: opened when first needed, and again when it vanished.

    A subagent works in the files of the conversation that it works for. While it is open, no clean-up takes it.
    """

    def __init__(self, et: Everthread, conversation: Conversation, *, expected: bool = False) -> None:
        self._et = et
        self._conversation = conversation
        self._expected = expected
        self._opened: Workspace | None = None
        self._door = asyncio.Lock()
        self.notices: list[str] = []
        """What was told when it was opened, not yet handed on."""

    async def workspace(self) -> Workspace:
        async with self._door:
            if self._opened is None or not self._opened.is_there():
                self._expected = self._expected or self._opened is not None
                self.close()
                self._opened = await self._et.workspaces.open(await self._top(), expected=self._expected)
                self.notices += [self._opened.notice] if self._opened.notice else []
            return self._opened

    async def _top(self) -> Conversation:
        top = self._conversation
        while top.parent_id is not None:
            top = await self._et.conversations.get(top.parent_id, top.owner)
        return top

    async def do(self, act: Callable[[Workspace], Result]) -> Result:
        """Something with the workspace, in a thread; once more when it vanished under its hands."""
        workspace = await self.workspace()
        try:
            return await asyncio.to_thread(act, workspace)
        except NotFound:
            if workspace.is_there():
                raise
            return await asyncio.to_thread(act, await self.workspace())

    async def path(self) -> Path:
        return (await self.workspace()).path

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def close(self) -> None:
        if self._opened is not None:
            with suppress(OSError):
                self._opened.close()
            self._opened = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the tools of one turn work with."""

    et: Everthread
    conversation: Conversation
    files: Files
    notes: Notes = field(default_factory=Notes)
    policy: ToolPolicy = field(default_factory=ToolPolicy)
    skills: Sequence[Skill] = ()
    more: Sequence[BaseTool] = ()
    """Tools that are made elsewhere: of MCP servers, of subagents."""
    uses_memory: bool = True
    """Whether what is said may be remembered beyond the conversation."""
    kb_prefix: str | None = None
    """The knowledge base that this turn was routed to."""
    clock: Clock = system_clock

    @classmethod
    def of(cls, et: Everthread, conversation: Conversation, **more: Any) -> Desk:
        """A desk with a workspace that is opened when it is needed."""
        return cls(et=et, conversation=conversation, files=Files(et, conversation), **more)

    def close(self) -> None:
        """Let go of the workspace."""
        self.files.close()

    def now(self) -> datetime:
        return self.clock()

"""What the tools of one turn work with, and the changes that they make to the graph's state.

A tool that changes the conversation's state (todos, the active skill, a picture) records it in `StateChanges`; the
wrapper around every tool (`wrap.py`) hands it to the graph.
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
from everthread.core.workspaces import Workspace, files_url
from everthread.instance import Everthread
from everthread.turn.result import drawn, merge_results
from everthread.turn.skills import Skill

T = TypeVar("T")
TodoStatus = Literal["pending", "in_progress", "completed"]
LoadState = Callable[[], Awaitable[Mapping[str, Any]]]
"""Reads the state that the last turn left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """One item of the to-do list."""

    content: str
    status: TodoStatus = "pending"


class StateChanges:
    """What tools changed of the graph's state in this turn."""

    def __init__(self, load: LoadState | None = None) -> None:
        self._load = load
        self._todos: tuple[Todo, ...] | None = None
        self._changes: dict[str, Any] = {}

    async def todos(self) -> tuple[Todo, ...]:
        """As this turn wrote them, else as the last one left them."""
        if self._todos is None:
            state = {} if self._load is None else await self._load()
            stored = state.get("todos") or ()
            self._todos = tuple(Todo(content=one["content"], status=one["status"]) for one in stored)
        return self._todos

    def set_todos(self, todos: Sequence[Todo]) -> None:
        self._todos = tuple(todos)
        self._changes["todos"] = [asdict(todo) for todo in todos]

    def set_active_skill(self, skill: Skill) -> None:
        self._changes["active_skill"] = skill.name

    def set_visualization(self, visualization: Mapping[str, Any]) -> None:
        """A picture, as answers carry it (`result.Visualization`)."""
        self._changes["result"] = merge_results(self._changes.get("result", {}), drawn(visualization))

    def take(self) -> dict[str, Any]:
        """The changes that were not taken yet."""
        taken, self._changes = self._changes, {}
        return taken


class WorkspaceFiles:
    """The conversation's workspace while a turn runs: opened when first needed, and again when it vanished.

    A subagent works in the files of the conversation that it works for. While it is open, no clean-up removes it.
    """

    def __init__(self, et: Everthread, conversation: Conversation, *, expected: bool = False) -> None:
        self._et = et
        self._conversation = conversation
        self._expected = expected
        self._workspace: Workspace | None = None
        self._lock = asyncio.Lock()
        self.notices: list[str] = []
        """What opening it reported and the model was not told yet."""

    async def workspace(self) -> Workspace:
        """The open workspace."""
        async with self._lock:
            if self._workspace is None or not self._workspace.is_there():
                self._expected = self._expected or self._workspace is not None
                self.close()
                top = await self._et.conversations.top(self._conversation)
                self._workspace = await self._et.workspaces.open(top, expected=self._expected)
                self.notices += [self._workspace.notice] if self._workspace.notice else []
            return self._workspace

    async def run(self, act: Callable[[Workspace], T]) -> T:
        """Do something with the workspace, in a thread; once more when it vanished meanwhile."""
        workspace = await self.workspace()
        try:
            return await asyncio.to_thread(act, workspace)
        except NotFound:
            if workspace.is_there():
                raise
            return await asyncio.to_thread(act, await self.workspace())

    async def path(self) -> Path:
        return (await self.workspace()).path

    async def url_prefix(self) -> str:
        """What the address of a file begins with where a service is asked for it."""
        return files_url((await self._et.conversations.top(self._conversation)).id)

    def take_notices(self) -> list[str]:
        taken, self.notices = self.notices, []
        return taken

    def close(self) -> None:
        if self._workspace is not None:
            with suppress(OSError):
                self._workspace.close()
            self._workspace = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What the tools of one turn work with."""

    et: Everthread
    conversation: Conversation
    files: WorkspaceFiles
    state_changes: StateChanges = field(default_factory=StateChanges)
    policy: ToolPolicy = field(default_factory=ToolPolicy)
    skills: Sequence[Skill] = ()
    extra_tools: Sequence[BaseTool] = ()
    """Tools that are made elsewhere, such as those of MCP servers."""
    uses_memory: bool = True
    """Whether what is said may be remembered beyond the conversation."""
    kb_prefix: str | None = None
    """The knowledge base that this turn was routed to."""
    has_read_documents: Callable[[], bool] = bool
    """Whether the model was shown passages of documents in this turn."""
    clock: Clock = system_clock

    @classmethod
    def create(cls, et: Everthread, conversation: Conversation, **fields: Any) -> ToolContext:
        """With a workspace that is opened when it is needed."""
        return cls(et=et, conversation=conversation, files=WorkspaceFiles(et, conversation), **fields)

    def close(self) -> None:
        """Close the workspace."""
        self.files.close()

    def now(self) -> datetime:
        return self.clock()

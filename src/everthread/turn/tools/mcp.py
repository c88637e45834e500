"""MCP servers as sources of tools, through langchain-mcp-adapters: started when first needed, kept for many turns.

A file names them, in the form that other programs use too:

    {"mcpServers": {"notes": {"command": "notes-server", "args": ["--read-only"]}, "web": {"url": "https://…/mcp"}}}

A tool `search` of the server `notes` is called `notes_search`. A server that does not start is reported and left out;
one that died is started again for the next turn. What its tools return is data like any other tool's.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from langchain_core.tools import BaseTool

from everthread.core.errors import Invalid, MissingExtra
from everthread.core.tools import TOOL_NAME
from everthread.turn.tools.mcp_transport import open_session

START_SECONDS: Final = 30.0
PING_SECONDS: Final = 5.0
MAX_TOOLS: Final = 100
"""Of one server."""
MAX_DESCRIPTION_CHARACTERS: Final = 4_000
MAX_SCHEMA_CHARACTERS: Final = 40_000
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_TRANSPORTS: Final = {"http": "streamable_http", "streamable-http": "streamable_http"}
_FIELDS: Final = frozenset("command args env cwd url headers transport type".split())


def load_servers(file: Path) -> dict[str, dict[str, Any]]:
    """The servers that a file names; Invalid with what is wrong in it. `${NAME}` stands for a variable's value."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Invalid(f"{file} cannot be read: {problem}", field="mcp_file") from problem
    servers = content.get("mcpServers") if isinstance(content, Mapping) else None
    if not isinstance(servers, Mapping):
        raise Invalid(f'{file} must hold {{"mcpServers": {{…}}}}', field="mcp_file")
    return {name: connection(name, entry) for name, entry in servers.items()}


def connection(name: str, entry: object) -> dict[str, Any]:
    """How to reach a server, as langchain-mcp-adapters takes it."""
    where = f"mcpServers.{name}"
    if not TOOL_NAME.fullmatch(name):
        raise Invalid("must be letters, digits, - and _", field=where)
    if not isinstance(entry, Mapping) or ("command" in entry) == ("url" in entry):
        raise Invalid('must have either "command" or "url"', field=where)
    if unknown := set(entry) - _FIELDS:
        raise Invalid(f"has unknown fields: {', '.join(sorted(unknown))}", field=where)
    given = {key: _expand(value, where) for key, value in entry.items() if key not in ("transport", "type")}
    if "command" in given:
        return {"transport": "stdio", "args": [], **given}
    kind = str(entry.get("transport", entry.get("type", "http")))
    return {"transport": _TRANSPORTS.get(kind, kind), **given}


def _expand(value: Any, where: str) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found[1], where), value)
    if isinstance(value, Mapping):
        return {key: _expand(inner, where) for key, inner in value.items()}
    return [_expand(inner, where) for inner in value] if isinstance(value, list) else value


def _variable(name: str, where: str) -> str:
    if name not in os.environ:
        raise Invalid(f"the variable {name} is not set", field=where)
    return os.environ[name]


@dataclass(slots=True, kw_only=True)
class _Server:
    """A server and the task that holds its session open."""

    keeper: asyncio.Task[None] | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    tools: Sequence[BaseTool] = ()
    ping: Callable[[], Coroutine[Any, Any, Any]] | None = None

    async def is_alive(self) -> bool:
        """A server that died leaves its keeper waiting; only a ping tells."""
        if self.keeper is None or self.keeper.done() or self.ping is None:
            return False
        asking = asyncio.create_task(self.ping())
        await asyncio.wait({asking}, timeout=PING_SECONDS)
        asking.cancel()
        return asking.done() and not asking.cancelled() and asking.exception() is None


class McpServers:
    """The servers of this process, used as an async context manager around any number of turns."""

    def __init__(self, servers: Mapping[str, Mapping[str, Any]], *, start_seconds: float = START_SECONDS) -> None:
        self._servers = servers
        self._start_seconds = start_seconds
        self._running: dict[str, _Server] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()
        self.problems: dict[str, str] = {}
        """Why a server gives no tools, by its name."""
        self.oddities: dict[str, str] = {}
        """What is left out of a server's tools, by its name."""

    async def __aenter__(self) -> McpServers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End them all."""
        for running in self._running.values():
            running.stop.set()
        keepers = [running.keeper for running in self._running.values() if running.keeper is not None]
        if keepers or self._ending:
            _, late = await asyncio.wait([*keepers, *self._ending], timeout=self._start_seconds)
            for keeper in late:
                keeper.cancel()
        self._running.clear()

    async def tools(self) -> Sequence[BaseTool]:
        """Those of all servers that run; what does not run is started."""
        async with self._lock:
            await asyncio.gather(*(self._ensure_started(name) for name in self._servers))
        return [tool for running in self._running.values() for tool in running.tools]

    async def _ensure_started(self, name: str) -> None:
        known = self._running.get(name)
        if known is not None:
            if await known.is_alive():
                return
            known.stop.set()
        running = _Server()
        running.keeper = keeper = asyncio.create_task(self._hold_session(name, running), name=f"mcp {name}")
        ready = asyncio.create_task(running.ready.wait())
        await asyncio.wait({keeper, ready}, timeout=self._start_seconds, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if running.ready.is_set():
            self._running[name] = running
            self.problems.pop(name, None)
        else:
            self._running.pop(name, None)
            self.problems[name] = _describe_failure(keeper, self._start_seconds)
            self._end(keeper)

    def _end(self, keeper: asyncio.Task[None]) -> None:
        """Its process is asked to end, then ended, which takes a moment: `close` waits for that."""
        keeper.cancel()
        self._ending.add(keeper)
        keeper.add_done_callback(self._ending.discard)

    async def _hold_session(self, name: str, running: _Server) -> None:
        """One task opens the session and closes it: the library underneath demands it."""
        sessions, tools = _import_adapters()
        async with open_session(sessions, self._servers[name]) as session:
            await session.initialize()
            offered = await tools.load_mcp_tools(session, server_name=name, tool_name_prefix=True)
            running.tools = [_bounded(tool) for tool in offered if _is_sound(tool)][:MAX_TOOLS]
            if len(running.tools) < len(offered):
                self.oddities[name] = f"{len(offered) - len(running.tools)} of its {len(offered)} tools are left out"
            running.ping = session.send_ping
            running.ready.set()
            await running.stop.wait()


def _is_sound(tool: BaseTool) -> bool:
    """Whether a tool may be offered: it has a name that providers take, and a description of its arguments that does
    not fill the request of every turn."""
    if not TOOL_NAME.fullmatch(tool.name):
        return False
    try:
        return len(json.dumps(tool.args, default=str)) <= MAX_SCHEMA_CHARACTERS
    except (ValueError, RecursionError):
        return False


def _bounded(tool: BaseTool) -> BaseTool:
    """A tool whose server describes it at length says only the beginning of it: it stands in every request."""
    if len(tool.description) <= MAX_DESCRIPTION_CHARACTERS:
        return tool
    return tool.model_copy(update={"description": f"{tool.description[:MAX_DESCRIPTION_CHARACTERS]} …"})


def _import_adapters() -> tuple[Any, Any]:
    try:
        return import_module("langchain_mcp_adapters.sessions"), import_module("langchain_mcp_adapters.tools")
    except ImportError as problem:
        raise MissingExtra("MCP servers need an extra: pip install 'everthread[agent]'") from problem


def _describe_failure(keeper: asyncio.Task[None], seconds: float) -> str:
    if not keeper.done():
        return f"it did not answer within {seconds:g} seconds"
    problem = None if keeper.cancelled() else keeper.exception()
    while isinstance(problem, BaseExceptionGroup):  # what tasks raise together comes wrapped
        problem = problem.exceptions[0]
    return "it ended at once" if problem is None else f"{type(problem).__name__}: {problem}"

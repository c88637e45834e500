"""`everthread watch`: finds the histories of coding agents on this machine and keeps the log up to date with them.

Changes come from the operating system (`watchfiles`); where that is not installed, and every now and then in any case,
all files are looked at. A look costs one `stat` for each file, and an unchanged file is never opened. The agents' own
files are only read.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from everthread.core.errors import StoreError
from everthread.core.imports import ImportSource
from everthread.imports.detect import PACKED_LINES, is_copy, is_packed_beside, packings, plain_path
from everthread.imports.follow import is_unchanged, source_name
from everthread.imports.importer import Importer, database_changed_at, oldest_first
from everthread.imports.line_file import READERS
from everthread.imports.task_files import HISTORY
from everthread.imports.write import ImportCounts
from everthread.instance import Everthread

SWEEP_SECONDS = 120.0
"""How often all files are looked at although nothing was heard of them: events can be lost, folders can be new."""
POLL_SECONDS = 5.0
"""The same without watchfiles."""
_LOOK_SECONDS = 1.0
"""How often files are looked at in whose folders nothing is heard."""
_NO_PROJECTS = {"Library", "node_modules", "snap", "venv", "__pycache__"}
_DEBOUNCE_MILLIS, _STEP_MILLIS = 400, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFolder:
    """A folder in which an agent keeps its sessions, or a database of its own."""

    agent: str
    path: Path
    endings: tuple[str, ...] = (".jsonl",)
    prefix: str = ""
    within: str = ""
    """The name of a folder that sessions stand in, where others of its files are none."""
    depth: int | None = None
    """How many folders deep sessions stand in a folder that is not the agent's own. Such a folder is looked through
    now and then; only the files found in it are looked at often."""

    def holds(self, path: Path) -> bool:
        """Whether a file in it is a session."""
        is_named = path.name.startswith(self.prefix) and path.name.endswith(self.endings)
        return is_named and (not self.within or self.within in path.parts) and not is_copy(path)

    def files(self, below: Path | None = None) -> Iterator[Path]:
        """All sessions in it, or only those below one of its folders, also behind links. Folders that cannot be read
        are passed over."""
        if self.path.is_file():
            yield self.path
        # No link is followed twice, or to a folder that this one is in.
        seen = {_identity(folder) for folder in (*self.path.absolute().parents, *self.path.resolve().parents)}
        for above, folders, names in os.walk(below or self.path, followlinks=self.depth is None):
            folders.sort()
            identity = _identity(above)
            if identity is None or identity in seen:
                folders.clear()
                continue
            seen.add(identity)
            if self.depth is not None:
                is_deep = len(Path(above).relative_to(self.path).parts) >= self.depth
                folders[:] = [] if is_deep else [one for one in folders if one not in _NO_PROJECTS and one[0] != "."]
            there = set(names)
            for name in sorted(names):
                path = Path(above, name)
                if self.holds(path) and not is_packed_beside(name, there):
                    yield path


def agent_folders(home: Path, environment: Mapping[str, str]) -> list[AgentFolder]:
    """Where the agents that are known keep their sessions, whether or not that exists."""

    def named(variable: str, default: Path) -> Path:
        return Path(environment[variable]).expanduser() if environment.get(variable) else default

    claude = named("CLAUDE_CONFIG_DIR", home / ".claude")
    codex = named("CODEX_HOME", home / ".codex")
    data = named("XDG_DATA_HOME", home / ".local" / "share")
    gemini = named("GEMINI_CLI_HOME", home) / ".gemini"
    cline = named("CLINE_DATA_DIR", named("CLINE_DIR", home / ".cline") / "data")
    channels = (data / "opencode").glob("opencode-*.db")
    named_database = data / "opencode" / (environment.get("OPENCODE_DB") or "opencode.db")
    hermes = home / ".hermes"
    brains = sorted({gemini / "antigravity", *gemini.glob("antigravity*")})
    profiles = sorted((hermes / "profiles").glob("*"))
    return [
        AgentFolder(agent="claude-code", path=claude / "projects"),
        *(
            AgentFolder(agent="codex", path=codex / name, endings=(".jsonl", ".jsonl.zst"), prefix="rollout-")
            for name in ("sessions", "archived_sessions")
        ),
        AgentFolder(agent="gemini-cli", path=gemini / "tmp", endings=(".json", ".jsonl"), within="chats"),
        *(AgentFolder(agent="opencode", path=path) for path in sorted({*channels, named_database})),
        AgentFolder(agent="qwen-code", path=home / ".qwen" / "projects"),
        AgentFolder(agent="copilot-cli", path=home / ".copilot" / "session-state", prefix="events"),
        AgentFolder(agent="cursor-cli", path=named("CURSOR_CONFIG_DIR", home / ".cursor") / "projects"),
        AgentFolder(agent="pi", path=home / ".pi" / "agent" / "sessions"),
        AgentFolder(agent="omp", path=home / ".omp" / "agent" / "sessions"),
        AgentFolder(agent="openclaw", path=named("OPENCLAW_STATE_DIR", home / ".openclaw") / "agents"),
        AgentFolder(
            agent="kimi", path=named("KIMI_CODE_HOME", home / ".kimi-code") / "sessions", endings=("wire.jsonl",)
        ),
        AgentFolder(agent="grok", path=named("GROK_HOME", home / ".grok") / "sessions", endings=("updates.jsonl",)),
        AgentFolder(
            agent="deepseek",
            path=named("DSH_HOME", home / ".dsh") / "sessions",
            endings=("session.jsonl", "session.jsonl.zstd"),
        ),
        *(
            AgentFolder(agent="antigravity", path=brain / "brain", endings=("transcript.jsonl",), prefix="transcript")
            for brain in brains
        ),
        AgentFolder(agent="cline", path=cline / "sessions", endings=(".messages.json",)),
        AgentFolder(agent="cline", path=cline / "tasks", endings=(HISTORY,)),
        *(
            AgentFolder(agent=agent, path=storage / extension / "tasks", endings=(HISTORY,))
            for agent, extension in _EXTENSIONS.items()
            for storage in _editor_storages(home, environment)
        ),
        AgentFolder(agent="goose", path=data / "goose" / "sessions"),
        AgentFolder(agent="goose", path=data / "goose" / "sessions" / "sessions.db"),
        AgentFolder(agent="hermes", path=hermes / "state.db"),
        *(AgentFolder(agent="hermes", path=profile / "state.db") for profile in profiles),
        AgentFolder(agent="zed", path=data / "zed" / "threads" / "threads.db"),
        AgentFolder(agent="zed", path=home / "Library" / "Application Support" / "Zed" / "threads" / "threads.db"),
        AgentFolder(agent="aider", path=home, endings=(".aider.chat.history.md",), depth=3),
    ]


_EXTENSIONS = {"cline": "saoudrizwan.claude-dev", "roo": "rooveterinaryinc.roo-cline"}
_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_EDITOR_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server")


def _editor_storages(home: Path, environment: Mapping[str, str]) -> list[Path]:
    """Where editors made from VS Code keep what belongs to their extensions."""
    bases = [home / ".config", home / "Library" / "Application Support"]
    if environment.get("APPDATA"):
        bases.append(Path(environment["APPDATA"]))
    homes = [base / editor for base in bases for editor in _EDITORS]
    homes += [home / server / "data" for server in _EDITOR_SERVERS]
    return [one / "User" / "globalStorage" for one in homes]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What became of one file that had changed; without any message where something of it could not be read."""

    agent: str
    path: Path
    messages: int
    revised: int
    removed: int
    is_gone: bool


class Watcher:
    """Follows the sessions in some folders, for one owner. Several may watch the same folders: each message is written
    once, whoever comes first."""

    def __init__(self, et: Everthread, owner: str, folders: list[AgentFolder]) -> None:
        self._et = et
        self.owner = owner
        self._folders = folders
        self._importer = Importer(et, owner)
        self._looked: dict[Path, tuple[int, int, int]] = {}
        """Inode, size and time of each file when it was last read."""
        self._is_following = False
        """Whether a database that is full or busy is waited for, instead of raised."""

    @property
    def counts(self) -> ImportCounts:
        """All that was written and could not be read so far."""
        return self._importer.counts

    @property
    def problems(self) -> list[str]:
        """What could not be read so far."""
        return self.counts.problems

    def files(self) -> dict[Path, AgentFolder]:
        """All sessions there are now."""
        return {path: folder for folder in self._folders if folder.path.exists() for path in folder.files()}

    async def sweep(self) -> AsyncGenerator[FileChange, None]:
        """Look at all files, and read those that changed."""
        found = await asyncio.to_thread(self.files)
        if not self._looked:
            await self._recognise(found)
        for path in await asyncio.to_thread(self._changed, found):
            if (change := await self.catch_up(path, found[path])) is not None:
                yield change
        for path in [path for path in self._looked if path not in found]:
            if (change := await self._gone(path)) is not None:
                yield change

    def _changed(self, found: Mapping[Path, AgentFolder]) -> list[Path]:
        """The files that are not as they were when they were last read, oldest first. One step for all of them: to ask
        for each by itself took most of the time of a look."""
        return oldest_first(path for path in found if self._looked.get(path) != _look_if_there(path))

    async def follow(self, stopped: asyncio.Event) -> AsyncGenerator[FileChange, None]:
        """Read what changes, until stopped."""
        self._is_following = True
        while not stopped.is_set():
            there = [folder for folder in self._folders if await asyncio.to_thread(folder.path.exists)]
            roots = [folder for folder in there if folder.depth is None]
            async with aclosing(_changes(roots, stopped, self._looked_at_often)) as changes:
                async for paths in changes:
                    if paths is None:
                        async for seen in self.sweep():
                            yield seen
                    sessions = await asyncio.to_thread(_sessions_at, paths or (), there)
                    for path, folder in sessions.items():
                        if (change := await self.catch_up(path, folder)) is not None:
                            yield change

    def _looked_at_often(self) -> list[Path]:
        """The files that were found in folders where nothing is heard."""
        deep = [folder for folder in self._folders if folder.depth is not None]
        return [path for path in self._looked if any(folder.holds(path) for folder in deep)] if deep else []

    async def catch_up(self, path: Path, folder: AgentFolder) -> FileChange | None:
        """Read one file, if it changed since it was last read."""
        try:
            looked = await asyncio.to_thread(_look, path)
        except OSError:
            return await self._gone(path)
        if self._looked.get(path) == looked:
            return None
        if path.name.endswith(PACKED_LINES) and await asyncio.to_thread(plain_path(path).exists):
            return None  # it is being packed: the plain file says what the session has
        counts = self.counts
        before = (counts.messages, counts.revised, counts.removed, counts.problem_count)
        try:
            await self._read(path, folder)
        except StoreError as problem:
            if not self._is_following:
                raise
            counts.add_problem(f"{path}: {problem}; will be retried")
        else:
            self._looked[path] = looked
        now = (counts.messages, counts.revised, counts.removed, counts.problem_count)
        new = [after - known for after, known in zip(now, before, strict=True)]
        if not any(new):
            return None
        return FileChange(agent=folder.agent, path=path, messages=new[0], revised=new[1], removed=new[2], is_gone=False)

    async def _read(self, path: Path, folder: AgentFolder) -> None:
        if folder.agent not in READERS or not path.name.endswith((".jsonl", ".md", *PACKED_LINES)):
            if not await self._importer.import_file(path) and await asyncio.to_thread(_has_something, path):
                self.counts.add_problem(f"{path}: unrecognised format")
            return
        try:
            await self._importer.follower.catch_up(path, folder.agent)
        except OSError as problem:
            self.counts.add_problem(f"{path}: {problem.strerror or problem}")

    async def _recognise(self, found: Mapping[Path, AgentFolder]) -> None:
        """Take from the store which files were read to their end, and which of them are gone."""
        sources = {source.path: source for source in await self._et.store.imports.sources(self.owner)}
        self._looked = await asyncio.to_thread(_unchanged, list(found), sources)
        here = {source_name(path) for path in found}
        for name, source in sources.items():
            if source.inode is not None and name not in here and _folder_of(Path(name), self._folders) is not None:
                self._looked[Path(name)] = (0, 0, 0)

    async def _gone(self, path: Path) -> FileChange | None:
        agent = next((folder.agent for folder in self._folders if path.is_relative_to(folder.path)), "")
        known = self._looked.pop(path, None)
        is_repacked = await asyncio.to_thread(lambda: any(other.exists() for other in packings(path)))
        if known is None or is_repacked or not await self._importer.follower.note_gone(source_name(path)):
            return None
        return FileChange(agent=agent, path=path, messages=0, revised=0, removed=0, is_gone=True)


def _look(path: Path) -> tuple[int, int, int]:
    """Inode, size and time of the last change of a file or a database. OSError for what is neither: a pipe would be
    waited for, and a device has no end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no regular file", str(path))
    changed_at = database_changed_at(path) if path.suffix == ".db" else status.st_mtime_ns
    return status.st_ino, status.st_size, changed_at


def _look_if_there(path: Path) -> tuple[int, int, int] | None:
    try:
        return _look(path)
    except OSError:
        return None


def _identity(folder: str | Path) -> tuple[int, int] | None:
    """What tells a folder from every other, by whatever path; None for one that is gone or cannot be looked at."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _has_something(path: Path) -> bool:
    """An empty file is about to be written; one that is gone is seen at the next look."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _unchanged(paths: list[Path], sources: Mapping[str, ImportSource]) -> dict[Path, tuple[int, int, int]]:
    """The files that were read to their end, as they were then: of those not even the head is read again."""
    looked = {}
    for path in paths:
        source = sources.get(source_name(path))
        with suppress(OSError):
            if source is not None and is_unchanged(source, path.stat(), is_packed=path.name.endswith(PACKED_LINES)):
                looked[path] = _look(path)
    return looked


def _folder_of(path: Path, folders: list[AgentFolder]) -> tuple[Path, AgentFolder] | None:
    """The session that a path belongs to, and its folder."""
    for folder in folders:
        if path == folder.path or path == folder.path.with_name(f"{folder.path.name}-wal"):
            return folder.path, folder
        if path.is_relative_to(folder.path) and folder.holds(path):
            return path, folder
    return None


def _sessions_at(paths: Iterable[Path], folders: list[AgentFolder]) -> dict[Path, AgentFolder]:
    """The sessions that changed, by the paths that the system told. Of a new folder it may tell nothing else, though
    there are files in it already."""
    found: dict[Path, AgentFolder] = {}
    for path in paths:
        if (known := _folder_of(path, folders)) is not None:
            found.setdefault(*known)
        elif path.is_dir():
            above = next((one for one in folders if one.depth is None and path.is_relative_to(one.path)), None)
            found |= {} if above is None else dict.fromkeys(above.files(path), above)
    return found


async def _changes(
    folders: list[AgentFolder], stopped: asyncio.Event, unheard: Callable[[], list[Path]]
) -> AsyncGenerator[list[Path] | None, None]:
    """The paths that changed, as the system tells; None for a look at all. Ends when it is time for the next one."""
    has_events = bool(folders) and find_spec("watchfiles") is not None
    pause = asyncio.Event()

    async def wait() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SWEEP_SECONDS if has_events else POLL_SECONDS):
                await stopped.wait()
        pause.set()

    waiting = asyncio.create_task(wait())
    try:
        if not has_events:
            yield None
            await pause.wait()
            return
        from watchfiles import awatch  # noqa: PLC0415 - an extra

        # A database is watched with its folder: its write-ahead log is another file.
        watched = {folder.path.parent if folder.path.is_file() else folder.path for folder in folders}
        heard = awatch(
            *watched, watch_filter=None, debounce=_DEBOUNCE_MILLIS, step=_STEP_MILLIS, stop_event=pause,
            ignore_permission_denied=True,
        )  # fmt: skip
        coming = asyncio.ensure_future(anext(heard, None))
        try:
            await asyncio.sleep(0)  # it listens from now on, so that nothing falls between the look and the listening
            yield None
            while True:
                while often := unheard():
                    done, _ = await asyncio.wait((coming,), timeout=_LOOK_SECONDS)
                    if done:
                        break
                    yield often
                if (changes := await coming) is None:
                    break
                coming = asyncio.ensure_future(anext(heard, None))
                yield sorted({Path(name) for _, name in changes})
        finally:
            pause.set()
            with suppress(asyncio.CancelledError):
                await coming
    finally:
        waiting.cancel()

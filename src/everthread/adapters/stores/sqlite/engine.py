"""The engine: one writer thread per database file and process, and a few readers beside it.

Callers hand the writer functions over an open connection. It takes all that wait, runs each in a savepoint of
its own, so that one that fails fails alone, commits once, and only then tells them: a group commit. An fsync is
shared by everyone who came while the last one ran. A caller that is cancelled meanwhile cannot know whether it
was written; a retry with the same ids is safe.

Callers that may block (adapters/stores/blocking.py) read in their own thread, and write there too: the first of those
who wait writes for all of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from everthread.adapters.stores import blocking, schema
from everthread.adapters.stores.change_signals import ChangeSignals
from everthread.adapters.stores.sqlite import statements as sql
from everthread.adapters.stores.sqlite.files import DAMAGE, connect, identity, prepare, read_version, translated
from everthread.adapters.stores.sqlite.id_index import IdIndex
from everthread.adapters.stores.sqlite.indexing import BATCH, MOST_UNINDEXED, index_some, is_behind
from everthread.adapters.stores.sqlite.unindexed import UnindexedTexts
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock, to_micros
from everthread.core.errors import DATABASE_CLOSED, EverthreadError, StoreError
from everthread.core.failpoints import reach
from everthread.core.timings import Timings

R = TypeVar("R")
Work = Callable[[sqlite3.Connection], R]

READERS = 4
_MOST_IDLE = 16
_QUIET_SECONDS = 0.1
"""How long no writer must have come before the index catches up; a caller that was just answered is back sooner."""
_IDENTIFY_SECONDS = 0.1
"""How long it is believed that the file still has its name, and its tables their version: asking at each call would
take a tenth of a short one."""
_GROUP = 256
"""How many callers share one commit at most: enough for any fsync, and no caller waits for long."""


@dataclass(slots=True, eq=False)
class _Request:
    work: Work[Any]
    in_transaction: bool
    is_synced: bool = True
    loop: asyncio.AbstractEventLoop | None = None
    """None for a caller that blocks, which waits for the write lock and then looks at `is_done`."""
    future: asyncio.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None
    is_done: bool = False
    """Set when another caller's transaction has included it."""
    submitted_at: float = field(default_factory=time.perf_counter)

    def finish(self) -> None:
        """Runs in the caller's loop, if it has one."""
        self.is_done = True
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Engine:
    """One database file in one process. `Engine.of` shares it; the last `release` closes it."""

    _engines: ClassVar[dict[tuple[int, str], Engine]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def of(cls, path: Path, blobs: Blobs | None = None) -> Engine:
        """The engine of this file, started if need be. Blocking: it may migrate the file.

        All who have the file open share one blob store: the first that is given.
        """
        place = (os.getpid(), os.path.realpath(path))
        with cls._guard:
            engine = cls._engines.get(place)
            if engine is None:
                engine = cls._engines[place] = cls(path, place)
            engine._users += 1
            engine.blobs = engine.blobs or blobs
            return engine

    def __init__(self, path: Path, place: tuple[int, str]) -> None:
        self.path = path
        self._place = place
        self._users = 0
        self.blobs: Blobs | None = None
        self._queue: queue.SimpleQueue[list[_Request] | None] = queue.SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Request]] = {}
        self._is_shared = False
        """Whether callers shared the last commit."""
        self._blocking: deque[_Request] = deque()
        """The writes that blocking callers are waiting for."""
        self._idle: deque[sqlite3.Connection] = deque()
        """Idle connections for reading."""
        self._write_lock = threading.Lock()
        """Held by whichever thread writes."""
        self.id_index = IdIndex()
        self.unindexed_texts = UnindexedTexts()
        """Both touched only under the write lock."""
        self.signals = ChangeSignals()
        self.unindexed_count = 0
        """Entries written here since the last batch was indexed, long ones as several; only under the write lock."""
        self.waits = Timings()
        """How long writes waited for the writer."""
        prepare(path)
        self._writer_connection = connect(path, lambda: self.blobs)
        self._identity = identity(path)
        self._identified_at = self._version_read_at = time.monotonic()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="everthread-reader")
        self._writer = threading.Thread(target=self._run_writer, name="everthread-writer", daemon=True)
        self._writer.start()

    def release(self) -> None:
        """Let go; the last one out waits for the writer and closes the file. Blocking."""
        with self._guard:
            self._users -= 1
            if self._users:
                return
            self._engines.pop(self._place, None)
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        while self._idle:
            self._idle.pop().close()
        with self._write_lock:
            self._writer_connection.close()

    async def write(self, work: Work[R], *, is_synced: bool = True) -> R:
        """Run it in the writer's next transaction; durable when this returns.

        With `is_synced` off it survives the death of this process, and a power cut only once something that is synced
        was written after it.
        """
        return await self._submit(work, in_transaction=True, is_synced=is_synced)

    async def alone(self, work: Work[R]) -> R:
        """Run it in the writer, outside of any transaction (VACUUM, checkpoints)."""
        return await self._submit(work, in_transaction=False)

    async def read(self, work: Work[R]) -> R:
        """Run it over a reader's connection."""
        if blocking.may_block():
            with blocking.released():
                return self._read(work)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, self._read, work)

    async def run_reads(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Drive it to its end in a reader's thread."""
        if blocking.may_block():
            return await work()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, lambda: blocking.RunLock().run(work()))

    def _read(self, work: Work[R]) -> R:
        try:
            self._check_identity()
            connection = self._reader()
            try:
                return work(connection)
            finally:
                self._keep(connection)
        except DAMAGE as problem:
            raise translated(problem) from problem

    def _check_identity(self) -> None:
        """SQLite goes on with a file that has lost its name: what it commits there is gone when this process ends, and
        a connection that is opened later reads another file."""
        now = time.monotonic()
        if now - self._identified_at < _IDENTIFY_SECONDS:
            return
        if any(known not in (None, found) for known, found in zip(self._identity, identity(self.path), strict=True)):
            raise StoreError(
                f"the file {self.path}, or the -wal beside it, was moved, removed or replaced while it was open; "
                "nothing of this call was stored: put it back where it was; to use the one that is there now, stop all "
                "that have it open, and remove the -wal and -shm beside it, which are of the other"
            )
        self._identified_at = now

    def _check_version(self) -> None:
        """A newer everthread may have brought the tables up to date meanwhile: it knows what it expects of rows, and we
        do not."""
        now = time.monotonic()
        if now - self._version_read_at >= _IDENTIFY_SECONDS:
            schema.refuse_newer(read_version(self._writer_connection) or schema.VERSION)
            self._version_read_at = now

    def _reader(self) -> sqlite3.Connection:
        """An idle connection, or a new one."""
        with suppress(IndexError):
            return self._idle.pop()
        connection = connect(self.path, lambda: self.blobs)
        for pragma in sql.READER_PRAGMAS:
            connection.execute(pragma)
        return connection

    def _keep(self, connection: sqlite3.Connection) -> None:
        """Keep a connection for the next reader, or close it if enough are idle: blocking callers may be many."""
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    async def _submit(self, work: Work[R], *, in_transaction: bool, is_synced: bool = True) -> R:
        if blocking.may_block():
            request = _Request(work, in_transaction, is_synced)
            with blocking.released():
                self._submit_blocking(request)
            if request.error is not None:
                raise request.error
            return cast(R, request.result)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        request = _Request(work, in_transaction, is_synced, loop, future)
        if loop in self._gathered:
            self._gathered[loop].append(request)
        elif self._is_shared:
            self._gathered[loop] = [request]
            loop.call_soon(self._hand_over, loop)
        else:
            self._queue.put([request])
        return await future

    def _submit_blocking(self, request: _Request) -> None:
        """Write for a blocking caller: the one that gets the write lock next writes for all that wait by then."""
        self._blocking.append(request)
        try:
            with self._write_lock:
                while not request.is_done:
                    self._write_blocking()
        finally:  # after a Ctrl-C, for this may be the main thread, it is not to be written by the next one
            if request in self._blocking:
                self._blocking.remove(request)

    def _write_blocking(self) -> None:
        group = _next_group(self._blocking.copy())
        try:
            self._run(group)
        finally:
            self._undo()
        for request in group:
            self._blocking.remove(request)
        _notify(group)
        if self.unindexed_count >= BATCH:
            self._queue.put([])  # the writer waits for this only, and would not see that the index is behind

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the writer what this turn of the loop gathered, where callers are many.

        Waking it at the first caller would set two threads fighting for the interpreter's lock while the other
        callers still prepare their messages: 16 callers got a third of the turns that way. Who is alone need not wait
        for others.
        """
        self._queue.put(self._gathered.pop(loop))

    def _run_writer(self) -> None:
        waiting: deque[_Request] = deque()
        is_over = False
        while waiting or not is_over:
            while not is_over and not (waiting and self._queue.empty()):
                requests = self._next_requests()
                is_over = requests is None
                waiting.extend(requests or ())
                if not requests:
                    break
            if waiting:
                group = _next_group(waiting)
                self._is_shared = len(group) > 1
                with self._write_lock:
                    self._run(group)
                _notify(group)
            # Who appends by the thousand brings more than a batch each time.
            while self.unindexed_count >= MOST_UNINDEXED:
                self._index()

    def _next_requests(self) -> list[_Request] | None:
        """What is to be written next; while nothing is, the index catches up."""
        while self.unindexed_count >= BATCH:
            with suppress(queue.Empty):
                return self._queue.get(timeout=_QUIET_SECONDS)
            while self.unindexed_count >= BATCH and self._queue.empty():
                self._index()
        return self._queue.get()

    def _index(self) -> None:
        """Bring the index closer to the log, after the callers have been answered."""
        with self._write_lock:
            self.unindexed_count = max(0, self.unindexed_count - BATCH)
            try:
                self._check_identity()
                self._writer_connection.execute("BEGIN IMMEDIATE")
                index_some(self._writer_connection, self.unindexed_texts)
                self._writer_connection.execute("COMMIT")
            except Exception:  # noqa: BLE001 - the worker loop: what waits is noted in the file, and a search tells its caller
                self._undo()

    def _run(self, group: list[_Request]) -> None:
        now = time.perf_counter()
        for request in group:
            self.waits.observe(now - request.submitted_at)
        try:
            self._check_identity()
            self._check_version()
            if group[0].in_transaction:
                _commit_together(self._writer_connection, group)
            else:
                group[0].result = group[0].work(self._writer_connection)
        except DAMAGE as problem:
            self._undo()
            _fail(group, translated(problem))
        except Exception as problem:  # noqa: BLE001 - the worker loop: a defect must reach its caller, not end the thread
            self._undo()
            _fail(group, problem)

    def _undo(self) -> None:
        if self._writer_connection.in_transaction:
            with suppress(sqlite3.Error):  # what SQLite has rolled back already
                self._writer_connection.execute("ROLLBACK")


class SqliteDatabase:
    """One store's hold on the engine of its file, and its clock: what the store's ports work with."""

    def __init__(self, path: Path, clock: Clock, blobs: Blobs | None) -> None:
        self._path = path
        self._blobs = blobs
        self._engine: Engine | None = None
        self.clock = clock

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    @property
    def engine(self) -> Engine:
        """StoreError when the store is closed."""
        if self._engine is None:
            raise StoreError(DATABASE_CLOSED)
        return self._engine

    def now(self) -> int:
        return to_micros(self.clock())

    async def open(self) -> None:
        self._engine = await asyncio.to_thread(Engine.of, self._path, self._blobs)

    async def close(self) -> None:
        engine, self._engine = self.engine, None
        await asyncio.sleep(0)  # what this turn of the loop gathered reaches the writer before the word to stop
        await asyncio.to_thread(engine.release)

    async def read_indexed(self, work: Work[R], is_behind: Work[bool] = is_behind) -> R:
        """Read once the search index has caught up with the log, as far as the reader needs it."""
        engine = self.engine
        while not (read := await engine.read(lambda c: () if is_behind(c) else (work(c),))):
            await engine.write(lambda c: index_some(c, engine.unindexed_texts))
        return read[0]


def _next_group(waiting: deque[_Request]) -> list[_Request]:
    """Return the writes that share the next transaction; one that must run alone is its own group."""
    group = [waiting.popleft()]
    while waiting and group[0].in_transaction and waiting[0].in_transaction and len(group) < _GROUP:
        group.append(waiting.popleft())
    return group


def _commit_together(connection: sqlite3.Connection, group: list[_Request]) -> None:
    if not any(request.is_synced for request in group):
        connection.execute("PRAGMA synchronous=NORMAL")  # in WAL mode: a commit is written, and synced with a later one
        try:
            _commit(connection, group)
        finally:
            if connection.in_transaction:  # the pragma would be ignored inside of one
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA synchronous=FULL")
        return
    _commit(connection, group)


def _commit(connection: sqlite3.Connection, group: list[_Request]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for request in group:
        if len(group) == 1:
            request.result = request.work(connection)
        else:
            _run_in_savepoint(connection, request)
    reach("commit.before")
    connection.execute("COMMIT")
    reach("commit.after")


def _run_in_savepoint(connection: sqlite3.Connection, request: _Request) -> None:
    connection.execute("SAVEPOINT one")
    try:
        request.result = request.work(connection)
    except EverthreadError as problem:
        connection.execute("ROLLBACK TO one")
        request.error = problem
    except (sqlite3.IntegrityError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        connection.execute("ROLLBACK TO one")
        request.error = translated(problem)
    connection.execute("RELEASE one")


def _fail(group: list[_Request], problem: BaseException) -> None:
    for request in group:
        request.result, request.error = None, request.error or problem


def _notify(group: list[_Request]) -> None:
    """Wake each caller's loop once, however many of its callers were in the group."""
    reach("ack.before")
    by_loop: dict[asyncio.AbstractEventLoop | None, list[_Request]] = {}
    for request in group:
        by_loop.setdefault(request.loop, []).append(request)
    for loop, requests in by_loop.items():
        if loop is None:
            _finish_all(requests)
            continue
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_finish_all, requests)


def _finish_all(requests: list[_Request]) -> None:
    for request in requests:
        request.finish()

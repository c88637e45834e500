"""Several processes that serve on one socket, and the parent that watches over them.

The parent binds the socket and starts the processes; each opens the database for itself and accepts from the same
socket, so what waits to be accepted is lost with none of them. A process that dies is started again, after a pause that
grows while it dies again and again at once; then the parent gives up. Told to stop, the parent tells every process, and
waits for them. A process whose parent has gone stops too.

uvicorn has a supervisor (`uvicorn.supervisors.Multiprocess`). It starts a dead process again without a pause and
without an end, kills one that is busy for five seconds, and does not say when all of them listen.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from everthread.core.errors import EverthreadError

_LOG = logging.getLogger("everthread.http")
_SPAWN = multiprocessing.get_context("spawn")
"""A forked process would inherit the threads' locks of whatever the parent has imported."""
QUICK_SECONDS = 10.0
"""A process that dies sooner than this after its start has failed at once."""
MAX_QUICK_DEATHS = 5
_FIRST_PAUSE_SECONDS = 0.5
_MAX_PAUSE_SECONDS = 10.0
_KILL_SECONDS = 5.0
"""How much longer than `stop_seconds` the parent waits before it kills."""

Target = Callable[[Sequence[socket.socket], Connection], None]
"""What a process does: serve on these sockets, and `report_listening` once it does. It can be pickled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPause:
    """How long to wait before a process is started again."""

    quick_deaths: int = 0
    """How often in a row it died at once."""

    def after(self, lived_seconds: float) -> RestartPause:
        """The next pause, after a life of so many seconds."""
        return RestartPause(quick_deaths=self.quick_deaths + 1 if lived_seconds < QUICK_SECONDS else 0)

    @property
    def is_hopeless(self) -> bool:
        return self.quick_deaths >= MAX_QUICK_DEATHS

    @property
    def seconds(self) -> float:
        if not self.quick_deaths:
            return 0.0
        return min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** (self.quick_deaths - 1))


@dataclass(slots=True, eq=False)
class _Worker:
    """One of the processes, and those that were in its place before."""

    target: Target
    sockets: Sequence[socket.socket]
    process: SpawnProcess | None = None
    pipe: Connection | None = None
    started_at: float = 0.0
    is_listening: bool = False
    pause: RestartPause = field(default_factory=RestartPause)

    def start(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=self.target, args=(self.sockets, theirs))
        # A terminal sends Ctrl-C to the processes too, and one that is still importing would end with a traceback.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        self.process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.started_at = time.monotonic()
        self.is_listening = False

    @property
    def is_due(self) -> bool:
        return self.process is None and time.monotonic() >= self.due_at

    @property
    def due_at(self) -> float:
        return self.started_at + self.pause.seconds

    def hear(self) -> None:
        """Read what the process has sent through its pipe."""
        assert self.pipe is not None
        with suppress(EOFError, OSError):
            if self.pipe.poll():
                self.pipe.recv()
                self.is_listening = True

    def bury(self) -> int:
        """Its exit code, once it is dead."""
        assert self.process is not None
        assert self.pipe is not None
        self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        self.pipe.close()
        self.process = self.pipe = None
        now = time.monotonic()
        self.pause = self.pause.after(now - self.started_at)
        self.started_at = now  # the pause counts from its death
        return code

    def send(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)


def report_listening(pipe: Connection, stop: Callable[[], None]) -> None:
    """Called in a process once it listens and handles signals, in its event loop. Without a parent it stops."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    loop = asyncio.get_running_loop()

    def on_parent_gone() -> None:
        loop.remove_reader(pipe.fileno())
        stop()

    loop.add_reader(pipe.fileno(), on_parent_gone)
    pipe.send(True)


def supervise(
    target: Target,
    sockets: Sequence[socket.socket],
    *,
    count: int,
    stop_seconds: float,
    on_listening: Callable[[], None],
) -> None:
    """Run so many processes until SIGTERM or Ctrl-C. EverthreadError when they cannot be kept running."""
    workers = [_Worker(target, sockets) for _ in range(count)]
    with _signals() as (wakeup, received):
        for worker in workers:
            worker.start()
        is_announced = False
        problem: EverthreadError | None = None
        while not received and problem is None:
            _wait_for_news(workers, wakeup)
            for worker in workers:
                problem = problem or _look_after(worker, is_first_start=not is_announced)
            if not is_announced and all(worker.is_listening for worker in workers):
                is_announced = True
                on_listening()
        if not _stop(workers, wakeup, received, stop_seconds):
            problem = problem or EverthreadError("a server process did not stop in time and was killed")
    if problem is not None:
        raise problem
    if received.count(signal.SIGINT) > 1:
        raise KeyboardInterrupt


def _wait_for_news(workers: Sequence[_Worker], wakeup: socket.socket) -> None:
    """Wait until a process reports or dies, a pause is over, or a signal comes."""
    alive = [worker for worker in workers if worker.process is not None]
    heard = [worker.pipe for worker in alive if worker.pipe is not None and not worker.is_listening]
    ends = [worker.process.sentinel for worker in alive if worker.process is not None]
    due = [worker.due_at for worker in workers if worker.process is None]
    timeout = max(0.0, min(due) - time.monotonic()) if due else None
    if wakeup in wait([*heard, *ends, wakeup], timeout):
        wakeup.recv(1024)


def _look_after(worker: _Worker, *, is_first_start: bool) -> EverthreadError | None:
    """Note that a process listens, collect a dead one, or start it again."""
    if worker.process is None:
        if worker.is_due:
            worker.start()
        return None
    if not worker.is_listening:
        worker.hear()
    if worker.process.is_alive():
        return None
    pid, had_listened = worker.process.pid, worker.is_listening
    code = worker.bury()
    if is_first_start and not had_listened:
        return EverthreadError(f"a server process could not start (exit code {code}); its error is above")
    if worker.pause.is_hopeless:
        return EverthreadError(
            f"a server process died {worker.pause.quick_deaths} times in a row within {QUICK_SECONDS:.0f} seconds of "
            f"its start, the last time with exit code {code}; see its log above"
        )
    _LOG.warning("server process %s ended with code %s; another starts in %.1f s", pid, code, worker.pause.seconds)
    return None


def _stop(
    workers: Sequence[_Worker], wakeup: socket.socket, received: list[signal.Signals], stop_seconds: float
) -> bool:
    """Stop every process and wait; a second Ctrl-C is passed on, and a process that takes too long is killed.
    Returns whether none had to be."""
    is_clean = True
    until = time.monotonic() + stop_seconds + _KILL_SECONDS
    for worker in workers:
        worker.send(signal.SIGTERM)
    heard = len(received)
    while alive := [worker for worker in workers if worker.process is not None]:
        ends = [worker.process.sentinel for worker in alive if worker.process is not None]
        if wakeup in wait([*ends, wakeup], max(0.0, until - time.monotonic())):
            wakeup.recv(1024)
        if signal.SIGINT in received[heard:]:
            heard = len(received)
            for worker in alive:
                worker.send(signal.SIGINT)
        for worker in alive:
            if worker.process is not None and not worker.process.is_alive():
                worker.bury()
            elif time.monotonic() >= until:
                worker.send(signal.SIGKILL)
                worker.bury()
                is_clean = False
    return is_clean


@contextmanager
def _signals() -> Iterator[tuple[socket.socket, list[signal.Signals]]]:
    """A socket that can be read when a signal to stop has come, and those that came."""
    received: list[signal.Signals] = []
    wakeup, theirs = socket.socketpair()
    with wakeup, theirs:
        wakeup.setblocking(False)
        theirs.setblocking(False)
        before = {
            number: signal.signal(number, lambda number, _: received.append(signal.Signals(number)))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        fd = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        try:
            yield wakeup, received
        finally:
            signal.set_wakeup_fd(fd)
            for number, handler in before.items():
                signal.signal(number, handler)

"""This process as the holder of its runs: its name, its heartbeats, and how to tell that another holder is dead.

A lease alone would leave the runs of a killed process open for the lease's whole length. So the holder's name says on
which machine and as which process a run is held: on the same machine the process is looked for instead.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from everthread.core.clock import Clock
from everthread.core.errors import StoreError
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.turn_events import TurnEvent
from everthread.core.turns import Turn
from everthread.runs.event_log import EventLog

LEASE_SECONDS: Final = 30.0
"""A holder on another machine is taken for dead this long after its last heartbeat."""
HEARTBEAT_SECONDS: Final = 2.0
"""Also how long a stop that was requested in another process takes to arrive."""
POLL_SECONDS: Final = 0.25
"""How often a run of another process is looked at by those who wait for it."""


@dataclass(slots=True, eq=False)
class LiveRun:
    """A run in this process, detached from whoever began it: readers come and go, the run goes on."""

    id: str
    ref: Ref
    event_log: EventLog
    task: asyncio.Task[None] | None = None
    has_begun: bool = False
    """Whether the task has reached its `try`: cancelled before, it would never run, and leave the row open."""

    def listen(self, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Every event after a number, to the end."""
        return self.event_log.listen(after)

    def batches(self, after: int = 0, pause_seconds: float = 0.0) -> AsyncIterator[Sequence[TurnEvent]]:
        """The same in batches of whatever is ready."""
        return self.event_log.batches(after, pause_seconds)

    def stop(self) -> None:
        """End it as cancelled; what it has said is kept."""
        if self.task is None or self.task.done():
            return
        if self.has_begun:
            self.task.cancel()
        else:
            self.task.get_loop().call_soon(self.stop)

    async def wait(self) -> None:
        """Wait for its end."""
        if self.task is not None:
            await asyncio.wait([self.task])


@dataclass(slots=True, eq=False)
class Leases:
    """The runs of this process. While there are any, their leases are renewed."""

    store: Store
    clock: Clock
    holder: str = field(default_factory=lambda: _holder_name())
    live: dict[str, LiveRun] = field(default_factory=dict)
    _heartbeat: asyncio.Task[None] | None = None
    _ends: dict[Ref, asyncio.Event] = field(default_factory=dict)

    @property
    def lease_until(self) -> datetime:
        return self.clock() + timedelta(seconds=LEASE_SECONDS)

    def add(self, run: LiveRun) -> None:
        """A run begins, or waits, here."""
        self.live[run.id] = run
        if self._heartbeat is None or self._heartbeat.done():
            self._heartbeat = asyncio.create_task(self._renew())

    def remove(self, run: LiveRun) -> None:
        """It has ended."""
        self.live.pop(run.id, None)
        if (end := self._ends.pop(run.ref, None)) is not None:
            end.set()
        if not self.live and self._heartbeat is not None:
            self._heartbeat.cancel()
            self._heartbeat = None

    async def wait_for_end(self, ref: Ref, seconds: float) -> None:
        """Wait until a run of this conversation has ended here, at most so long."""
        end = self._ends.setdefault(ref, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await end.wait()

    def stop(self, id: str) -> bool:
        """Stop a run; False when it is not one of this process."""
        run = self.live.get(id)
        if run is not None:
            run.stop()
        return run is not None

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            with suppress(StoreError):  # busy or unreachable now: the next heartbeat tries again
                for id in await self.store.turns.renew(self.holder, self.lease_until):
                    self.stop(id)


def is_dead(turn: Turn, now: datetime) -> bool:
    """Whether the process that holds a run will not come back to it."""
    if turn.lease_until is None or turn.lease_until < now:
        return True
    machine, pid, started, _ = (*turn.holder.split("|"), "", "", "")[:4]
    return machine == _machine() and pid.isdigit() and not _is_running(int(pid), started)


def _holder_name() -> str:
    return "|".join((_machine(), str(os.getpid()), _start_time(os.getpid()), new_id()))


def _machine() -> str:
    """The host, and on Linux the pid namespace: containers may share a host name and not see each other's processes."""
    with suppress(OSError):
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').readlink()}"
    return socket.gethostname()


def _start_time(pid: int) -> str:
    """When a process started, where the system tells: its pid may have been reused since."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    return ""


def _is_running(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, but it exists
        pass
    return started == _start_time(pid)

"""The process as the one that runs turns: its name, its signs of life, and how one tells that another is dead.

A lease alone would leave the turns of a killed process open for its whole length. So the name says on which machine and
as which process a turn runs: where the process can be looked for, the answer is known at once.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everthread.core.clock import Clock
from everthread.core.errors import StoreError
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.turns import Turn

if TYPE_CHECKING:
    from everthread.turn.live import LiveTurn

LEASE_SECONDS: Final = 30.0
"""So long after its last sign of life a process is taken for dead, where it cannot be looked for."""
BEAT_SECONDS: Final = 2.0
"""How often it gives one; also how long a word to stop takes to come from another process."""
POLL_SECONDS: Final = 0.25
"""How often who waits for a turn of another process looks whether it has ended."""


def _machine() -> str:
    """This machine, and on Linux the set of processes that can see each other: containers may share a name."""
    with suppress(OSError):
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').readlink()}"
    return socket.gethostname()


def _born(pid: int) -> str:
    """When a process began, where that can be seen: its number may be another's by now."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    return ""


def _own_name() -> str:
    return "|".join((_machine(), str(os.getpid()), _born(os.getpid()), new_id()))


def is_dead(turn: Turn, now: datetime) -> bool:
    """Whether the process that holds a turn will not come back to it."""
    if turn.lease_until is None or turn.lease_until < now:
        return True
    machine, pid, born, _ = (*turn.holder.split("|"), "", "", "")[:4]
    return machine == _machine() and pid.isdigit() and not _lives(int(pid), born)


def _lives(pid: int, born: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, but there
        pass
    return born == _born(pid)


@dataclass(slots=True, eq=False)
class Presence:
    """The turns that run here. While there are any, the store hears of us."""

    store: Store
    clock: Clock
    holder: str = field(default_factory=_own_name)
    live: dict[str, LiveTurn] = field(default_factory=dict)
    _beat: asyncio.Task[None] | None = None
    _ended: dict[Ref, asyncio.Event] = field(default_factory=dict)

    @property
    def lease_until(self) -> datetime:
        return self.clock() + timedelta(seconds=LEASE_SECONDS)

    def enter(self, turn: LiveTurn) -> None:
        """A turn begins, or waits, here."""
        self.live[turn.id] = turn
        if self._beat is None or self._beat.done():
            self._beat = asyncio.create_task(self._keep_beating())

    def leave(self, turn: LiveTurn, ref: Ref) -> None:
        """It has ended."""
        self.live.pop(turn.id, None)
        if (waiting := self._ended.pop(ref, None)) is not None:
            waiting.set()
        if not self.live and self._beat is not None:
            self._beat.cancel()
            self._beat = None

    async def some_end(self, ref: Ref, seconds: float) -> None:
        """Wait until a turn of this conversation has ended here, or so long."""
        event = self._ended.setdefault(ref, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    def stop(self, id: str) -> bool:
        """Stop a turn that is here; whether it is."""
        turn = self.live.get(id)
        if turn is not None:
            turn.stop()
        return turn is not None

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with suppress(StoreError):  # what is busy or away now is asked again at the next beat
                for id in await self.store.renew_turns(self.holder, self.lease_until):
                    self.stop(id)

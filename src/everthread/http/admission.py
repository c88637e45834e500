"""How many turns may run at once in this process, and the line of those that wait.

Beyond what one core can do, more turns at once only make all of them slower. So a turn runs in a slot. When all slots
are taken, a request waits in line, before anything of it is stored; after some seconds, or when the line is full, it is
refused with 503.

- The line is fair between owners: slots that become free go round them, one to each, and where the line is full, the
  newest request of the owner with the most in it gives way.
- The turns of one conversation run one after the other, so they share a slot: who wants to interrupt a turn need not
  wait for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

from everthread.http.errors import RETRY_AFTER_SECONDS, HttpProblem

Refusal = Literal["full", "timeout", "stopping"]
Outcome = Literal["admitted", Refusal]
_Key = tuple[str, str] | object
"""The holder of a slot: an owner's conversation, or a request that has none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """How many may run, how many may wait, and how long."""

    running: int = 0
    """0 means any number."""
    waiting: int = 0
    wait_seconds: float = 0.0


class Slot:
    """The right to run. Free again once its block has been left and every task that holds it has ended."""

    __slots__ = ("_admission", "_holders", "_key")

    def __init__(self, admission: Admission, key: _Key) -> None:
        self._admission = admission
        self._key = key
        self._holders = 1

    def hold(self, task: asyncio.Task[None] | None) -> None:
        """Keep the slot until this task has ended; None for a turn that does not run here."""
        if task is not None:
            self._holders += 1
            task.add_done_callback(self.release)

    def release(self, _: object = None) -> None:
        self._holders -= 1
        if not self._holders:
            self._admission._leave(self._key)


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request in line."""

    key: _Key
    answer: asyncio.Future[HttpProblem | None]
    """None once it is admitted, or the reason why it was not."""

    @property
    def is_admitted(self) -> bool:
        return self.answer.done() and not self.answer.cancelled() and self.answer.result() is None


class Admission:
    """The slots of one process, and the line before them."""

    def __init__(self, limits: AdmissionLimits | None = None, count: Callable[[Outcome], None] | None = None) -> None:
        self._limits = limits or AdmissionLimits()
        self._count = count or (lambda _: None)
        """Called with the outcome of each request."""
        self._holders: Counter[_Key] = Counter()
        """How many turns share each slot."""
        self._line: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        """The waiting requests, by owner; the next owner comes first."""
        self._blocks = 0
        """How many have a slot and are beginning their turn."""
        self.open()

    def open(self) -> None:
        """Admit again after a `close`: an app may be started more than once, each time in a loop of its own."""
        self._is_closed = False
        self._block_left = asyncio.Event()

    @property
    def running(self) -> int:
        """How many slots are taken."""
        return len(self._holders)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._line.values()))

    @asynccontextmanager
    async def slot(self, owner: str, conversation: str | None) -> AsyncIterator[Slot]:
        """A slot for this block and for the tasks it is given to; waits for one, or raises an HttpProblem."""
        key: _Key = object() if conversation is None else (owner, conversation)
        await self._enter(owner, key)
        slot = Slot(self, key)
        self._blocks += 1
        try:
            yield slot
        finally:
            self._blocks -= 1
            self._block_left.set()
            slot.release()

    def close(self) -> None:
        """Admit no more requests, not even waiting ones: the server is about to stop."""
        self._is_closed = True
        for waiter in [one for line in self._line.values() for one in line]:
            self._refuse(waiter, "stopping")
        self._line.clear()

    async def wait_for_blocks(self) -> None:
        """After `close`: wait until those who had been admitted have begun their turns."""
        while self._blocks:
            self._block_left.clear()
            await self._block_left.wait()

    async def _enter(self, owner: str, key: _Key) -> None:
        if self._is_closed:
            raise self._problem("stopping")
        if key in self._holders:
            if self._limits.running and self._holders[key] > self._limits.waiting:
                raise self._problem("full")
            self._admit(key)
        elif not self._limits.running or (self.running < self._limits.running and not self._line):
            self._admit(key)
        else:
            await self._wait(owner, key)

    def _admit(self, key: _Key) -> None:
        self._holders[key] += 1
        self._count("admitted")

    def _leave(self, key: _Key) -> None:
        self._holders[key] -= 1
        if not self._holders[key]:
            del self._holders[key]
        while self._line and self.running < self._limits.running:
            owner, waiters = next(iter(self._line.items()))
            waiter = waiters.popleft()
            if waiters:
                self._line.move_to_end(owner)
            else:
                del self._line[owner]
            if not waiter.answer.done():  # else it was cancelled a moment ago
                self._admit(waiter.key)
                waiter.answer.set_result(None)

    async def _wait(self, owner: str, key: _Key) -> None:
        if self.waiting >= self._limits.waiting:
            self._make_room_for(owner)
        waiter = _Waiter(key, asyncio.get_running_loop().create_future())
        self._line.setdefault(owner, deque()).append(waiter)
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                problem = await waiter.answer
        except TimeoutError:
            if waiter.is_admitted:  # at the last moment
                return
            self._remove(owner, waiter)
            raise self._problem("timeout") from None
        except asyncio.CancelledError:
            if waiter.is_admitted:
                self._leave(key)
            self._remove(owner, waiter)
            raise
        if problem is not None:
            raise problem

    def _make_room_for(self, owner: str) -> None:
        """Refuse the newest request of the owner with the most in line; raise if that would be this owner."""
        longest = max(self._line, key=lambda one: len(self._line[one]), default=owner)
        if len(self._line.get(longest, ())) <= len(self._line.get(owner, ())) + 1:
            raise self._problem("full")
        self._refuse(self._line[longest].pop(), "full")

    def _remove(self, owner: str, waiter: _Waiter) -> None:
        if (waiters := self._line.get(owner)) is not None and waiter in waiters:
            waiters.remove(waiter)
            if not waiters:
                del self._line[owner]

    def _refuse(self, waiter: _Waiter, why: Refusal) -> None:
        if not waiter.answer.done():
            waiter.answer.set_result(self._problem(why))

    def _problem(self, why: Refusal) -> HttpProblem:
        self._count(why)
        return stopping_problem() if why == "stopping" else _too_busy()


def _too_busy() -> HttpProblem:
    return HttpProblem(
        503,
        "too_busy",
        "too many conversations at once; try again",
        next_step="Send the same request again after the seconds in Retry-After.",
        retryable=True,
        headers={"Retry-After": "2"},
    )


def stopping_problem() -> HttpProblem:
    """The problem for requests that a stopping server no longer starts."""
    return HttpProblem(
        503,
        "stopping",
        "the server is shutting down",
        next_step="Send it again: another instance, or this one once it is back, will take it.",
        retryable=True,
        headers={"Retry-After": str(RETRY_AFTER_SECONDS), "Connection": "close"},
    )

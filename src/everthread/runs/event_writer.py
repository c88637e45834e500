"""Stores the new events of all runs of this process together: one small commit at most every 20 ms, however many runs
there are. What comes after a silence is stored at once. Where many runs speak at once, commits are up to 50 ms apart,
so that a row, and a write to each reader, holds more than one token.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from everthread.core.errors import StoreError
from everthread.core.nouns import Ref
from everthread.core.turns import Turns
from everthread.runs.event_log import EventLog

COMMIT_SECONDS: Final = 0.02
_MOST_COMMIT_SECONDS: Final = 0.05
_SECONDS_PER_RUN: Final = 0.001
"""Each active run delays the next commit by so much: a row costs nearly the same however many tokens it holds."""
_RETRY_SECONDS: Final = 0.25
"""The pause between attempts while the store is busy, full or unreachable."""
_LOG = logging.getLogger("everthread.runs")


class EventWriter:
    """The one task that stores the events of running runs."""

    def __init__(self, turns: Turns, holder: str, stop_run: Callable[[Ref, str], None]) -> None:
        """`stop_run` stops runs that another process has taken over, and those that emit what cannot be stored."""
        self._turns = turns
        self._holder = holder
        self._stop_run = stop_run
        self._due: dict[tuple[Ref, str], EventLog[Any]] = {}
        self._task: asyncio.Task[None] | None = None
        self._commit_done = asyncio.Event()
        self._commit_done.set()
        self._next_at = 0.0

    def announce(self, log: EventLog[Any]) -> None:
        """A run has new events."""
        self._due[log.ref, log.run_id] = log
        if self._task is None:
            self._task = asyncio.create_task(self._store_all(), name="run events")

    async def settle(self, log: EventLog[Any]) -> None:
        """Store no more events of a run that ends, once this returns: its last transaction stores the rest."""
        self._due.pop((log.ref, log.run_id), None)
        await self._commit_done.wait()
        self._due.pop((log.ref, log.run_id), None)  # put back by a commit that failed

    async def _store_all(self) -> None:
        try:
            await self._store_while_due()
        finally:
            self._task = None

    async def _store_while_due(self) -> None:
        loop = asyncio.get_running_loop()
        while self._due:
            await asyncio.sleep(max(0.0, self._next_at - loop.time()))
            logs, self._due = self._due, {}
            pause = min(COMMIT_SECONDS + _SECONDS_PER_RUN * (len(logs) - 1), _MOST_COMMIT_SECONDS)
            self._next_at = loop.time() + pause
            self._commit_done.clear()
            try:
                await self._store(logs)
            finally:
                self._commit_done.set()

    async def _store(self, logs: dict[tuple[Ref, str], EventLog[Any]]) -> None:
        batches = []
        for log in logs.values():
            try:
                if (batch := log.take_unstored()) is not None:
                    batches.append((log, batch))
            except Exception as problem:  # noqa: BLE001 - the worker loop: what one run emits must not hold up the others
                _LOG.error("an event cannot be stored; its run is stopped", exc_info=problem, extra={"run": log.run_id})
                self._stop_run(log.ref, log.run_id)
        if not batches:
            return
        try:
            lost = await self._turns.add_events(self._holder, [(log.ref, batch) for log, batch in batches])
        except StoreError as problem:
            _LOG.warning("run events could not be stored yet", exc_info=problem, extra={"runs": len(batches)})
            self._due = {**logs, **self._due}
            self._next_at += _RETRY_SECONDS
            return
        for log, batch in batches:
            if batch.turn_id in lost:
                self._stop_run(log.ref, log.run_id)
            else:
                log.mark_stored(batch.last)

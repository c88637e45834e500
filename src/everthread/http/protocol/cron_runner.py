"""Starts the runs of crons when they are due.

Every server process looks after all crons. A run that is due gets its ids from the cron and the minute, so several
processes start it once, and another process takes over from one that died. Runs missed while no server was running
are made up for by one run, if they are less than a day old.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from everthread.core.cancellation import wait_for_event
from everthread.core.clock import system_clock
from everthread.core.errors import EverthreadError, StoreError, TurnRunning
from everthread.http.errors import HttpProblem
from everthread.http.protocol import crons
from everthread.http.protocol.cron_schedule import last_tick, next_tick
from everthread.http.protocol.runs import StatelessIds, start_run, start_stateless
from everthread.http.protocol.server_state import ProtocolState

_POLL_SECONDS = 5.0
"""How late a cron may start that was made on another server."""
_MADE_UP_FOR = timedelta(days=1)
_WRITTEN_WITHIN = timedelta(hours=1)
"""How long after the list of owners a new owner's first cron may be written."""
_IDS = UUID("4f0e8a5c-7f0c-5f2e-9a53-6b1d0c4a2f11")
_LOG = logging.getLogger("everthread.http.protocol")


class CronRunner:
    """The crons of a database, as one server process runs them."""

    def __init__(self, state: ProtocolState) -> None:
        self._state = state
        self._handled: dict[tuple[str, str], datetime] = {}
        """When each cron was last due, of those that were handled here."""

    async def run(self) -> None:
        """Start crons until cancelled."""
        changed = self._state.crons_changed
        while True:
            changed.clear()
            wait = _POLL_SECONDS
            try:
                wait = min(wait, await self.start_due(system_clock()))
            except Exception:  # noqa: BLE001 - the worker loop: whatever it was, the other crons go on
                _LOG.warning("cannot look after crons, trying again", exc_info=True)
            await wait_for_event(changed, wait)

    async def start_due(self, now: datetime) -> float:
        """Start what is due; returns after how many seconds something is due next."""
        items = self._state.graphs.et.store.items
        handled: dict[tuple[str, str], datetime] = {}
        wait = _POLL_SECONDS
        for owner, written_at in (await crons.owners(items)).items():
            found = await crons.all_crons(items, owner)
            if not found and now - written_at > _WRITTEN_WITHIN:
                await crons.forget_owner(items, owner)
            for cron in found:
                due, key = _due(cron, now), (owner, cron["cron_id"])
                if due is not None and (self._handled.get(key) == due or await self._start(owner, cron, due)):
                    handled[key] = due
                coming = next_tick(cron["schedule"], cron["timezone"], now)
                if coming is not None:
                    wait = min(wait, (coming - now).total_seconds())
        self._handled = handled
        return max(wait, 0.01)

    async def _start(self, owner: str, cron: Mapping[str, Any], due: datetime) -> bool:
        """Start a run; returns False if it is to be tried again."""
        graphs, graph_runs = self._state.graphs, self._state.graph_runs
        name = f"{owner}\n{cron['cron_id']}\n{due.isoformat()}"
        run_id = str(uuid5(_IDS, name))
        extra = {"cron_id": cron["cron_id"], "run_id": run_id}
        try:
            if not await crons.has_valid_key(graphs.et.store.api_keys, cron):
                _LOG.warning(
                    "a cron's run is not started: the key that the cron was made with was revoked", extra=extra
                )
                return True
            body = crons.cron_run(cron)
            if cron["thread_id"] is not None:
                await start_run(graphs, graph_runs, owner, cron["thread_id"], body, run_id=run_id)
            else:
                ids = StatelessIds(str(uuid5(_IDS, f"{name}\nthread")), run_id)
                await start_stateless(graphs, graph_runs, owner, body, ids)
        except TurnRunning:  # another process has started it, or its thread is busy and it must not wait
            return True
        except (HttpProblem, StoreError) as problem:  # no slot is free, or the database is away
            _LOG.warning("a cron's run could not be started yet: %s", problem, extra=extra)
            return False
        except (EverthreadError, ValueError) as problem:
            _LOG.warning("a cron's run could not be started: %s", problem, extra=extra)
        return True


def _due(cron: Mapping[str, Any], now: datetime) -> datetime | None:
    """The minute whose run must have been started by now, if there is one."""
    due = last_tick(cron["schedule"], cron["timezone"], now)
    if due is None or due <= max(cron["updated_at"], now - _MADE_UP_FOR) or crons.is_over(cron, due):
        return None
    return due

"""The runs of this process: tasks of the server, never of a connection.

A run is stored, waits for those before it on its thread, runs, and ends in a final state, whoever listens. Its row says
which process holds it and until when; the runs of a process that died are closed by the next one that looks. Nothing
runs twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from everthread.core.cancellation import finish_despite_cancel
from everthread.core.clock import Clock, system_clock
from everthread.core.errors import EverthreadError, TurnLost
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn, TurnQuery, TurnState
from everthread.history.turn_intents import BeginResult, FinishTurn
from everthread.http.protocol.builtin_assistant import NAME, BuiltinAssistant, is_builtin_run
from everthread.http.protocol.event_log import RunEvent, RunEventLog, read_stored_events
from everthread.http.protocol.graph_stream import END, ERROR, error_body, run_graph
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_intents import ROLLBACK, RUN_KIND, BeginRun, HideRun, StartRun, StopRun
from everthread.http.protocol.run_request import RunRequest
from everthread.http.protocol.serialization import dumps
from everthread.runs.close import close_run
from everthread.runs.leases import Leases, is_dead

_LOG = logging.getLogger("everthread.http.protocol")
LEASE = timedelta(seconds=10)
"""How long a run counts as alive after the last heartbeat of its process."""
_HEARTBEAT_SECONDS = 2.0
_POLL_SECONDS = 0.25
"""How often a run in another process is looked at."""
_STOPPED = "the server stopped while this run was running; its events up to then are kept"


@dataclass(slots=True)
class _LiveRun:
    """A run that waits or runs here."""

    ref: Ref
    task: asyncio.Task[None] | None = None
    log: RunEventLog | None = None
    """Set when it starts to run."""


class RunEngine:
    """Starts, follows and stops runs."""

    def __init__(
        self, graphs: OpenGraphs, builtin: BuiltinAssistant | None = None, clock: Clock = system_clock
    ) -> None:
        self._graphs = graphs
        self._builtin = builtin
        self._store = graphs.et.store
        self._clock = clock
        self._holder = Leases(store=self._store, clock=clock).holder
        self._live: dict[str, _LiveRun] = {}
        self._run_ended = asyncio.Condition()
        self._heartbeat: asyncio.Task[None] | None = None
        self._is_stopping = False

    # -- starting ------------------------------------------------------------------------------------------

    async def begin(self, ref: Ref, request: RunRequest) -> Turn:
        """Store a run and start its task. TurnRunning when the thread is busy and the run must not wait."""
        if self._builtin is not None and request.graph_id == NAME:
            return await self._builtin.begin(await self._graphs.et.conversations.get(ref.id, ref.owner), request)
        id, now = new_id(), self._clock()
        row = Turn(
            id=id,
            conversation_id=ref.id,
            state=TurnState.RECEIVED,
            question_id=id,
            answer_id=id,
            received_at=now,
            kind=RUN_KIND,
            assistant=request.assistant_id,
            metadata=request.row_metadata(),
            holder=self._holder,
            lease_until=now + LEASE,
        )
        begun: BeginResult = await self._store.log.write(ref, BeginRun(turn=row, strategy=request.strategy))
        if request.strategy != "enqueue":
            for earlier in begun.before:
                self._cancel(earlier.id)
        live = self._live[id] = _LiveRun(ref)
        live.task = asyncio.create_task(self._run_to_end(begun.turn, request, live), name=f"run {id}")
        self.open()
        return begun.turn

    async def _run_to_end(self, turn: Turn, request: RunRequest, live: _LiveRun) -> None:
        """From waiting to the end. What goes wrong ends this run, never the server."""
        try:
            if await self._wait_for_start(live.ref, turn):
                live.log = RunEventLog(self._store.turns, live.ref, turn.id, self._holder)
                await self._run(turn, request, live.ref, live.log)
        except EverthreadError as problem:  # another process took the row, or the thread was erased
            _LOG.warning("run lost", exc_info=problem, extra={"run_id": turn.id})
        finally:
            del self._live[turn.id]
            if live.log is not None:
                live.log.release()
            async with self._run_ended:
                self._run_ended.notify_all()

    async def _wait_for_start(self, ref: Ref, turn: Turn) -> bool:
        """Wait for the runs before it; False when it was stopped meanwhile."""
        while turn.state is TurnState.RECEIVED:
            try:
                await self._until_a_run_ends(_POLL_SECONDS)
            except asyncio.CancelledError:
                with suppress(TurnLost):  # its row says already that it was stopped
                    await self._finish(ref, turn.id, TurnState.INTERRUPTED, _STOPPED)
                raise
            turn = await self._store.log.write(ref, StartRun(turn=turn))
        return turn.state is TurnState.RUNNING

    async def _until_a_run_ends(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._run_ended:
                await self._run_ended.wait()

    async def _run(self, turn: Turn, request: RunRequest, ref: Ref, log: RunEventLog) -> None:
        state, error = TurnState.COMPLETE, None
        config = request.run_config(ref.id, turn.id)
        try:
            async with self._graphs.open(request.graph_id, ref.owner, config) as graph:
                await run_graph(graph, request, config, log)
        except asyncio.CancelledError:
            state, error = (TurnState.INTERRUPTED, _STOPPED) if self._is_stopping else (TurnState.CANCELLED, None)
        except Exception as problem:  # noqa: BLE001 - the stream's edge: a graph may raise anything
            _LOG.info("run failed", exc_info=problem, extra={"run_id": turn.id})
            state, error = TurnState.FAILED, dumps(error_body(problem)).decode()
        await finish_despite_cancel(self._close(ref, turn.id, state, error, log))
        if request.is_temporary:
            await (await self._graphs.et.conversations.get(ref.id, ref.owner)).delete()

    async def _close(self, ref: Ref, id: str, state: TurnState, error: str | None, log: RunEventLog) -> None:
        await log.close()
        turn = await self._finish(ref, id, state, error)
        if turn.metadata.get(ROLLBACK):
            await self._graphs.saver(ref.owner).adelete_for_runs([id])

    async def _finish(self, ref: Ref, id: str, state: TurnState, error: str | None) -> Turn:
        return await self._store.log.write(ref, FinishTurn(turn_id=id, holder=self._holder, state=state, error=error))

    # -- following -----------------------------------------------------------------------------------------

    async def follow(self, ref: Ref, id: str, after: int = 0) -> AsyncIterator[Sequence[RunEvent]]:
        """A run's events after one, to its end, in batches: whether it runs here, elsewhere, or has ended.

        The last ones are `error`, where it failed, and `end`. They are made from the run's row, so they come when the
        row says that it has ended.
        """
        if (
            self._builtin is not None
            and id not in self._live
            and is_builtin_run(turn := await self._store.turns.get(ref, id))
        ):
            async for batch in self._builtin.follow(ref, turn, after):
                yield batch
            return
        while True:
            live = self._live.get(id)
            log = None if live is None else live.log
            events = None if log is None else await log.after(after)
            if log is not None and events == []:
                yield _final_events(await self.wait_for_end(ref, id), log.last, after)
                return
            if events is None:
                turn = await self._store.turns.get(ref, id)  # before its events: once it has ended, they are complete
                stored = [event async for event in read_stored_events(self._store.turns, ref, id)]
                events = [event for event in stored if event.number > after]
                if not events and turn.state.is_final:
                    yield _final_events(turn, stored[-1].number if stored else 0, after)
                    return
            if events:
                after = events[-1].number
                yield events
            else:
                await self._until_a_run_ends(_POLL_SECONDS)

    async def wait_for_end(self, ref: Ref, id: str) -> Turn:
        """The run's row, once it has ended."""
        while not (turn := await self._store.turns.get(ref, id)).state.is_final:
            await self._until_a_run_ends(_POLL_SECONDS)
        return turn

    # -- stopping ------------------------------------------------------------------------------------------

    async def stop(self, ref: Ref, id: str, how: Literal["interrupt", "rollback"] = "interrupt") -> Turn:
        """Ask a run to stop, wherever it runs; `wait_for_end` waits until it has."""
        turn = await self._store.log.write(ref, StopRun(id=id, how=how))
        self._cancel(id)
        return turn

    async def stop_all(self, ref: Ref) -> None:
        """Stop whatever waits or runs on a thread, and wait for its end."""
        states = (TurnState.RECEIVED, TurnState.RUNNING)
        found = await self._store.turns.list(TurnQuery(ref.owner, ref.id, states, None, 1000))
        for turn in found:
            await self.stop(ref, turn.id)
        for turn in found:
            await self.wait_for_end(ref, turn.id)

    async def hide(self, ref: Ref, id: str) -> None:
        """Take a run that has ended off every list."""
        await self._store.log.write(ref, HideRun(id=id))

    def _cancel(self, id: str) -> None:
        if self._builtin is not None:
            self._builtin.stop(id)
        live = self._live.get(id)
        if live is not None and live.task is not None and live.log is not None:
            live.task.cancel()

    # -- leases --------------------------------------------------------------------------------------------

    async def _send_heartbeats(self) -> None:
        """Renew the leases, which also tells which runs another process asked to stop; and close dead runs."""
        while True:
            try:
                for id in await self._store.turns.renew(self._holder, self._clock() + LEASE):
                    self._cancel(id)
                for ref, turn in await self._store.turns.unfinished():
                    if turn.kind == RUN_KIND and turn.id not in self._live and is_dead(turn, self._clock()):
                        await close_run(self._graphs.et.runtime, ref, turn)
            except EverthreadError as problem:
                _LOG.warning("run heartbeat failed", exc_info=problem)
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    def open(self) -> None:
        """Start the heartbeats."""
        if self._heartbeat is None:
            self._heartbeat = asyncio.create_task(self._send_heartbeats(), name="run heartbeats")

    async def close(self, seconds: float) -> None:
        """Give runs some seconds to end; the others are closed as interrupted."""
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            self._is_stopping = True
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            await asyncio.gather(self._heartbeat, return_exceptions=True)


def _final_events(turn: Turn, last: int, after: int) -> list[RunEvent]:
    events: list[RunEvent] = []
    if turn.error is not None:
        is_json = turn.state is TurnState.FAILED and turn.error.startswith("{")
        data = turn.error.encode() if is_json else dumps({"error": "Interrupted", "message": turn.error})
        events.append(RunEvent(last + 1, ERROR, data))
    events.append(RunEvent(last + 1 + len(events), END, b"null"))
    return [event for event in events if event.number > after]

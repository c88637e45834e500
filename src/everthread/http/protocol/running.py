"""The runs of this process: tasks of the server, never of a connection.

A run is begun, waits for those before it on its thread, runs, and ends in a final state, whoever listens. Its row says
whose it is and until when; a process that dies lets its runs be closed by the next one that starts. Nothing is run
twice.
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
from everthread.core.turns import StoredEvent, Turn, TurnQuery, TurnState
from everthread.history.turn_intents import BeginResult, FinishTurn
from everthread.http.journal import Journal, Told, kept_events
from everthread.http.protocol.asked import Asked
from everthread.http.protocol.executing import execute
from everthread.http.protocol.folding import Folding
from everthread.http.protocol.frames import END, ERROR, error_of
from everthread.http.protocol.own import NAME, Own, is_own
from everthread.http.protocol.rows import KIND, ROLLBACK, BeginRun, StartRun, StopRun
from everthread.http.protocol.served import Served
from everthread.http.protocol.wire import dumps
from everthread.runs.close import close_run
from everthread.runs.leases import Leases, is_dead

_LOG = logging.getLogger("everthread.http.protocol")
LEASE = timedelta(seconds=10)
"""How long a run is taken to be alive after its process gave a sign of life."""
_BEAT_SECONDS = 2.0
_LOOK_SECONDS = 0.25
"""How often a run that another process runs is looked at."""
STOPPED = "the server stopped while this run went on; what it said until then is kept"


@dataclass(slots=True)
class _Live:
    """A run that waits or runs here."""

    ref: Ref
    task: asyncio.Task[None] | None = None
    journal: Journal | None = None
    """Once it runs."""


class Running:
    """Begins runs, follows them, and stops them."""

    def __init__(self, served: Served, own: Own | None = None, clock: Clock = system_clock) -> None:
        self._served = served
        self._own = own
        self._store = served.et.store
        self._clock = clock
        self._holder = Leases(store=self._store, clock=clock).holder
        self._live: dict[str, _Live] = {}
        self._ended = asyncio.Condition()
        self._beating: asyncio.Task[None] | None = None
        self._is_stopping = False

    # -- beginning -----------------------------------------------------------------------------------------

    async def begin(self, ref: Ref, asked: Asked) -> Turn:
        """Keep a run and let it go; it is followed by its id. TurnRunning when it was not to wait and must."""
        if self._own is not None and asked.graph_id == NAME:
            return await self._own.begin(await self._served.et.conversations.get(ref.id, ref.owner), asked)
        turn = self._row(ref, asked)
        begun: BeginResult = await self._store.write(ref, BeginRun(turn=turn, strategy=asked.strategy))
        if asked.strategy != "enqueue":
            for one in begun.before:
                self._cancel(one.id)
        live = self._live[turn.id] = _Live(ref)
        live.task = asyncio.create_task(self._go(begun.turn, asked, live), name=f"run {turn.id}")
        self.open()
        return begun.turn

    def _row(self, ref: Ref, asked: Asked) -> Turn:
        id = new_id()
        metadata = {"metadata": asked.metadata, "kwargs": asked.kwargs(), "multitask_strategy": asked.strategy}
        now = self._clock()
        return Turn(
            id=id,
            conversation_id=ref.id,
            state=TurnState.RECEIVED,
            question_id=id,
            answer_id=id,
            received_at=now,
            kind=KIND,
            assistant=asked.assistant_id,
            metadata=metadata,
            holder=self._holder,
            lease_until=now + LEASE,
        )

    async def _go(self, turn: Turn, asked: Asked, live: _Live) -> None:
        """From waiting to the end. What goes wrong is the run's own end, never the server's."""
        try:
            if await self._is_started(live.ref, turn):
                live.journal = Journal(self._store, live.ref, turn.id, self._holder)
                await self._run(turn, asked, live.ref, live.journal)
        except EverthreadError as problem:  # its row is no longer ours, or its thread was erased
            _LOG.warning("run lost", exc_info=problem, extra={"run_id": turn.id})
        finally:
            del self._live[turn.id]
            if live.journal is not None:
                live.journal.release()
            async with self._ended:
                self._ended.notify_all()

    async def _is_started(self, ref: Ref, turn: Turn) -> bool:
        """Wait until nothing is before it; False when it was stopped meanwhile."""
        while turn.state is TurnState.RECEIVED:
            try:
                await self._until_one_ends(_LOOK_SECONDS)
            except asyncio.CancelledError:
                await self._end_waiting(ref, turn)
                raise
            turn = await self._store.write(ref, StartRun(turn=turn))
        return turn.state is TurnState.RUNNING

    async def _end_waiting(self, ref: Ref, turn: Turn) -> None:
        with suppress(TurnLost):  # it was stopped by its row
            await self._finish(ref, turn.id, TurnState.INTERRUPTED, STOPPED)

    async def _until_one_ends(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._ended:
                await self._ended.wait()

    async def _run(self, turn: Turn, asked: Asked, ref: Ref, journal: Journal) -> None:
        state, error = TurnState.COMPLETE, None
        try:
            await self._execute(turn, asked, ref, journal)
        except asyncio.CancelledError:
            state, error = (TurnState.INTERRUPTED, STOPPED) if self._is_stopping else (TurnState.CANCELLED, None)
        except Exception as problem:  # noqa: BLE001 - the stream's edge: a graph may raise anything
            _LOG.info("run failed", exc_info=problem, extra={"run_id": turn.id})
            state, error = TurnState.FAILED, dumps(error_of(problem)).decode()
        await finish_despite_cancel(self._close(ref, turn.id, state, error, journal))
        if asked.is_temporary:
            await (await self._served.et.conversations.get(ref.id, ref.owner)).delete()

    async def _execute(self, turn: Turn, asked: Asked, ref: Ref, journal: Journal) -> None:
        config = asked.run_config(ref.id, turn.id)
        async with self._served.opened(asked.graph_id, ref.owner, config) as graph:
            await execute(graph, asked, config, journal)

    async def _close(self, ref: Ref, id: str, state: TurnState, error: str | None, journal: Journal) -> None:
        await journal.close()
        turn = await self._finish(ref, id, state, error)
        if turn.metadata.get(ROLLBACK):
            await self._served.saver(ref.owner).adelete_for_runs([id])

    async def _finish(self, ref: Ref, id: str, state: TurnState, error: str | None) -> Turn:
        return await self._store.write(ref, FinishTurn(turn_id=id, holder=self._holder, state=state, error=error))

    # -- following -----------------------------------------------------------------------------------------

    async def follow(self, ref: Ref, id: str, after: int = 0) -> AsyncIterator[Sequence[Told]]:
        """What a run tells, from after an event to its end, in handfuls: live, finished, or run by another process.

        The last are `error`, where it failed, and `end`: they stand in the run's row, so they come when it has ended.
        """
        if self._own is not None and id not in self._live and is_own(turn := await self._store.turn(ref, id)):
            async for some in self._own.follow(ref, turn, after):
                yield some
            return
        while True:
            journal = self._journal(id)
            told = None if journal is None else await journal.after(after)
            if journal is not None and told == []:
                yield _last_words(await self.ended(ref, id), journal.last, after)
                return
            if told is None:
                turn = await self._store.turn(ref, id)  # before its events: of one that has ended they are complete
                told, last = await self._kept(ref, id, after)
                if not told and turn.state.is_final:
                    yield _last_words(turn, last, after)
                    return
            if told:
                after = told[-1].number
                yield told
            else:
                await self._until_one_ends(_LOOK_SECONDS)

    def _journal(self, id: str) -> Journal | None:
        live = self._live.get(id)
        return None if live is None else live.journal

    async def _kept(self, ref: Ref, id: str, after: int) -> tuple[list[Told], int]:
        """The events in the database after one, and the number of the last."""
        told = [one async for one in kept_events(self._store, ref, id, Unfolding())]
        return [one for one in told if one.number > after], told[-1].number if told else 0

    async def ended(self, ref: Ref, id: str) -> Turn:
        """The run's row when it has ended."""
        while not (turn := await self._store.turn(ref, id)).state.is_final:
            await self._until_one_ends(_LOOK_SECONDS)
        return turn

    # -- stopping ------------------------------------------------------------------------------------------

    async def stop(self, ref: Ref, id: str, how: Literal["interrupt", "rollback"] = "interrupt") -> Turn:
        """Stop a run, wherever it runs; it has ended soon, `ended` waits for it."""
        turn = await self._store.write(ref, StopRun(id=id, how=how))
        self._cancel(id)
        return turn

    async def stop_all(self, ref: Ref) -> None:
        """Stop whatever waits or runs on a thread, and wait for its end."""
        going = (TurnState.RECEIVED, TurnState.RUNNING)
        found = await self._store.turns(TurnQuery(ref.owner, ref.id, going, None, 1000))
        for turn in found:
            await self.stop(ref, turn.id)
        for turn in found:
            await self.ended(ref, turn.id)

    def _cancel(self, id: str) -> None:
        if self._own is not None:
            self._own.stop(id)
        live = self._live.get(id)
        if live is not None and live.task is not None and live.journal is not None:
            live.task.cancel()

    async def _beats(self) -> None:
        """Signs of life, by which stops that were asked for elsewhere are heard; and an end for runs of the dead."""
        while True:
            try:
                for id in await self._store.renew_turns(self._holder, self._clock() + LEASE):
                    self._cancel(id)
                await self._close_dead()
            except EverthreadError as problem:
                _LOG.warning("no sign of life", exc_info=problem)
            await asyncio.sleep(_BEAT_SECONDS)

    async def _close_dead(self) -> None:
        """Runs whose process gives no sign of life are over: what they did is kept, and not done again."""
        for ref, turn in await self._store.unfinished_turns():
            if turn.kind == KIND and turn.id not in self._live and is_dead(turn, self._clock()):
                await close_run(self._store, ref, turn)

    def open(self) -> None:
        """Begin to give signs of life, and to close what died."""
        if self._beating is None:
            self._beating = asyncio.create_task(self._beats(), name="leases of runs")

    async def close(self, seconds: float) -> None:
        """Let runs end for a while; those that do not are closed as interrupted."""
        tasks = [live.task for live in self._live.values() if live.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            self._is_stopping = True
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)


class Unfolding:
    """How the events of one run are read back."""

    def __init__(self) -> None:
        self._folding = Folding()

    def __call__(self, event: StoredEvent) -> bytes:
        return dumps(self._folding.unfold(event.kind, dict(event.body)))


def _last_words(turn: Turn, last: int, after: int) -> list[Told]:
    words = [] if turn.error is None else [Told(last + 1, ERROR, _error(turn))]
    words.append(Told(last + 1 + len(words), END, b"null"))
    return [word for word in words if word.number > after]


def _error(turn: Turn) -> bytes:
    assert turn.error is not None
    if turn.state is TurnState.FAILED and turn.error.startswith("{"):
        return turn.error.encode()
    return dumps({"error": "Interrupted", "message": turn.error})

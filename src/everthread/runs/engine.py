"""One engine for everything that runs: turns of our own agent, and graphs started through the LangGraph protocol.

A run is a task of the process, never of a connection. It is stored, waits for those before it in its conversation,
runs, and ends in a final state, with or without listeners. Its row says which process holds it and until when; the
runs of a process that died are closed by the living. Nothing runs twice.

What is run, and how its events are spelled, is a `Run`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Generic, Protocol, TypeVar

from everthread.core.cancellation import cancel_count, finish_despite_cancel, wait_for_event
from everthread.core.clock import Clock
from everthread.core.errors import Erased, EverthreadError, NotFound, StoreError, TurnLost, TurnRunning
from everthread.core.nouns import Ref
from everthread.core.turns import EVENT_RETENTION_DAYS, Turn, TurnQuery, TurnState
from everthread.history.ingest import Prepared
from everthread.history.turn_intents import (
    BeginResult,
    BeginTurn,
    FinishTurn,
    StartTurn,
    StopMode,
    StopTurn,
    unpack_messages,
)
from everthread.runs.close import close_run
from everthread.runs.event_log import E, EventCodec, EventLog, TurnEventLog
from everthread.runs.event_writer import EventWriter
from everthread.runs.holder import holder_is_dead, holder_name
from everthread.runs.stored_events import POLL_SECONDS, StoredEvents, watched
from everthread.runtime import Runtime

LEASE_SECONDS: Final = 10.0
"""A holder on another machine is taken for dead this long after its last heartbeat."""
HEARTBEAT_SECONDS: Final = 2.0
"""How often a lease is renewed. A stop that another process requested takes as long, if no notification arrives."""
_PRUNE_SECONDS: Final = 3_600.0
_END_PAUSES: Final = (0.05, 0.25, 1.0, 3.0)
"""After how long, and how often, writing the end of a run is tried again."""
_LATER_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 10.0
"""How long a run may take to stop when the process ends, since a tool may ignore the request."""
_UNFINISHED = (TurnState.RECEIVED, TurnState.RUNNING)
_MOST_UNFINISHED = 1_000
_LOG = logging.getLogger("everthread.runs")

LogT = TypeVar("LogT", bound="EventLog[Any]")
RunKey = tuple[Ref, str]
"""A run: callers may choose ids, so an id alone may name runs of several conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending(Generic[E]):
    """What is written at the end of a run."""

    events: Callable[[int], Sequence[E]]
    """The last events, from the number of the first."""
    answer_id: str | None = None
    messages: Sequence[Prepared] = ()
    texts: dict[str, str] = field(default_factory=dict)
    """The text of each message of the run, by id, as it is in the log."""
    error: str | None = None
    usage: dict[str, int] = field(default_factory=dict)


class Run(Protocol[E]):
    """What the engine runs: a turn of our own agent, or a graph."""

    async def execute(self, turn: Turn) -> None:
        """Run to the end. Raises whatever goes wrong."""

    async def ending(self, turn: Turn, state: TurnState, problem: Exception | None) -> Ending[E]:
        """What to write at the end, whatever the outcome."""

    async def ended(self, turn: Turn, state: TurnState, seconds: float) -> None:
        """Called once, when the end is written or the run was lost."""


@dataclass(slots=True, eq=False)
class LiveRun(Generic[LogT]):
    """A run in this process. It is detached from the request that began it: readers come and go, the run goes on."""

    id: str
    ref: Ref
    event_log: LogT
    task: asyncio.Task[None] | None = None
    has_begun: bool = False
    """Whether the task has reached its `try`: cancelled before, it would never run, and leave the row open."""

    def stop(self) -> None:
        """Cancel it; what it has said is kept."""
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


LiveTurn = LiveRun[TurnEventLog]
"""A turn of our own agent that runs in this process."""


class RunEngine:
    """The runs of this process, and what it does about the runs of others."""

    def __init__(self, runtime: Runtime, clock: Clock, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self.holder = holder_name()
        self.live: dict[RunKey, LiveRun[Any]] = {}
        """The runs that wait or run here."""
        self.before_closing: Callable[[Ref, Turn], Awaitable[None]] | None = None
        """Called with a graph's run whose process died, before its end is written."""
        self._runtime = runtime
        self._store = runtime.store
        self._clock = clock
        self._heartbeat_seconds = heartbeat_seconds
        self._writer = EventWriter(runtime.store.turns, self.holder, self.cancel)
        self._heartbeats: Sequence[asyncio.Task[None]] = ()
        self._beat_now = asyncio.Event()
        self._unwritten_ends: dict[RunKey, asyncio.Task[None]] = {}
        """Runs that are over, and whose end the store could not take yet."""
        self._is_open = False
        self._is_stopping = False
        self._waiting = 0
        """How many callers in this process wait for a run of another process."""

    @property
    def clock(self) -> Clock:
        return self._clock

    # -- beginning -----------------------------------------------------------------------------------------

    def announce(self, log: EventLog[Any]) -> None:
        """Have a run's new events stored; the `on_emit` of its EventLog."""
        self._writer.announce(log)

    def stored(self, ref: Ref, id: str, make_codec: Callable[[], EventCodec[E]]) -> StoredEvents[E]:
        """The events of a run from the store."""
        return StoredEvents(self._store, ref, id, make_codec)

    async def begin(
        self, ref: Ref, intent: BeginTurn, log: LogT, make_run: Callable[[LogT], Run[Any]]
    ) -> LiveRun[LogT]:
        """Store a run and start its task. TurnRunning when the conversation is busy and the run must not wait, or when
        it was begun before and is not known here: then it may run elsewhere, or be just about to run here."""
        held = replace(intent.turn, holder=self.holder, lease_until=await self._lease_until())
        begun = await self._runtime.write(ref, replace(intent, turn=held))
        turn = begun.turn
        known = self.live.get((ref, turn.id))
        if known is not None:  # the same run, begun a second time
            return known
        if not begun.is_new:
            raise TurnRunning(f"turn {turn.id!r} was begun before, and is {turn.state}; follow it instead")
        if intent.when_busy in ("interrupt", "rollback"):
            for other in begun.before:
                self.cancel(ref, other.id)
        log.add_stored(begun.events)
        live = self.live[ref, turn.id] = LiveRun(id=turn.id, ref=ref, event_log=log)
        live.task = asyncio.create_task(self._run_to_end(live, begun, make_run(log)), name=f"run {turn.id}")
        self._start_heartbeat()
        return live

    async def _run_to_end(self, live: LiveRun[Any], begun: BeginResult, run: Run[Any]) -> None:
        """Wait for the runs before this one, run it, and write its end. An error ends this run, never the process."""
        began, cancels = time.perf_counter(), cancel_count()
        turn, state = begun.turn, TurnState.COMPLETE
        problem: Exception | None = None
        unsubscribe = self._store.turns.subscribe(
            live.ref, lambda change: self._beat_now.set() if change.is_state and change.is_remote else None
        )
        live.has_begun = True
        try:
            turn = await self._wait_until_first(live.ref, begun)
            await run.execute(turn)
        except TurnLost:
            state = TurnState.INTERRUPTED
            live.event_log.lose()
        except asyncio.CancelledError:
            if cancel_count() == cancels:  # the run was not stopped: a client inside of it cancelled itself
                state, problem = TurnState.FAILED, RuntimeError("cancelled from inside")
            else:
                state = TurnState.INTERRUPTED if self._is_stopping else TurnState.CANCELLED
        except Exception as failure:  # noqa: BLE001 - the stream's edge: whatever it was, the run must end, and say so
            state, problem = TurnState.FAILED, failure
        try:
            ended = await finish_despite_cancel(self._finish(live, run, turn, state, problem))
            turn = turn if ended is None else ended
        except Exception as failure:  # noqa: BLE001 - the stream's edge: readers must not wait for ever
            _LOG.error("a run could not be ended; it is closed as if its process had died", exc_info=failure)
            live.event_log.fail(failure)
        finally:
            unsubscribe()
            del self.live[live.ref, live.id]
            self._stop_heartbeat_if_idle()
            await run.ended(turn, state, time.perf_counter() - began)

    async def _wait_until_first(self, ref: Ref, begun: BeginResult) -> Turn:
        """Wait until no other run of the conversation is before this one; those whose process died are closed."""
        turn, before = begun.turn, begun.before
        with watched(self._store, ref, state_only=True) as watch:
            while turn.state is TurnState.RECEIVED:
                watch.clear()
                now = await self._store.turns.now()
                for other in before:
                    if holder_is_dead(other, now):
                        await self._close_one(ref, other)
                waiting = await self._store.turns.get(ref, turn.id)
                if waiting.state is TurnState.RECEIVED and waiting.question is None and not waiting.is_graph_run:
                    raise Erased("the question was erased while it waited; nothing to answer")
                result = await self._runtime.write(ref, StartTurn(turn=waiting))
                turn, before = result.turn, result.before
                if before:
                    await watch.wait(POLL_SECONDS)
        return turn

    async def _finish(
        self, live: LiveRun[Any], run: Run[Any], turn: Turn, state: TurnState, problem: Exception | None
    ) -> Turn | None:
        """Write the end, and return the row as it is then; None where another process has written it, or nobody can."""
        log = live.event_log
        if turn.state is TurnState.RECEIVED and state in (TurnState.CANCELLED, TurnState.INTERRUPTED):
            with suppress(NotFound, Erased):
                turn = await self._store.turns.get(live.ref, live.id)  # it may have been started just now
                if turn.state is TurnState.RECEIVED:
                    turn = await self._runtime.write(live.ref, StopTurn(turn=turn))
            if turn.state is not TurnState.RUNNING:
                log.lose()
                return None
        await self._writer.settle(log)
        ending = await run.ending(turn, state, problem)
        waiting = [] if isinstance(problem, Erased) else unpack_messages(turn)  # nothing once its question is logged
        intent = FinishTurn(
            turn_id=turn.id,
            holder=self.holder,
            state=state,
            answer_id=ending.answer_id,
            messages=[*waiting, *ending.messages],
            error=ending.error,
            usage=ending.usage,
            events=log.end(ending.events, ending.texts),
        )
        for pause in (*_END_PAUSES, None):
            try:
                ended = await self._runtime.write(live.ref, intent)
            except TurnLost:  # closed by another process: the store has its end
                log.lose()
                return None
            except (NotFound, Erased) as gone:  # nothing is left to write to, or to read again
                ending = await run.ending(turn, TurnState.FAILED, Erased(str(gone)))
                log.end(ending.events, {})
                log.close()
                return None
            except StoreError as trouble:
                if pause is None:
                    _LOG.error("the end of a run could not be stored yet", exc_info=trouble, extra={"run_id": live.id})
                    log.fail(trouble)
                    later = asyncio.create_task(self._write_end_later(live.ref, intent))
                    self._unwritten_ends[live.ref, live.id] = later
                    return None
                await asyncio.sleep(pause)
            else:
                log.close()
                return ended
        raise AssertionError("the last attempt returns")

    async def _write_end_later(self, ref: Ref, intent: FinishTurn) -> None:
        """Keep trying to write the end of a run: the row stays this process's, and what was said is not lost."""
        try:
            while True:
                await asyncio.sleep(_LATER_SECONDS)
                with suppress(StoreError):
                    await self._runtime.write(ref, intent)
                    return
        except (TurnLost, NotFound, Erased):  # taken over, or erased: nothing is left to write
            return
        finally:
            del self._unwritten_ends[ref, intent.turn_id]
            self._stop_heartbeat_if_idle()

    # -- following -----------------------------------------------------------------------------------------

    def follow(
        self, ref: Ref, id: str, make_codec: Callable[[], EventCodec[E]], *, after: int = 0
    ) -> AsyncIterator[Sequence[E]]:
        """A run's events after a number, to its end, in batches: whether it runs here, elsewhere, or has ended."""
        live = self.live.get((ref, id))
        if live is not None:
            batches: AsyncIterator[Sequence[E]] = live.event_log.batches(after)
            return batches
        return self._follow_stored(self.stored(ref, id, make_codec), after)

    async def _follow_stored(self, stored: StoredEvents[E], after: int) -> AsyncIterator[Sequence[E]]:
        with self._watching_over():
            async for batch in stored.follow(after):
                yield batch

    async def wait_for_end(self, ref: Ref, id: str) -> Turn:
        """The run's row, once it has ended."""
        with self._watching_over(), watched(self._store, ref, state_only=True) as watch:
            while True:
                watch.clear()
                if (turn := await self._store.turns.get(ref, id)).state.is_final:
                    return turn
                await watch.wait(POLL_SECONDS)

    # -- stopping ------------------------------------------------------------------------------------------

    async def stop(self, ref: Ref, id: str, how: StopMode = "interrupt") -> Turn:
        """Ask a run to stop, wherever it runs; `wait_for_end` waits until it has. One that has ended stays as it is."""
        turn = await self._store.turns.get(ref, id)
        stopped = await self._runtime.write(ref, StopTurn(turn=turn, how=how))
        self.cancel(ref, id)
        return stopped

    async def stop_all(self, ref: Ref) -> None:
        """Stop whatever waits or runs in a conversation, and wait for its end."""
        found = await self._store.turns.list(TurnQuery(ref.owner, ref.id, _UNFINISHED, None, _MOST_UNFINISHED))
        for turn in found:
            await self.stop(ref, turn.id)
        for turn in found:
            await self.wait_for_end(ref, turn.id)

    def cancel(self, ref: Ref, id: str) -> None:
        """Stop a run at once if it is one of this process."""
        if (live := self.live.get((ref, id))) is not None:
            live.stop()

    def task(self, ref: Ref, id: str) -> asyncio.Task[None] | None:
        """The task of a run, if it is one of this process."""
        live = self.live.get((ref, id))
        return None if live is None else live.task

    # -- leases --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Watch over the runs of other processes until `close`, as a server does. Without it they are watched only
        while something runs here, or a caller here waits for a run elsewhere."""
        self._is_open, self._is_stopping = True, False
        self._start_heartbeat()

    async def close(self, seconds: float) -> None:
        """Give runs some seconds to end; the others are interrupted, with what they have said."""
        live = [run for run in self.live.values() if run.task is not None]
        tasks = [run.task for run in live if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
            self._is_stopping = True
            for run in live:
                run.stop()
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        for task in self._unwritten_ends.values():
            task.cancel()
        await asyncio.gather(*self._unwritten_ends.values(), return_exceptions=True)
        self._is_open = False
        self._stop_heartbeat()

    async def close_dead(self) -> list[Turn]:
        """Close the runs of processes that died, of all owners, and return them."""
        closed = []
        now = await self._store.turns.now()
        long_ago = self._clock() - timedelta(seconds=LEASE_SECONDS)
        for ref, turn in await self._store.turns.unfinished():
            if (ref, turn.id) in self.live or (ref, turn.id) in self._unwritten_ends:
                continue
            # One of this process's that it knows nothing of: its end could not be written. A moment is left to those
            # that are just being begun.
            is_abandoned = turn.holder == self.holder and turn.received_at < long_ago
            if is_abandoned or holder_is_dead(turn, now):
                try:
                    closed.append(await self._close_one(ref, turn))
                except (
                    EverthreadError
                ) as problem:  # neither the other runs nor the start of the process wait for this one
                    _LOG.warning("a dead run cannot be closed yet", exc_info=problem, extra={"run_id": turn.id})
        return [turn for turn in closed if turn is not None]

    async def _lease_until(self) -> datetime:
        """When a lease taken now ends."""
        return await self._store.turns.now() + timedelta(seconds=LEASE_SECONDS)

    async def _close_one(self, ref: Ref, turn: Turn) -> Turn | None:
        # Under another name than its runs: one that is begun again meanwhile must not be taken for one to run here.
        holder = f"{self.holder}/closing"
        return await close_run(
            self._runtime,
            ref,
            turn,
            holder=holder,
            lease_until=await self._lease_until(),
            before_closing=self.before_closing if turn.is_graph_run else None,
        )

    async def prune(self) -> int:
        """Delete events that are older than they are kept."""
        return await self._store.turns.prune_events(self._clock() - timedelta(days=EVENT_RETENTION_DAYS))

    @contextmanager
    def _watching_over(self) -> Iterator[None]:
        """Watch over other processes' runs while a caller waits for one of them: if its process dies, it is closed
        here."""
        self._waiting += 1
        self._start_heartbeat()
        try:
            yield
        finally:
            self._waiting -= 1
            self._stop_heartbeat_if_idle()

    def _start_heartbeat(self) -> None:
        if not self._heartbeats:  # two tasks: closing and pruning may take longer than a lease
            self._heartbeats = (
                asyncio.create_task(self._renew_leases(), name="run leases"),
                asyncio.create_task(self._close_dead_and_prune(), name="dead runs"),
            )

    def _stop_heartbeat(self) -> None:
        heartbeats, self._heartbeats = self._heartbeats, ()
        for task in heartbeats:
            task.cancel()

    def _stop_heartbeat_if_idle(self) -> None:
        if not self.live and not self._unwritten_ends and not self._is_open and not self._waiting:
            self._stop_heartbeat()

    async def _renew_leases(self) -> None:
        """Keep the runs of this process its own; this also tells which of them another process asked to stop, or took
        over while this one slept."""
        while True:
            await wait_for_event(self._beat_now, self._heartbeat_seconds)
            self._beat_now.clear()
            try:
                if self.live or self._unwritten_ends:
                    known = list(self.live)
                    held = await self._store.turns.renew(self.holder, await self._lease_until())
                    kept = {(turn.ref, turn.id) for turn in held if not turn.is_asked_to_stop}
                    for ref, id in known:
                        if (ref, id) not in kept:
                            self.cancel(ref, id)
            except Exception as problem:  # noqa: BLE001 - the worker loop: without it, others take the runs of this process
                _LOG.warning("leases were not renewed", exc_info=problem)

    async def _close_dead_and_prune(self) -> None:
        prune_at = 0.0
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            try:
                await self.close_dead()
                if time.monotonic() >= prune_at:
                    await self.prune()
                    prune_at = time.monotonic() + _PRUNE_SECONDS
            except Exception as problem:  # noqa: BLE001 - the worker loop: the next round tries again
                _LOG.warning("could not check for dead runs", exc_info=problem)

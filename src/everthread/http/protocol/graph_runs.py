"""Runs as the protocol's routes start, follow and stop them: of graphs, and of the built-in assistant, whose run is a
turn of our own agent. Both are run by the same engine (`runs/engine.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.turn_events import END, ERROR
from everthread.core.turns import RUN_KIND, Turn, TurnState
from everthread.history.ingest import Prepared
from everthread.history.turn_intents import ROLLBACK, BeginTurn, HideTurn, StopMode
from everthread.http.admission import Admission
from everthread.http.protocol.builtin_assistant import NAME, BuiltinAssistant
from everthread.http.protocol.graph_stream import error_body, run_graph
from everthread.http.protocol.graphs import OpenGraphs
from everthread.http.protocol.run_events import RunCodec, RunEvent, RunEventLog
from everthread.http.protocol.run_request import RunRequest, busy_thread
from everthread.http.protocol.run_rows import run_error
from everthread.http.protocol.serialization import dumps
from everthread.runs.close import unlogged_input
from everthread.runs.engine import Ending
from everthread.runs.stored_events import Watch, watched

_LOG = logging.getLogger("everthread.http.protocol")
_STOPPED = "the server stopped while this run was running; its events up to then are kept"


class GraphRuns:
    """Starts, follows and stops runs."""

    def __init__(self, graphs: OpenGraphs, admission: Admission, builtin: BuiltinAssistant | None = None) -> None:
        self.admission = admission
        self._graphs = graphs
        self._builtin = builtin
        self._engine = graphs.et.runs
        self._store = graphs.et.store
        self._engine.before_closing = lambda ref, turn: _roll_back(graphs, ref, turn)
        self.stop_all = self._engine.stop_all
        self.wait_for_end = self._engine.wait_for_end

    async def check(self, conversation: Conversation, request: RunRequest) -> None:
        """Raise what `begin` would raise for an invalid request, storing nothing."""
        if self._builtin is not None and request.graph_id == NAME:
            await self._builtin.check(conversation, request)
        else:
            request.graph_context(self._graphs.context_schema(request.graph_id))

    async def begin(self, ref: Ref, request: RunRequest) -> Turn:
        """Store a run and start its task. TurnRunning when the thread is busy and the run must not wait."""
        if self._builtin is not None and request.graph_id == NAME:
            return await self._builtin.begin(await self._graphs.et.conversations.get(ref.id, ref.owner), request)
        request.graph_context(self._graphs.context_schema(request.graph_id))  # refused now, not in the run
        if self._graphs.keeps_message_ids(request.graph_id):
            request = request.with_message_ids()
        engine, id = self._engine, request.run_id or new_id()
        turn = Turn(
            id=id,
            conversation_id=ref.id,
            state=TurnState.RECEIVED,
            question_id=id,
            answer_id=id,
            received_at=engine.clock(),
            kind=RUN_KIND,
            assistant=request.assistant_id,
            metadata=request.row_metadata(),
        )
        log = RunEventLog(ref, id, RunCodec(), on_emit=engine.announce, stored=engine.stored(ref, id, RunCodec))
        intent = BeginTurn(turn=turn, messages=(), when_busy=request.strategy)
        with busy_thread(ref.id, request):
            await engine.begin(ref, intent, log, lambda log: _GraphRun(self._graphs, request, ref, log))
        return await self._store.turns.get(ref, id)

    async def follow(self, ref: Ref, id: str, after: int = 0) -> AsyncIterator[Sequence[RunEvent]]:
        """A run's events after a number, to its end, in batches: whether it runs here, elsewhere, or has ended.

        The last ones are `error`, where it failed, and `end`. Where a run's events are pruned, these are made
        from its row.
        """
        turn = await self._store.turns.get(ref, id)
        if await self.is_pruned(ref, id):
            yield _final_events(turn, after)
        elif self._builtin is not None and not turn.is_graph_run:
            async for batch in self._builtin.follow(ref, turn, after):
                yield batch
        else:
            async for batch in self._engine.follow(ref, id, RunCodec, after=after):
                yield batch

    async def is_pruned(self, ref: Ref, id: str) -> bool:
        """Whether a run has ended and its events are gone."""
        turn = await self._store.turns.get(ref, id)
        return turn.state.is_final and not await self._store.turns.events(ref, id, after=0, limit=1)

    def task(self, ref: Ref, id: str) -> asyncio.Task[None] | None:
        """The task of a run, if it is one of this process."""
        return self._engine.task(ref, id)

    def watched(self, ref: Ref) -> AbstractContextManager[Watch]:
        """Watch for new runs of a thread."""
        return watched(self._store, ref, state_only=True)

    async def stop(self, ref: Ref, id: str, how: StopMode = "interrupt") -> Turn:
        """Ask a run to stop, wherever it runs; `wait_for_end` waits until it has."""
        return await self._engine.stop(ref, id, how)

    async def hide(self, ref: Ref, id: str) -> None:
        """Take a run that has ended off every list."""
        await self._graphs.et.runtime.write(ref, HideTurn(id=id))


class _GraphRun:
    """One run of a graph, as the engine runs it."""

    def __init__(self, graphs: OpenGraphs, request: RunRequest, ref: Ref, log: RunEventLog) -> None:
        self._graphs = graphs
        self._request = request
        self._ref = ref
        self._log = log

    async def execute(self, turn: Turn) -> None:
        config = self._request.run_config(self._ref.id, turn.id)
        request, owner = self._request, self._ref.owner
        opened = self._graphs.open(request.graph_id, owner, config, "threads.create_run", request.context)
        async with opened as graph:
            await run_graph(graph, self._request, config, self._log)

    async def ending(self, turn: Turn, state: TurnState, problem: Exception | None) -> Ending[RunEvent]:
        if state is not TurnState.COMPLETE:
            with suppress(NotFound):
                await _roll_back(self._graphs, self._ref, await self._graphs.et.store.turns.get(self._ref, turn.id))
        body: dict[str, Any] | None = None
        unlogged: Sequence[Prepared] = ()
        if problem is not None:
            _LOG.info("run failed", exc_info=problem, extra={"run_id": turn.id})
            body = error_body(problem)
        elif state is TurnState.INTERRUPTED:
            body = {"error": "Interrupted", "message": _STOPPED}
            unlogged = await unlogged_input(self._graphs.et.runtime, self._ref, turn)
        error = _STOPPED if state is TurnState.INTERRUPTED else None if body is None else dumps(body).decode()
        return Ending(
            events=lambda first: _end_events(first, None if body is None else dumps(body)),
            messages=unlogged,
            error=error,
        )

    async def ended(self, turn: Turn, state: TurnState, seconds: float) -> None:
        with suppress(NotFound):  # erased meanwhile
            thread = await self._graphs.et.conversations.get(self._ref.id, self._ref.owner)
            if self._request.is_temporary:
                await thread.delete()
            elif thread.title is None and not thread.off_record:
                await thread.request_title()


async def _roll_back(graphs: OpenGraphs, ref: Ref, turn: Turn) -> None:
    """Delete a run's checkpoints, if it was stopped for that. Before its end is written: then the next run begins."""
    if turn.metadata.get(ROLLBACK):
        await graphs.saver(ref.owner).adelete_for_runs([turn.id])


def _end_events(first: int, error: bytes | None) -> list[RunEvent]:
    events = [] if error is None else [RunEvent(first, ERROR, error)]
    return [*events, RunEvent(first + len(events), END, b"null")]


def _final_events(turn: Turn, after: int) -> list[RunEvent]:
    """The last events of a run whose events are pruned."""
    error = run_error(turn)
    return _end_events(after + 1, None if error is None else dumps(error))

"""A run's row in the database, the same as a turn's with the request in its metadata; and the intents that change it.

pending   received       it waits for the runs before it on its thread
running   running
success   complete       also when the graph has stopped at an interrupt: the thread is `interrupted` then
error     failed
interrupted              cancelled, or interrupted: its process died or was stopped
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from everthread.core.clock import from_micros
from everthread.core.errors import NotFound, TurnRunning
from everthread.core.log import Decision, Needs, Seen
from everthread.core.turns import Turn, TurnNeeds, TurnState
from everthread.history.intents import refuse_erased
from everthread.history.turn_intents import BeginResult

RUN_KIND = "run"
Strategy = Literal["reject", "enqueue", "interrupt", "rollback"]
RunStatus = Literal["pending", "running", "success", "error", "interrupted", "timeout"]

STATUS: Mapping[TurnState, RunStatus] = {
    TurnState.RECEIVED: "pending",
    TurnState.RUNNING: "running",
    TurnState.COMPLETE: "success",
    TurnState.FAILED: "error",
    TurnState.CANCELLED: "interrupted",
    TurnState.INTERRUPTED: "interrupted",
}
STATES_OF: Mapping[str, tuple[TurnState, ...]] = {
    status: tuple(state for state, shown in STATUS.items() if shown == status) for status in STATUS.values()
}

HIDDEN = "is_hidden"
"""In the metadata of a row that was deleted or rolled back: it is not listed any more."""
ROLLBACK = "rolls_back"
"""In the metadata of a row whose checkpoints are to be deleted when it has stopped."""


def is_visible_run(turn: Turn) -> bool:
    """Whether a row is a run, and neither deleted nor rolled back."""
    return turn.kind == RUN_KIND and not turn.metadata.get(HIDDEN)


def run_out(turn: Turn) -> dict[str, Any]:
    """A run, as the protocol shows it."""
    request = turn.metadata
    return {
        "run_id": turn.id,
        "thread_id": turn.conversation_id,
        "assistant_id": turn.assistant,
        "metadata": request.get("metadata", {}),
        "status": STATUS[turn.state],
        "kwargs": request.get("kwargs", {}),
        "multitask_strategy": request.get("multitask_strategy", "enqueue"),
        "created_at": turn.received_at,
        "updated_at": turn.ended_at or turn.started_at or turn.received_at,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginRun:
    """Store a run, running or waiting. Nothing goes to the log yet: the graph writes what it takes from the input."""

    turn: Turn
    strategy: Strategy

    def needs(self) -> Needs:
        return Needs(turns=TurnNeeds(id=self.turn.id))

    def decide(self, seen: Seen, now: int) -> Decision[BeginResult]:
        refuse_erased(seen)
        before = [turn for turn in seen.turns if not turn.state.is_final and turn.id != self.turn.id]
        if before and self.strategy == "reject":
            raise TurnRunning(
                f"run {before[0].id!r} of thread {seen.head.id!r} is running; nothing was stored. "
                "Wait for its end, or choose another multitask_strategy"
            )
        if not before:
            running = replace(self.turn, state=TurnState.RUNNING, started_at=from_micros(now))
            return Decision(result=BeginResult(running, []), turns=[running])
        stopped = [] if self.strategy == "enqueue" else [_stopped(one, now, self.strategy) for one in before]
        return Decision(result=BeginResult(self.turn, [], stopped or before), turns=[*stopped, self.turn])


def _stopped(turn: Turn, now: int, how: Strategy) -> Turn:
    """Mark a running one to be stopped; cancel a waiting run. A waiting turn is only marked: it logs its question."""
    marked = replace(turn, metadata={**turn.metadata, HIDDEN: True, ROLLBACK: True}) if how == "rollback" else turn
    if turn.state is TurnState.RECEIVED and turn.kind == RUN_KIND:
        ended_at = from_micros(now)
        return replace(marked, state=TurnState.CANCELLED, holder="", lease_until=None, question=None, ended_at=ended_at)
    return replace(marked, is_asked_to_stop=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRun:
    """Stop a run, or stop it and undo it. One that has ended stays as it is."""

    id: str
    how: Literal["interrupt", "rollback"]

    def needs(self) -> Needs:
        return Needs(turns=TurnNeeds(id=self.id))

    def decide(self, seen: Seen, now: int) -> Decision[Turn]:
        known = _find(seen, self.id)
        if known.state.is_final:
            return Decision(result=known)
        stopped = _stopped(known, now, self.how)
        return Decision(result=stopped, turns=[stopped])


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRun:
    """Start a waiting run, if nothing is before it any more."""

    turn: Turn

    def needs(self) -> Needs:
        return Needs(turns=TurnNeeds(id=self.turn.id))

    def decide(self, seen: Seen, now: int) -> Decision[Turn]:
        refuse_erased(seen)
        known = _find(seen, self.turn.id)
        if known.state is not TurnState.RECEIVED:
            return Decision(result=known)
        if any(turn.number < known.number for turn in seen.turns if not turn.state.is_final and turn.id != known.id):
            return Decision(result=known)
        running = replace(known, state=TurnState.RUNNING, started_at=from_micros(now))
        return Decision(result=running, turns=[running])


@dataclass(frozen=True, slots=True, kw_only=True)
class HideRun:
    """Hide a run that was deleted."""

    id: str

    def needs(self) -> Needs:
        return Needs(turns=TurnNeeds(id=self.id))

    def decide(self, seen: Seen, now: int) -> Decision[Turn]:
        known = _find(seen, self.id)
        hidden = replace(known, metadata={**known.metadata, HIDDEN: True})
        return Decision(result=hidden, turns=[hidden])


def _find(seen: Seen, id: str) -> Turn:
    found = next((turn for turn in seen.turns if turn.id == id), None)
    if found is None:
        raise NotFound(f"no run {id!r} of thread {seen.head.id!r}")
    return found

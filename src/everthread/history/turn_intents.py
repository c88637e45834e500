"""What may happen to a turn, each as a pure decision over what the store shows (core/log.py): its row, its messages and
its jobs are one transaction.

BeginTurn    a question is kept; its turn runs at once, or waits for those before it
StartTurn    one that waited runs now: its question enters the log
Say          a finished message enters the log, if the turn is still this process's
FinishTurn   the last of what was said, the final state, the jobs that follow
StopTurn     somebody wants it stopped: one that waits ends here, one that runs is told
CloseTurn    its process is dead: what it had told is kept, and it is interrupted
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from everthread.core.clock import from_micros
from everthread.core.errors import Conflict, NotFound, TurnLost, TurnRunning
from everthread.core.jobs import NewJob
from everthread.core.log import Decision, Needs, Seen
from everthread.core.nouns import Receipt
from everthread.core.turns import EventBatch, Turn, TurnNeeds, TurnState, WhenBusy
from everthread.history.ingest import Prepared, prepare
from everthread.history.intents import Append, refuse_erased

R = TypeVar("R")


class BeginResult(NamedTuple):
    """The result of `BeginTurn`."""

    turn: Turn
    receipts: Sequence[Receipt]
    """The receipts of the question's messages; none while the turn waits."""
    before: Sequence[Turn] = ()
    """The turns it waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTurn:
    """Store a question and start its turn, or let it wait. Repeating it for the same turn changes nothing."""

    turn: Turn
    messages: Sequence[Prepared]
    when_busy: WhenBusy = "enqueue"

    def needs(self) -> Needs:
        return _needs(self.turn.id, self.messages)

    def decide(self, seen: Seen, now: int) -> Decision[BeginResult]:
        refuse_erased(seen)
        known = _by_id(seen, self.turn.id)
        if known is not None:
            return Decision(result=BeginResult(known, [], _others(seen, known)))
        before = _others(seen, self.turn)
        if before and self.when_busy == "reject":
            raise TurnRunning(
                f"turn {before[0].id!r} of conversation {seen.head.id!r} runs; nothing was stored: "
                "wait for its end, stop it, or let this one wait with when_busy='enqueue'"
            )
        if not before:
            return _started(self.turn, self.messages, seen, now)
        waiting = replace(self.turn, state=TurnState.RECEIVED, question=pack_messages(self.messages))
        stopped = [_told_to_stop(turn) for turn in before] if self.when_busy == "interrupt" else []
        return Decision(result=BeginResult(waiting, [], before), turns=[*stopped, waiting])


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTurn:
    """Start a waiting turn if no other turn is before it; otherwise it keeps waiting."""

    turn: Turn
    """The turn as last read, with its question."""

    def needs(self) -> Needs:
        return _needs(self.turn.id, unpack_messages(self.turn))

    def decide(self, seen: Seen, now: int) -> Decision[BeginResult]:
        refuse_erased(seen)
        known = _held(seen, self.turn.id, self.turn.holder, (TurnState.RECEIVED,))
        before = [turn for turn in _others(seen, known) if turn.number < known.number]
        if before:
            return Decision(result=BeginResult(known, [], before))
        return _started(known, unpack_messages(known), seen, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendToTurn:
    """Append a turn's finished messages. Refused when another process has taken the turn over."""

    turn_id: str
    holder: str
    messages: Sequence[Prepared]

    def needs(self) -> Needs:
        return _needs(self.turn_id, self.messages)

    def decide(self, seen: Seen, now: int) -> Decision[list[Receipt]]:
        refuse_erased(seen)
        _held(seen, self.turn_id, self.holder, (TurnState.RUNNING,))
        return Append(messages=self.messages).decide(seen, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishTurn:
    """End a turn: write its last messages, its state, the follow-up jobs and its last events in one transaction."""

    turn_id: str
    holder: str
    state: TurnState
    answer_id: str | None = None
    messages: Sequence[Prepared] = ()
    error: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    jobs: Sequence[NewJob] = ()
    events: Sequence[EventBatch] = ()

    def needs(self) -> Needs:
        return _needs(self.turn_id, self.messages)

    def decide(self, seen: Seen, now: int) -> Decision[Turn]:
        refuse_erased(seen)
        known = _held(seen, self.turn_id, self.holder, (TurnState.RUNNING, TurnState.RECEIVED))
        said = Append(messages=self.messages).decide(seen, now)
        ended = replace(
            _ended(known, self.state, now, self.error), answer_id=self.answer_id or known.answer_id, usage=self.usage
        )
        return _with(said, ended)._replace(jobs=[*said.jobs, *self.jobs], events=self.events, turns=[ended])


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTurn:
    """Ask a turn to stop. A waiting turn ends at once, its question kept; a running one is flagged to stop."""

    turn: Turn

    def needs(self) -> Needs:
        return _needs(self.turn.id, unpack_messages(self.turn))

    def decide(self, seen: Seen, now: int) -> Decision[Turn]:
        refuse_erased(seen)
        known = _by_id(seen, self.turn.id)
        if known is None:
            raise NotFound(f"no turn {self.turn.id!r} in conversation {seen.head.id!r}")
        if known.state is TurnState.RECEIVED:
            return _closed(known, TurnState.CANCELLED, unpack_messages(known), seen, now, None)
        if known.state.is_final:
            return Decision(result=known)
        told = _told_to_stop(known)
        return Decision(result=told, turns=[told])


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseTurn:
    """End a turn whose process died. Its events are kept, and so is the question if the turn was still waiting.

    If it gave a sign of life since it was looked at, nothing is done: the answer is None.
    """

    turn: Turn
    """The turn as read when its process was found to be dead."""
    messages: Sequence[Prepared] = ()
    error: str = "the process that ran this turn died"

    def needs(self) -> Needs:
        return _needs(self.turn.id, [*unpack_messages(self.turn), *self.messages])

    def decide(self, seen: Seen, now: int) -> Decision[Turn | None]:
        known = _by_id(seen, self.turn.id)
        if known is None or known.state.is_final or _life(known) != _life(self.turn):
            return Decision(result=None)
        kept = [*unpack_messages(known), *self.messages]
        return _closed(known, TurnState.INTERRUPTED, kept, seen, now, self.error)


def pack_messages(messages: Sequence[Prepared]) -> bytes:
    """Messages that wait with their turn; their bytes as they came."""
    return json.dumps([[message.id, message.raw.decode("latin-1")] for message in messages]).encode()


def unpack_messages(turn: Turn) -> list[Prepared]:
    """The messages that wait with a turn."""
    kept = json.loads(turn.question or b"[]")
    return [
        prepare(raw.encode("latin-1"), field=f"messages[{index}]")._replace(id=id, has_own_id=True)
        for index, (id, raw) in enumerate(kept)
    ]


def _needs(turn_id: str, messages: Sequence[Prepared]) -> Needs:
    return Append(messages=messages).needs()._replace(turns=TurnNeeds(id=turn_id))


def _by_id(seen: Seen, id: str) -> Turn | None:
    return next((turn for turn in seen.turns if turn.id == id), None)


def _others(seen: Seen, own: Turn) -> list[Turn]:
    """Return the other waiting and running turns."""
    return [turn for turn in seen.turns if turn.id != own.id and not turn.state.is_final]


def _held(seen: Seen, id: str, holder: str, states: Sequence[TurnState]) -> Turn:
    known = _by_id(seen, id)
    if known is None or known.holder != holder or known.state not in states:
        state = "unknown" if known is None else known.state.value
        raise TurnLost(f"turn {id!r} is {state} and no longer this process's; nothing of this write was stored")
    return known


def _life(turn: Turn) -> tuple[object, ...]:
    return turn.holder, turn.lease_until, turn.state


def _told_to_stop(turn: Turn) -> Turn:
    return replace(turn, is_asked_to_stop=True)


def _started(turn: Turn, messages: Sequence[Prepared], seen: Seen, now: int) -> Decision[BeginResult]:
    if not messages and not seen.head.entry_count:
        raise Conflict(f"conversation {seen.head.id!r} is empty: there is nothing to answer; send a message")
    said = Append(messages=messages).decide(seen, now)
    running = replace(
        turn,
        state=TurnState.RUNNING,
        question=None,
        question_seq=said.result[-1].seq if said.result else None,
        started_at=from_micros(now),
    )
    return _with(said, BeginResult(running, said.result))._replace(turns=[running])


def _closed(
    turn: Turn,
    state: TurnState,
    messages: Sequence[Prepared],
    seen: Seen,
    now: int,
    error: str | None,
) -> Decision[Turn]:
    said = Append(messages=messages).decide(seen, now)
    ended = _ended(turn, state, now, error)
    return _with(said, ended)._replace(turns=[ended])


def _ended(turn: Turn, state: TurnState, now: int, error: str | None) -> Turn:
    return replace(
        turn,
        state=state,
        error=error,
        question=None,
        holder="",
        lease_until=None,
        is_asked_to_stop=False,
        ended_at=from_micros(now),
    )


def _with(decision: Decision[object], result: R) -> Decision[R]:
    """The same decision with another result."""
    return Decision(
        result=result,
        entries=decision.entries,
        texts=decision.texts,
        touches=decision.touches,
        branches=decision.branches,
        chain=decision.chain,
        changed=decision.changed,
        jobs=decision.jobs,
        compaction_check_at=decision.compaction_check_at,
    )

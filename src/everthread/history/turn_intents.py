"""What may happen to a turn, each as a pure decision over what the store shows (core/log.py): its row, its messages,
its events and its jobs are one transaction. A run of the LangGraph protocol is a turn without messages of its own.

BeginTurn      a question is kept; its turn runs at once, or waits for those before it
StartTurn      one that waited runs now: its question enters the log
AppendToTurn   a finished message enters the log, if the turn is still this process's
FinishTurn     the last of what was said, the final state, the last events
StopTurn       somebody wants it stopped: one that waits ends here, one that runs is told
TakeTurn       its process is dead: this one takes it over, so that a process that was only slow cannot go on writing
CloseTurn      what the dead process had said is kept, and the turn is interrupted
HideTurn       a run is taken off every list
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from everthread.core.clock import from_micros
from everthread.core.errors import Conflict, NotFound, TurnLost, TurnRunning
from everthread.core.jobs import NewJob
from everthread.core.log import Decision, IntentInputs, Needs
from everthread.core.nouns import Receipt
from everthread.core.turn_events import Accepted, Token, end_events, to_stored
from everthread.core.turns import (
    RESERVED_EVENTS,
    EventBatch,
    MultitaskStrategy,
    StoredEvent,
    Turn,
    TurnNeeds,
    TurnState,
)
from everthread.history.ingest import Prepared, prepare
from everthread.history.intents import Append, Fork, refuse_erased

R = TypeVar("R")

HIDDEN = "is_hidden"
"""In the metadata of a run that was deleted or rolled back: it is not listed any more."""
ROLLBACK = "rolls_back"
"""In the metadata of a run whose checkpoints are to be deleted when it has stopped."""
StopMode = Literal["interrupt", "rollback"]


class BeginResult(NamedTuple):
    """The result of `BeginTurn`."""

    turn: Turn
    receipts: Sequence[Receipt]
    """The receipts of the question's messages; none while the turn waits."""
    before: Sequence[Turn] = ()
    """The turns it waits for."""
    events: Sequence[StoredEvent] = ()
    """The events stored with its beginning."""
    is_new: bool = True
    """Whether the turn did not exist before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTurn:
    """Store a question and start its turn, or let it wait. Repeating it for the same turn changes nothing."""

    turn: Turn
    messages: Sequence[Prepared]
    when_busy: MultitaskStrategy = "enqueue"
    fork_at_seq: int | None = None
    """Answer this question again, without messages of its own: on a new branch, which is the active one from now on."""

    def needs(self) -> Needs:
        needs = _needs(self.turn.id, self.messages)
        return needs if self.fork_at_seq is None else needs._replace(seqs=[self.fork_at_seq], every_branch=True)

    def decide(self, seen: IntentInputs, now: int) -> Decision[BeginResult]:
        decision = self._begin(seen, now)
        if self.fork_at_seq is None or not decision.result.is_new:
            return decision
        forked = Fork(at_seq=self.fork_at_seq, activate=True).decide(seen, now)
        return decision._replace(
            branches=forked.branches, active=forked.active, compaction_check_at=forked.compaction_check_at
        )

    def _begin(self, seen: IntentInputs, now: int) -> Decision[BeginResult]:
        refuse_erased(seen)
        known = _by_id(seen, self.turn.id)
        if known is not None:
            return Decision(result=BeginResult(known, [], _others(seen, known), is_new=False))
        before = _others(seen, self.turn)
        if before and self.when_busy == "reject":
            raise TurnRunning(
                f"turn {before[0].id!r} of conversation {seen.head.id!r} runs; nothing was stored: "
                "wait for its end, stop it, or let this one wait with when_busy='enqueue'"
            )
        if not before:
            return _accepted(_started(self.turn, self.messages, seen, now))
        waiting = replace(self.turn, state=TurnState.RECEIVED)
        if not waiting.is_graph_run:
            waiting = replace(waiting, question=pack_messages(self.messages), reserved_events=1)
        decision = _accepted(Decision(result=BeginResult(waiting, [], before), turns=[waiting]))
        if self.when_busy == "enqueue" or self.when_busy == "reject":
            return decision
        stopped = [_stopped(turn, self.when_busy, now) for turn in before]
        return decision._replace(
            turns=[*(turn for turn, _ in stopped), *decision.turns],
            events=[*(batch for _, batches in stopped for batch in batches), *decision.events],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartTurn:
    """Start a waiting turn if no other turn is before it; otherwise it keeps waiting."""

    turn: Turn
    """The turn as last read, with its question."""

    def needs(self) -> Needs:
        return _needs(self.turn.id, unpack_messages(self.turn))

    def decide(self, seen: IntentInputs, now: int) -> Decision[BeginResult]:
        refuse_erased(seen)
        known = _require_held(seen, self.turn.id, self.turn.holder, (TurnState.RECEIVED,))
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

    def decide(self, seen: IntentInputs, now: int) -> Decision[list[Receipt]]:
        refuse_erased(seen)
        _require_held(seen, self.turn_id, self.holder, (TurnState.RUNNING,))
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

    def decide(self, seen: IntentInputs, now: int) -> Decision[Turn]:
        refuse_erased(seen)
        known = _require_held(seen, self.turn_id, self.holder, (TurnState.RUNNING, TurnState.RECEIVED))
        said = Append(messages=self.messages).decide(seen, now)
        ended = replace(
            _ended(known, self.state, now, self.error), answer_id=self.answer_id or known.answer_id, usage=self.usage
        )
        return _with(said, ended)._replace(jobs=[*said.jobs, *self.jobs], events=self.events, turns=[ended])


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTurn:
    """Ask a turn to stop. A waiting turn ends at once, its question kept; a running one is flagged to stop."""

    turn: Turn
    how: StopMode = "interrupt"

    def needs(self) -> Needs:
        return _needs(self.turn.id, unpack_messages(self.turn))

    def decide(self, seen: IntentInputs, now: int) -> Decision[Turn]:
        refuse_erased(seen)
        known = _by_id(seen, self.turn.id)
        if known is None:
            raise NotFound(f"no turn {self.turn.id!r} in conversation {seen.head.id!r}")
        if known.state.is_final:
            return Decision(result=known)
        if known.state is TurnState.RECEIVED:
            marked = _marked(known, self.how)
            return _closed(marked, TurnState.CANCELLED, unpack_messages(known), seen, now, text="", error=None)
        changed, _ = _stopped(known, self.how, now)
        return Decision(result=changed, turns=[changed])


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeTurn:
    """Take over a turn whose process died. If it gave a sign of life since it was looked at, the result is None."""

    turn: Turn
    """The turn as read when its process was found to be dead."""
    holder: str
    lease_until: datetime

    def needs(self) -> Needs:
        return _needs(self.turn.id, ())

    def decide(self, seen: IntentInputs, now: int) -> Decision[Turn | None]:
        known = _by_id(seen, self.turn.id)
        if known is None or known.state.is_final or _life(known) != _life(self.turn):
            return Decision(result=None)
        taken = replace(known, holder=self.holder, lease_until=self.lease_until)
        return Decision(result=taken, turns=[taken])


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseTurn:
    """End a turn that was taken over. Its events are kept, and so is the question if the turn was still waiting."""

    turn: Turn
    """The turn as taken."""
    messages: Sequence[Prepared] = ()
    """What it was saying."""
    unstreamed: Mapping[str, str] = field(default_factory=dict)
    """What is in the log and not in its events: the last piece of a message's text, by its id."""
    answer_id: str | None = None
    text: str = ""
    """As much as there is of the answer."""
    error: str = "the process that ran this turn died"

    def needs(self) -> Needs:
        return _needs(self.turn.id, [*unpack_messages(self.turn), *self.messages])

    def decide(self, seen: IntentInputs, now: int) -> Decision[Turn]:
        known = _require_held(seen, self.turn.id, self.turn.holder, (TurnState.RUNNING, TurnState.RECEIVED))
        kept = [*unpack_messages(known), *self.messages]
        answered = replace(known, answer_id=self.answer_id or known.answer_id)
        return _closed(
            answered,
            TurnState.INTERRUPTED,
            kept,
            seen,
            now,
            unstreamed=self.unstreamed,
            text=self.text,
            error=self.error,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HideTurn:
    """Take a run off every list."""

    id: str

    def needs(self) -> Needs:
        return _needs(self.id, ())

    def decide(self, seen: IntentInputs, now: int) -> Decision[Turn]:
        known = _by_id(seen, self.id)
        if known is None:
            raise NotFound(f"no run {self.id!r} of thread {seen.head.id!r}")
        hidden = replace(known, metadata={**known.metadata, HIDDEN: True})
        return Decision(result=hidden, turns=[hidden])


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


def _by_id(seen: IntentInputs, id: str) -> Turn | None:
    return next((turn for turn in seen.turns if turn.id == id), None)


def _others(seen: IntentInputs, own: Turn) -> list[Turn]:
    """Return the other waiting and running turns."""
    return [turn for turn in seen.turns if turn.id != own.id and not turn.state.is_final]


def _require_held(seen: IntentInputs, id: str, holder: str, states: Sequence[TurnState]) -> Turn:
    known = _by_id(seen, id)
    if known is None or known.holder != holder or known.state not in states:
        state = "unknown" if known is None else known.state.value
        raise TurnLost(f"turn {id!r} is {state} and no longer this process's; nothing of this write was stored")
    return known


def _life(turn: Turn) -> tuple[object, ...]:
    return turn.holder, turn.lease_until, turn.state


def _accepted(decision: Decision[BeginResult]) -> Decision[BeginResult]:
    """The same decision with the event that says so; a graph's first event comes from the graph."""
    turn = decision.result.turn
    if turn.is_graph_run:
        return decision
    first = Accepted(
        number=1,
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        question_id=turn.question_id,
        answer_id=turn.answer_id,
        question_seq=turn.question_seq,
    )
    batch = EventBatch(turn_id=turn.id, events=[to_stored(first)])
    return decision._replace(result=decision.result._replace(events=batch.events), events=[batch])


def _marked(turn: Turn, how: StopMode) -> Turn:
    return replace(turn, metadata={**turn.metadata, HIDDEN: True, ROLLBACK: True}) if how == "rollback" else turn


def _stopped(turn: Turn, how: StopMode, now: int) -> tuple[Turn, Sequence[EventBatch]]:
    """A turn that must make way. A graph that waits ends here; others are told: their process logs the question, and
    what was said."""
    marked = _marked(turn, how)
    if turn.state is TurnState.RECEIVED and turn.is_graph_run:
        ended = _ended(marked, TurnState.CANCELLED, now, None)
        return ended, [end_events(ended, ended.state, first=turn.reserved_events + 1)]
    return replace(marked, is_asked_to_stop=True), ()


def _started(turn: Turn, messages: Sequence[Prepared], seen: IntentInputs, now: int) -> Decision[BeginResult]:
    if not messages and not seen.head.entry_count and not turn.is_graph_run:
        raise Conflict(f"conversation {seen.head.id!r} is empty: there is nothing to answer; send a message")
    said = Append(messages=messages).decide(seen, now)
    running = replace(
        turn,
        state=TurnState.RUNNING,
        question=None,
        question_seq=said.result[-1].seq if said.result else None,
        reserved_events=RESERVED_EVENTS,
        started_at=from_micros(now),
    )
    return _with(said, BeginResult(running, said.result))._replace(turns=[running])


def _closed(
    turn: Turn,
    state: TurnState,
    messages: Sequence[Prepared],
    seen: IntentInputs,
    now: int,
    *,
    unstreamed: Mapping[str, str] = MappingProxyType({}),
    text: str,
    error: str | None,
) -> Decision[Turn]:
    """End a turn that does not run here, with the events that end its stream: nobody has seen their numbers."""
    said = Append(messages=messages).decide(seen, now)
    question_seq = turn.question_seq
    if question := unpack_messages(turn):  # it waited until now
        question_seq = said.result[len(question) - 1].seq
    ended = replace(_ended(turn, state, now, error), question_seq=question_seq)
    first = turn.reserved_events + 1
    pieces = [to_stored(Token(first + index, piece, id)) for index, (id, piece) in enumerate(unstreamed.items())]
    batch = end_events(ended, state, first=first + len(pieces), text=text, error=error)
    return _with(said, ended)._replace(turns=[ended], events=[replace(batch, events=[*pieces, *batch.events])])


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

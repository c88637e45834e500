"""A turn: one question and everything done to answer it, as a row beside the log; and what it told on the way.

    received ──▶ running ──▶ complete | failed | cancelled | interrupted

- Of one conversation at most one turn runs; the others are `received` and wait, each with its question kept here, so
  that the log reads question, answer, question, answer. A question enters the log when its turn begins to run.
- A turn belongs to the process that runs it for the time of a lease, which that process renews. When it dies, whoever
  comes next closes the turn as `interrupted`: what was said so far is kept, and nothing is done a second time.
- What happens inside is told by *events*, numbered 1, 2, 3 …, and stored in batches for some days. An event is shown
  only when it is stored, so a reader that comes back gets exactly the rest, also after the process was killed, and the
  partial text of a dead turn is found there. Batches are not synced to disk one by one: a power cut may lose the
  newest. So a turn reserves numbers ahead, synced (`reserved_events`), and whoever ends the turn of a dead process
  gives the last event a number above them, which nobody can have seen with another meaning.

Rows change by intents (`Decision.turns`), so that a turn's state commits together with the log and with its jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from everthread.core.nouns import Ref

EVENT_RETENTION_DAYS = 7
"""How long the events of a turn are kept."""

MESSAGE_KEY = "everthread"
"""Where a message's `additional_kwargs` say which turn it is of, and what it says about itself."""

RUN_KIND = "run"
"""The `kind` of a turn that was started as a run of the LangGraph protocol."""
BUILTIN_MARK = "is_own_turn"
"""In the metadata of such a run: it is a turn of our own agent, with a turn's events."""

RESERVED_EVENTS = 1_000
"""How many event numbers are reserved at a time: a synced write for each thousand tokens."""

WhenBusy = Literal["enqueue", "reject", "interrupt"]
"""What happens while another turn of the conversation runs: this one waits, or is refused, or the other is stopped."""
MultitaskStrategy = Literal["enqueue", "reject", "interrupt", "rollback"]
"""The same for runs of the LangGraph protocol; `rollback` also deletes the checkpoints of the run it stops."""

_WHOLE_WORD = 16
"""A text shorter than this only matches a whole string: "ok" occurs inside of too many others."""


class TurnState(StrEnum):
    """The state of a turn; `is_final` once it has ended.

    ```python
    page = await conv.turns(states=[everthread.TurnState.FAILED])
    print([turn.error for turn in page])
    ```
    """

    RECEIVED = "received"
    """Accepted and stored; waiting for earlier turns."""
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"
    """Ended with an error; the text so far is kept."""
    CANCELLED = "cancelled"
    """Stopped by somebody; the text so far is kept."""
    INTERRUPTED = "interrupted"
    """Its process died; the events up to there are kept."""

    @property
    def is_final(self) -> bool:
        """Whether the turn has ended."""
        return self not in (TurnState.RECEIVED, TurnState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question and everything that was done to answer it.

    ```python
    for turn in await conv.turns(limit=10):
        print(turn.id, turn.state, turn.model, dict(turn.usage))
    ```
    """

    id: str
    conversation_id: str
    state: TurnState
    question_id: str
    answer_id: str
    """The id reserved for the answer, however much of it there will be."""
    received_at: datetime
    number: int = 0
    """Rises with every turn in the database; 0 until it is stored."""
    kind: str = "turn"
    """`turn`, or another API's word for it, such as `run`."""
    assistant: str | None = None
    model: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    question: bytes | None = None
    """The question while the turn waits; once it runs, the question is in the log at `question_seq`."""
    question_seq: int | None = None
    error: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    """Tokens as reported by the provider: `input_tokens`, `output_tokens`, …"""
    holder: str = ""
    """The process that runs it or will run it; empty once it has ended."""
    lease_until: datetime | None = None
    is_asked_to_stop: bool = False
    reserved_events: int = 0
    """No event with a greater number has been shown to anybody."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_complete(self) -> bool:
        """Whether it was answered in full."""
        return self.state is TurnState.COMPLETE

    @property
    def is_graph_run(self) -> bool:
        """Whether it runs a graph of LangGraph's, whose events are the protocol's, rather than our own agent."""
        return self.kind == RUN_KIND and self.metadata.get(BUILTIN_MARK) is not True

    def tells_of(self, text: str) -> bool:
        """Whether its error or its metadata contains this text."""
        return _holds((self.error, dict(self.metadata)), text)


def input_messages(run: Turn) -> list[dict[str, Any]]:
    """The messages with ids in the input of a graph's run, as its request had them."""
    given = run.metadata.get("kwargs", {}).get("input")
    messages = given.get("messages") if isinstance(given, dict) else None
    return [
        message
        for message in (messages if isinstance(messages, list) else [messages])
        if isinstance(message, dict) and isinstance(message.get("id"), str) and message.get("type") != "remove"
    ]


def _holds(value: object, text: str) -> bool:
    if isinstance(value, str):
        return value == text or (len(text) >= _WHOLE_WORD and text in value)
    if isinstance(value, Mapping):
        return any(_holds(inner, text) for inner in value.values())
    return isinstance(value, list | tuple) and any(_holds(inner, text) for inner in value)


class StoredEvent(NamedTuple):
    """One stored event of a turn."""

    number: int
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """Consecutive events of one turn, written together because a write for each would cost too much."""

    turn_id: str
    events: Sequence[StoredEvent]
    reserved: int = 0
    """Reserve event numbers up to this one; then the write is synced to disk."""
    replaces_earlier: bool = False
    """Whether these are all events of the turn: batches stored before are deleted."""
    earlier: int = 0
    """Then: how many of them were stored before. Where none of those is left, a message of the conversation was erased
    meanwhile, and only the last events are stored: the others may quote it."""

    @property
    def first(self) -> int:
        return self.events[0].number

    @property
    def last(self) -> int:
        return self.events[-1].number

    def without_earlier(self) -> EventBatch:
        """Only the events that end the turn."""
        last = [event for event in self.events[-2:] if event.kind in ("done", "failed", "error", "end")]
        return EventBatch(turn_id=self.turn_id, events=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnNeeds:
    """The turns an intent needs to read: the waiting and running ones, and the one with this id."""

    id: str | None = None


class TurnQuery(NamedTuple):
    """Which turns to list, newest first."""

    owner: str
    conversation: str | None = None
    states: Sequence[TurnState] = ()
    """Return only turns in these states; all when empty."""
    before: int | None = None
    """Return only turns with a smaller number."""
    limit: int = 50


class HeldTurn(NamedTuple):
    """A waiting or running turn of a process."""

    ref: Ref
    id: str
    is_asked_to_stop: bool


class Change(NamedTuple):
    """Something changed about the turns of a conversation."""

    is_state: bool
    """A turn began, ended or was asked to stop; else there are only new events."""
    is_remote: bool
    """It was changed by another process."""


class Turns(Protocol):
    """Reads turns and writes their events. The turns' rows are written by intents, through `Log.write`."""

    async def get(self, ref: Ref, id: str) -> Turn:
        """Return a turn. Raises NotFound when the conversation has no turn with this id."""

    async def list(self, query: TurnQuery) -> Sequence[Turn]:
        """Return the turns that match the query, newest first."""

    async def now(self) -> datetime:
        """Return the time by the database's clock, which leases go by: those of two machines may differ."""

    async def unfinished(self) -> Sequence[tuple[Ref, Turn]]:
        """Return the waiting and running turns of all owners, oldest first."""

    async def renew(self, holder: str, until: datetime) -> Sequence[HeldTurn]:
        """Extend the leases of a process's turns, and return these turns: what it does not find among them, another
        process has taken over."""

    async def add_events(self, holder: str, batches: Sequence[tuple[Ref, EventBatch]]) -> Sequence[str]:
        """Store new events of several turns in one transaction. When this returns, they survive the death of the
        process; they are synced to disk with the next synced write.

        Storing the same batch again changes nothing. The events of turns that this process no longer holds are dropped,
        and the ids of those turns are returned.
        """

    async def events(self, ref: Ref, id: str, *, after: int, limit: int) -> Sequence[StoredEvent]:
        """Events with a greater number, in order: at least `limit` of them, if there are, and then to the batch's end.

        NotFound when this conversation has no turn by this id.
        """

    async def prune_events(self, before: datetime) -> int:
        """Delete the events stored before this time, and return the number of batches deleted."""

    def subscribe(self, ref: Ref, on_change: Callable[[Change], None]) -> Callable[[], None]:
        """Call `on_change` in this event loop when turns of this conversation change, until the function that is
        returned is called. Changes by other processes may be missed, so callers also look from time to time."""

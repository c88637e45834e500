"""What a turn tells while it runs: a union of small values, each with the number it has in its turn.

    accepted      the question is kept, and this is the turn's id
    token         a piece of the answer
    thinking      a piece of the model's reasoning
    tool_call     a tool is about to be called
    tool_result   it has answered, or failed
    compaction    a summary took the place of old messages in the model's view
    recall        what was brought back from before the window
    state         where the graph is, or what a node took and changed
    done          the turn has ended; with the answer's id and what it cost
    failed        the turn has ended with an error

Pieces of text that a slow reader has not taken yet may reach it as one; their last number stands for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from everthread.core.turns import EventBatch, StoredEvent, Turn, TurnState


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The question is kept. From here on the turn has an id and ends in a final state."""

    kind: ClassVar[Literal["accepted"]] = "accepted"
    number: int
    turn_id: str
    conversation_id: str
    question_id: str
    answer_id: str
    question_seq: int | None = None
    """None while it waits for another turn."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer."""

    kind: ClassVar[Literal["token"]] = "token"
    number: int
    text: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A piece of the model's reasoning."""

    kind: ClassVar[Literal["thinking"]] = "thinking"
    number: int
    text: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A tool is about to be called."""

    kind: ClassVar[Literal["tool_call"]] = "tool_call"
    number: int
    id: str
    name: str
    arguments: Mapping[str, Any]
    message_id: str
    """The message of the model that asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool has answered."""

    kind: ClassVar[Literal["tool_result"]] = "tool_result"
    number: int
    id: str
    """Of the call."""
    name: str
    ok: bool
    text: str
    """The beginning of it; the whole is in the log, in the message named here."""
    message_id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A summary took the place of old messages in the model's view."""

    kind: ClassVar[Literal["compaction"]] = "compaction"
    number: int
    ids: Sequence[str]
    messages: int
    """How many messages they stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What was brought back from before the window, or that it could not be."""

    kind: ClassVar[Literal["recall"]] = "recall"
    number: int
    seqs: Sequence[int] = ()
    memories: Sequence[str] = ()
    passages: int = 0
    """Of the knowledge base."""
    collection: str | None = None
    """The knowledge base that was searched, and why it was that one."""
    why: str = ""
    degraded: Sequence[str] = ()
    """Which parts failed or ran out of time; the turn goes on without them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """Where the graph is: a node has ended. With `debug`, also how long it took and what it changed."""

    kind: ClassVar[Literal["state"]] = "state"
    number: int
    node: str
    loops: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The turn has ended, answered or stopped; everything it said is in the log."""

    kind: ClassVar[Literal["done"]] = "done"
    number: int
    state: str
    answer_id: str | None
    text: str
    usage: Mapping[str, int] = field(default_factory=dict)
    loops: int = 0
    result: Mapping[str, Any] = field(default_factory=dict)
    """What the answer says about itself (`result_metadata`): pictures, what is missing, an analysis."""
    notices: Sequence[str] = field(default_factory=list)
    """What was not done as it was asked for, such as a name after an @ that nothing has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The turn has ended with an error; what it had said until then is in the log."""

    kind: ClassVar[Literal["failed"]] = "failed"
    number: int
    code: str
    message: str
    retryable: bool
    answer_id: str | None
    text: str
    """What there is of the answer."""


TurnEvent: TypeAlias = (
    Accepted | Token | Thinking | ToolCall | ToolResult | Compacted | Recall | StateChanged | Done | Failed
)
"""One event of a turn, numbered from 1. `kind` says which: `accepted`, `token`, `thinking`, `tool_call`, `tool_result`,
`compaction`, `recall`, `state`, and at the end `done` or `failed`.

```python
async for event in everthread.run_turn(conv, "Where were we?", agent=agent):
    if event.kind == "token":
        print(event.text, end="")
    elif event.kind == "failed":
        print(event.code, event.message)
```
"""

_TYPES: Mapping[str, type[Any]] = {
    one.kind: one
    for one in (Accepted, Token, Thinking, ToolCall, ToolResult, Compacted, Recall, StateChanged, Done, Failed)
}
_FIELDS = {kind: [one.name for one in fields(type_) if one.name != "number"] for kind, type_ in _TYPES.items()}
"""Their values are what JSON knows already: `asdict`, which copies them, would cost more than all the rest."""
KINDS = tuple(_TYPES)
"""The name of each kind of event."""


def to_stored(event: TurnEvent) -> StoredEvent:
    """An event as it is stored. Nearly all are tokens, so these are written without a detour."""
    if type(event) is Token:
        return StoredEvent(event.number, event.kind, {"text": event.text, "message_id": event.message_id})
    return StoredEvent(event.number, event.kind, {name: getattr(event, name) for name in _FIELDS[event.kind]})


def from_stored(one: StoredEvent) -> TurnEvent:
    """The event that was stored."""
    if one.kind not in _TYPES:  # of a run that another door began, such as a graph of LangGraph's
        return StateChanged(number=one.number, node=one.kind, details=one.body)
    event: TurnEvent = _TYPES[one.kind](number=one.number, **one.body)
    return event


# -- how a turn ends -------------------------------------------------------------------------------------------------

END = "end"
"""The last event of a run of LangGraph's."""
ERROR = "error"
WHOLE = "="
"""The member of a stored event of such a run that holds its data in full."""


def end_events(turn: Turn, state: TurnState, *, first: int, text: str = "", error: str | None = None) -> EventBatch:
    """The last events of a turn that is not ended by the process that ran it: what its own process would have said.

    `text` is what there is of the answer, `error` why it ended.
    """
    if not turn.is_graph_run:
        answer_id = turn.answer_id if text else None
        done = Done(number=first, state=state.value, answer_id=answer_id, text=text, usage=turn.usage)
        return EventBatch(turn_id=turn.id, events=[to_stored(done)])
    events = []
    if error is not None:
        events.append(StoredEvent(first, ERROR, {WHOLE: {"error": "Interrupted", "message": error}}))
    events.append(StoredEvent(first + len(events), END, {WHOLE: None}))
    return EventBatch(turn_id=turn.id, events=events)

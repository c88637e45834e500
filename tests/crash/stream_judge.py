"""What readers of one run were told, and whether it can be true: a pure judge, which knows only what HTTP promises.

The *whole* of a run is what a reader gets who follows it from the beginning once it is over. Then:

- a number means the same event to whoever saw it (`two meanings`);
- what was seen once is still there (`vanished`), and each stream is the whole after the number it was asked for:
  ascending, nothing left out or added (`order`, `gap`);
- a stream that ends by itself ends with the run's only end event, and is empty when its reader had that (`end`);
- the text that was streamed is the text that is stored (`text`), under a state that is final (`state`);
- a question that was acknowledged is in its conversation (`lost`), and not `twice`; that of a user's graph is in its
  thread once a reader saw it in the graph's state, and when its server died (`unsaved`).

What a client found before it could be judged is counted too: no end within its patience (`waited`), an answer that is
an error (`refused`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

from tests.http.served import Event

FINAL_STATES = {"complete", "failed", "cancelled", "interrupted", "success", "error", "timeout"}


class Ending(Enum):
    """Why a connection was over."""

    BROKEN = "the server went away"
    LEFT = "the reader went away"
    ENDED = "the stream ended"


class Violation(NamedTuple):
    """What must not be, of one run."""

    kind: str
    what: str


@dataclass(slots=True, kw_only=True)
class Reading:
    """What came over one connection, after the number that it asked for."""

    after: int = 0
    events: list[Event] = field(default_factory=list)
    ending: Ending = Ending.BROKEN

    @property
    def last(self) -> int:
        return self.events[-1].number if self.events else self.after


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """A turn or a run of a graph, as its clients know it."""

    path: str
    conversation: str
    ends: frozenset[str]
    """The kinds of its end event."""
    question: str | None = None
    """What was asked in it, and acknowledged; None where an answer is given again."""
    is_graph: bool = False
    """Whether it runs a graph of the user's."""
    is_over: bool = False
    """Whether a reader has seen its end."""
    readings: list[Reading] = field(default_factory=list)
    found: list[Violation] = field(default_factory=list)
    """By its clients, on their way."""
    whole: Reading | None = None
    state: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """Of the messages in its conversation, by id."""
    questions: Sequence[str] = ()
    """Of the users in its conversation, each message once."""
    question_ids: Sequence[str] = ()
    """Theirs, for whoever has to find out why there are two."""

    def __str__(self) -> str:
        readings = (
            f"after {one.after}: {one.events[0].number if one.events else ''}..{one.last} "
            f"{one.events[-1].kind if one.events else 'nothing'}, {one.ending.value}"
            for one in self.readings
        )
        return f"{self.path} ({self.state}; {'; '.join(readings)})"

    def is_end(self, event: Event) -> bool:
        return event.kind in self.ends


def judge(run: Run) -> list[Violation]:
    """Everything that is wrong with a run, each kind once."""
    found = [*run.found, *_meanings(run), *_questions(run)]
    for reading in run.readings:
        found += _stream(run, reading)
    if run.whole is not None:
        found += _whole(run, run.whole)
    return list({one.kind: one for one in reversed(found)}.values())


def _meanings(run: Run) -> Iterator[Violation]:
    seen: dict[int, tuple[str, str]] = {}
    for reading in run.readings:
        for event in reading.events:
            meaning = event.kind, json.dumps(event.data, sort_keys=True)
            first = seen.setdefault(event.number, meaning)
            if first != meaning:
                yield Violation("two meanings", f"{event.number} is {first} and {meaning}")


def _stream(run: Run, reading: Reading) -> Iterator[Violation]:
    numbers = [event.number for event in reading.events]
    if any(later <= earlier for earlier, later in pairwise([reading.after, *numbers])):
        yield Violation("order", f"after {reading.after}: {numbers}")
    ends = [place for place, event in enumerate(reading.events) if run.is_end(event)]
    if len(ends) > 1 or (ends and ends[0] != len(numbers) - 1):
        yield Violation("end", f"{len(ends)} end events, the first is number {ends[0] + 1} of {len(numbers)}")
    if run.whole is None or not run.whole.events:
        return
    right = [event.number for event in run.whole.events if event.number > reading.after]
    if reading.ending is Ending.ENDED and not ends and right:
        yield Violation("end", f"a stream after {reading.after} ended without one, at {reading.last}")
    if reading.last > run.whole.last:
        yield Violation("vanished", f"{reading.last} was seen, and the whole ends with {run.whole.last}")
    elif numbers != (right if reading.ending is Ending.ENDED else right[: len(numbers)]):
        yield Violation("gap", f"after {reading.after} came {numbers}, and the whole has {right}")


def _whole(run: Run, whole: Reading) -> Iterator[Violation]:
    if not whole.events or not run.is_end(whole.events[-1]):
        yield Violation("end", f"the whole of {run.path} has none, but {[event.kind for event in whole.events[-2:]]}")
        return
    if run.state is not None and run.state not in FINAL_STATES:
        yield Violation("state", f"{run.state}, though its stream has ended")
    for id, text in streamed_texts(whole.events).items():
        if text != run.texts.get(id, ""):
            yield Violation("text", f"of {id} was streamed {text!r}, and stored {run.texts.get(id)!r}")
    end = whole.events[-1].data
    if isinstance(end, dict) and end.get("answer_id") and end.get("text", "") != run.texts.get(end["answer_id"], ""):
        yield Violation("text", f"the end says {end['text']!r}, and stored is {run.texts.get(end['answer_id'])!r}")
    ticks = [event.data["i"] for event in whole.events if event.kind == "custom" and "i" in event.data]
    if ticks != list(range(len(ticks))):
        yield Violation("gap", f"the graph counted {ticks}")


def _questions(run: Run) -> Iterator[Violation]:
    if run.question is None:
        return
    times = run.questions.count(run.question)
    if times > 1:
        ids = [id for id, text in zip(run.question_ids, run.questions, strict=False) if text == run.question]
        yield Violation("twice", f"{run.question!r} is in {run.conversation} {times} times: {ids}")
    elif not times and not run.is_graph:
        yield Violation("lost", f"{run.question!r} is not in {run.conversation}")
    elif not times and (_has_died(run) or _has_shown_its_input(run)):
        yield Violation("unsaved", f"{run.question!r} was accepted for {run.conversation}, and is not there")


def _has_died(run: Run) -> bool:
    """Whether its server did, according to its last events."""
    last = run.whole.events if run.whole is not None else []
    return any(event.kind == "error" and event.data.get("error") == "Interrupted" for event in last)


def _has_shown_its_input(run: Run) -> bool:
    """Whether a reader was told that it is in the graph's state: a run that is cancelled before its first step has put
    nothing there, as on LangGraph's own server."""
    seen = (event for reading in run.readings for event in reading.events if event.kind == "values")
    return any(run.question in (message["content"] for message in event.data.get("messages", ())) for event in seen)


def streamed_texts(events: Sequence[Event]) -> dict[str, str]:
    """The text of each message as it was streamed, by the message's id."""
    texts: dict[str, str] = {}
    for event in events:
        for id, text in _pieces(event):
            texts[id] = texts.get(id, "") + text
    return texts


def _pieces(event: Event) -> Iterator[tuple[str, str]]:
    data: Any = event.data
    if event.kind == "token":
        yield data["message_id"], data["text"]
    elif event.kind == "messages" and data[0].get("type") == "AIMessageChunk":
        yield data[0]["id"], _text(data[0]["content"])


def _text(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block["text"]) for block in content if block.get("type") == "text")

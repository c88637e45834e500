"""How well a conversation's memory served it: of the rare facts that somebody used again, which were in the request.

A rare fact is one that had been said in one message only, long before: an order's number, an amount, an address. When a
user's words, or the arguments of a tool's call, use it again, the model needs its source then. Either that was still in
view (its message or a summary), or recall brought it back, or it was missing. What is missing is the recall debt. No
model is asked: `trial` replays the requests.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from everthread.replay.transcript import Transcript
from everthread.text.facts import Fact

Place = Literal["view", "recalled", "missing"]
_KINDS = frozenset({"code", "date", "email", "file", "handle", "id", "money", "number", "path", "url", "version"})
"""Kinds of facts that stand for one thing. Names and titles come up in talk of anything."""
_MIN_CHARACTERS = 3
_MIN_DISTANCE = 2
"""Facts from the messages right before are not counted: they need no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactUse:
    """A rare fact that was used again, and where its source was then."""

    fact: Fact
    seq: int
    """The message that uses it."""
    source_seq: int
    """The only message that had said it before."""
    place: Place = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """How well a conversation's memory worked.

    ```python
    transcript = await read_transcript(et.store, ref)
    trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=Budget(window=32_000))
    grade = await trial.grade(await et.compaction_config.get(conv), RecallPolicy(), transcript)
    print(len(grade.beyond_view), "facts from beyond the view,", len(grade.missing), "of them missing:", grade.debt)
    ```
    """

    uses: tuple[FactUse, ...]
    """Every use of a rare fact, in order."""
    requests: int
    """How many requests were replayed."""

    @property
    def beyond_view(self) -> tuple[FactUse, ...]:
        """The uses whose source was not in view any more."""
        return tuple(use for use in self.uses if use.place != "view")

    @property
    def missing(self) -> tuple[FactUse, ...]:
        """Those that recall did not bring back either."""
        return tuple(use for use in self.uses if use.place == "missing")

    @property
    def debt(self) -> float:
        """The share of the uses beyond the view that are missing; 0 if there are none."""
        return len(self.missing) / len(self.beyond_view) if self.beyond_view else 0.0


def uses_by_request(transcript: Transcript) -> Mapping[int, list[FactUse]]:
    """The uses of rare facts, by how many messages there were when the request went out that needs the source: for a
    user's words the one that answers them, for a tool's arguments the one that the call answers."""
    ends = sorted(transcript.requests)
    said_by: dict[str, list[int]] = defaultdict(list)
    found: dict[int, list[FactUse]] = defaultdict(list)
    for at, message in enumerate(transcript.messages):
        place = bisect_left(ends, at if message.is_answer else at + 1)
        end = ends[place] if place < len(ends) else None
        for normal in sorted(message.used):
            sources = said_by[normal]
            if end is not None and _is_rare(transcript.known.get(normal), sources, at):
                seq = transcript.messages[sources[0]].seq
                use = FactUse(fact=transcript.known[normal], seq=message.seq, source_seq=seq)
                found[end].append(use)
        for normal in message.facts:
            said_by[normal].append(at)
    return found


def is_identifying(fact: Fact) -> bool:
    """Whether a fact is of a kind that stands for one thing."""
    return fact.kind in _KINDS and len(fact.normal) >= _MIN_CHARACTERS


def _is_rare(fact: Fact | None, sources: list[int], at: int) -> bool:
    is_only = fact is not None and is_identifying(fact) and len(sources) == 1
    return is_only and at - sources[0] > _MIN_DISTANCE

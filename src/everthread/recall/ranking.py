"""Put messages in the order in which they are likely to hold what is asked for, whatever kind of conversation it is.

A message's own words count as BM25 counts them, half by its best passage and half as a whole. To that comes

- what its neighbours have: a short message is understood from those around it, a long one stands for itself. More
  flows from a message that asks to the one after it. Results of tools neither lend nor borrow, and the more of a
  conversation they are, the less its messages have to do with their neighbours;
- what is talked about around it;
- meaning: the likeness of its best passage to the question, weighed by how much of the question the embedder grasps.
  What tools return is no prose, and judged by its words alone; so the more of a conversation that is, the less meaning
  may lift what is said beside it over what a tool returned;
- who said it: where speakers have names, the one that the question names; where they are bare roles, the user, who
  knows what was wanted and decided, unless the question is what the assistant said;
- when it was said, if the question names a time.

The weights are round numbers that do well on four kinds of conversation together (two people chatting, long answers
of an assistant, Chinese, a desk with tools); none is learned, and none knows of a kind by name. What differs between
kinds is measured on the messages themselves. `docs/benchmarks/recall.md` has the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import NamedTuple, overload

from everthread.core.queries import Term
from everthread.history.words import normal, tokens
from everthread.recall.asking import Asked, Reading
from everthread.recall.dates import Stretch, fit
from everthread.recall.nearness import REACH, Places, talk_around
from everthread.recall.passages import Span, estimated_tokens, passages

_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""BM25's k1 and b, at their usual values."""
_WHOLE_SHARE = 0.5
"""How much the message as a whole counts beside its best passage."""
_ENOUGH_TO_COMPARE = 10
"""From so many messages on, what is usual among them says which likeness is much."""
_TOOLS = frozenset({"tool", "function"})
_ROLES = _TOOLS | {"user", "assistant", "system", "developer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallWeights:
    """How much each signal counts; 0 turns one off."""

    neighbours: float = 0.4
    """What the next message lends of its own score, half of it at each further step."""
    asking: float = 1.5
    """How many times as much comes from a message that asks to the one after it."""
    around: float = 0.3
    meaning: float = 0.3
    """The share of meaning in words and meaning together, for a question that the embedder understands."""
    user: float = 0.3
    assistant: float = 0.5
    speaker: float = 0.3
    date: float = 0.5
    alone_tokens: int = 100
    """A message of so many tokens needs its neighbours half as much as a short one."""
    tool_damping: float = 3.0
    """How much less neighbours lend, and meaning weighs, for each share of the messages that are results of tools."""


class Heard(NamedTuple):
    """A message that was read."""

    order: int
    """Rises through a conversation; those of two conversations are far apart."""
    place: int
    """Where it stands on its path; neighbours differ by one."""
    conversation_id: str
    role: str
    name: str | None
    text: str
    said_at: datetime | None = None
    """Where the question names a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known besides the texts."""

    places: Places
    rarity: Mapping[Term, float]
    likeness: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Of the passages nearest in meaning, by order and number of the passage: the cosine."""
    grasp: float = 0.0
    """Which share of the question the embedder understands."""
    times: Sequence[Stretch] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A message in its order, and the passage of it that is shown."""

    heard: Heard
    span: Span
    score: float
    """Compares only with the others of the same question."""
    is_borrowed: bool
    """Whether it has nothing of the question itself, only messages around it have."""


def rank(asked: Asked, heard: Sequence[Heard], evidence: Evidence, weights: RecallWeights) -> Ranking:
    """The messages that have something to do with the question, best first; of equals the newer one."""
    return Ranking(_Room(asked, sorted(heard, key=lambda one: one.order), evidence, weights))


class Ranking(Sequence[Ranked]):
    """Messages in their order. Of hundreds that were compared a few are looked at: only for those the passage to show
    is chosen."""

    def __init__(self, room: _Room) -> None:
        scores = room.scores()
        newest_first = range(len(scores) - 1, -1, -1)
        self._room = room
        self._scores = scores
        self._order = sorted((at for at in newest_first if scores[at] > 0), key=scores.__getitem__, reverse=True)

    def without(self, orders: Collection[int]) -> Ranking:
        """The same, without these messages."""
        if not orders:
            return self
        fewer = copy(self)
        fewer._order = [at for at in self._order if self._room.heard[at].order not in orders]
        return fewer

    @overload
    def __getitem__(self, index: int) -> Ranked: ...
    @overload
    def __getitem__(self, index: slice) -> list[Ranked]: ...
    def __getitem__(self, index: int | slice) -> Ranked | list[Ranked]:
        if isinstance(index, slice):
            return [self._ranked(at) for at in self._order[index]]
        return self._ranked(self._order[index])

    def __len__(self) -> int:
        return len(self._order)

    def _ranked(self, at: int) -> Ranked:
        room = self._room
        return Ranked(
            heard=room.heard[at], span=room.span(at), score=self._scores[at], is_borrowed=room.is_borrowed(at)
        )


class _Room:
    """All that was heard, laid out for one question."""

    def __init__(self, asked: Asked, heard: Sequence[Heard], evidence: Evidence, weights: RecallWeights) -> None:
        self.asked = asked
        self.heard = heard
        self.evidence = evidence
        self.weights = weights
        self.spans = [passages(one.text) for one in heard]
        self.is_of_tool = [one.role in _TOOLS for one in heard]
        read = asked.reader().read
        self.readings = [
            [read(one.text[start:end]) for start, end in spans] for one, spans in zip(heard, self.spans, strict=True)
        ]

    # -- the shape of the conversation -------------------------------------------------------------------------

    @cached_property
    def speakers(self) -> Mapping[str, str]:
        """The names people speak under, by the first token of each; none where speakers are bare roles."""
        names = {one.name for one, is_of_tool in zip(self.heard, self.is_of_tool, strict=True) if not is_of_tool}
        plain = {normal(name) for name in names if name} - _ROLES
        return {token: name for name in sorted(plain) for token in tokens(name)[:1]}

    @cached_property
    def named(self) -> frozenset[str]:
        """The speakers that the question names, unless it names all."""
        words = set(tokens(self.asked.text))
        named = frozenset(name for token, name in self.speakers.items() if token in words)
        return named if len(named) < len(self.speakers) else frozenset()

    @cached_property
    def talk(self) -> float:
        """How far this is people talking, 0 to 1: the less, the more of what is said comes from tools."""
        share = sum(self.is_of_tool) / max(1, len(self.heard))
        return max(0.0, 1 - self.weights.tool_damping * share)

    @cached_property
    def lent(self) -> float:
        """What the next message lends."""
        return self.weights.neighbours * self.talk

    @cached_property
    def flows(self) -> list[tuple[int, int, float, float]]:
        """Which two messages lend to each other, and what share the later and the earlier of them gets."""
        if not self.lent:
            return []
        alone = self.weights.alone_tokens
        needs = [1 / (1 + (estimated_tokens(one.text) / alone) ** 2) for one in self.heard]
        lent = [self.lent * 0.5**steps for steps in range(REACH)]
        after_asking = [lent[0] * self.weights.asking, *lent[1:]]
        lent_on = [after_asking if _asks(one.text) else lent for one in self.heard]
        return [
            (at, later, needs[later] * lent_on[at][steps - 1], needs[at] * lent[steps - 1])
            for at, later, steps in self._neighbours()
        ]

    def _neighbours(self) -> Iterator[tuple[int, int, int]]:
        """Each two that are within reach, and how many steps; results of tools have no neighbours."""
        heard, is_of_tool = self.heard, self.is_of_tool
        for at, one in enumerate(heard):
            if is_of_tool[at]:
                continue
            for later in range(at + 1, min(at + REACH + 1, len(heard))):
                other = heard[later]
                steps = other.place - one.place
                if not 0 < steps <= REACH or other.conversation_id != one.conversation_id:
                    break
                if not is_of_tool[later]:
                    yield at, later, steps

    # -- scores ------------------------------------------------------------------------------------------------

    def scores(self) -> list[float]:
        if not self.heard:
            return []
        weights, evidence = self.weights, self.evidence
        total = _at_most_one(self._with_neighbours(self._words()))
        around = _at_most_one(talk_around([one.order for one in self.heard], evidence.places, evidence.rarity))
        total = _at_most_one([score + weights.around * near for score, near in zip(total, around, strict=True)])
        if weights.meaning * evidence.grasp and evidence.likeness:
            meant = _at_most_one(self._with_neighbours(self._meaning()))
            share = weights.meaning * evidence.grasp * self.talk
            total = [
                words if is_of_tool else (1 - share) * words + share * likeness
                for is_of_tool, words, likeness in zip(self.is_of_tool, total, meant, strict=True)
            ]
        return [score * prior for score, prior in zip(total, self._priors(), strict=True)]

    def _words(self) -> list[float]:
        kept = self.asked.without(self.speakers)
        rarity = [
            self.evidence.rarity.get(term, 0.0) if keep else 0.0
            for term, keep in zip(self.asked.terms, kept, strict=True)
        ]
        wholes = [_joined(readings) for readings in self.readings]
        by_whole = _at_most_one(_bm25(wholes, rarity))
        if all(len(readings) == 1 for readings in self.readings):
            return by_whole  # each is its own best passage
        in_passages = iter(_bm25([reading for readings in self.readings for reading in readings], rarity))
        by_passage = _at_most_one([max(next(in_passages) for _ in readings) for readings in self.readings])
        return [
            _WHOLE_SHARE * whole + (1 - _WHOLE_SHARE) * passage
            for whole, passage in zip(by_whole, by_passage, strict=True)
        ]

    def _meaning(self) -> list[float]:
        """The likeness of each message's best passage, from what any message has up to the best."""
        likeness = self.evidence.likeness
        floor = min(likeness.values())
        best = [
            likeness.get((one.order, 0), floor)
            if len(spans) == 1
            else max(likeness.get((one.order, part), floor) for part in range(len(spans)))
            for one, spans in zip(self.heard, self.spans, strict=True)
        ]
        usual = median(best) if len(best) >= _ENOUGH_TO_COMPARE else 0.0
        return [max(0.0, one - usual) for one in best]

    def _with_neighbours(self, scores: Sequence[float]) -> list[float]:
        """Each score with what flows in from the messages around it."""
        total = list(scores)
        for at, later, forward, back in self.flows:
            total[later] += forward * scores[at]
            total[at] += back * scores[later]
        return total

    def _priors(self) -> list[float]:
        """What speaks for each message beside what it says: when it was said, and by whom."""
        weights, times = self.weights, self.evidence.times
        dates = [1 + weights.date * fit(one.said_at, times) if times else 1.0 for one in self.heard]
        if self.speakers:
            named = {one.name for one in self.heard if one.name is not None and normal(one.name) in self.named}
            return [
                date * (1 + weights.speaker * (one.name in named)) for date, one in zip(dates, self.heard, strict=True)
            ]
        role, weight = ("assistant", weights.assistant) if self.asked.is_to_the_assistant else ("user", weights.user)
        return [date * (1 + weight * (one.role == role)) for date, one in zip(dates, self.heard, strict=True)]

    def is_borrowed(self, at: int) -> bool:
        order = self.heard[at].order
        is_meant = any((order, part) in self.evidence.likeness for part in range(len(self.spans[at])))
        return not is_meant and not any(reading.found for reading in self.readings[at])

    def span(self, at: int) -> Span:
        """The passage that has most of the question, by words and by meaning."""
        spans = self.spans[at]
        if len(spans) == 1:
            return spans[0]
        words = _at_most_one(
            _bm25(self.readings[at], [self.evidence.rarity.get(term, 0.0) for term in self.asked.terms])
        )
        order, likeness = self.heard[at].order, self.evidence.likeness
        best = max(
            range(len(spans)), key=lambda part: words[part] + self.evidence.grasp * likeness.get((order, part), 0.0)
        )
        return spans[best]


def _asks(text: str) -> bool:
    return "?" in text or "？" in text


def _joined(readings: Sequence[Reading]) -> Reading:
    if len(readings) == 1:
        return readings[0]
    counts: Counter[int] = Counter()
    for reading in readings:
        for at, count in reading.found:
            counts[at] += count
    return Reading(sorted(counts.items()), sum(one.length for one in readings))


def _bm25(readings: Sequence[Reading], rarity: Sequence[float]) -> list[float]:
    average = sum(reading.length for reading in readings) / len(readings) or 1.0
    scores: list[float] = []
    for found, length in readings:
        norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / average)
        score = 0.0
        for at, count in found:
            score += rarity[at] * count * (_SATURATION + 1) / (count + norm)
        scores.append(score)
    return scores


def _at_most_one(scores: Sequence[float]) -> list[float]:
    """Scores by their greatest, so that those of different kinds can be added."""
    most = max(scores, default=0.0)
    return [score / most for score in scores] if most > 0 else list(scores)

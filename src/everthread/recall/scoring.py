"""What each message that was read scores for a question, and which passage of it has most; `ranking` says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from statistics import median

from everthread.recall.asking import Asked, Reading
from everthread.recall.evidence import Evidence, Heard, RecallWeights
from everthread.recall.nearness import REACH, talk_around
from everthread.text.dates import date_score
from everthread.text.passages import PassageSpan, estimate_tokens, split_passages
from everthread.text.words import fold, tokenize

_SATURATION, _LENGTH_SHARE = 1.2, 0.75
"""BM25's k1 and b, at their usual values."""
_WHOLE_SHARE = 0.5
"""How much the message as a whole counts beside its best passage."""
_ENOUGH_TO_COMPARE = 10
"""From so many messages on, what is usual among them says which likeness is much."""
_TOOLS = frozenset({"tool", "function"})
_ROLES = _TOOLS | {"user", "assistant", "system", "developer"}


class Room:
    """All that was heard, laid out for one question."""

    def __init__(self, asked: Asked, heard: Sequence[Heard], evidence: Evidence, weights: RecallWeights) -> None:
        self.asked = asked
        self.heard = heard
        self.evidence = evidence
        self.weights = weights
        self.spans = [split_passages(one.text) for one in heard]
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
        plain = {fold(name) for name in names if name} - _ROLES
        return {token: name for name in sorted(plain) for token in tokenize(name)[:1]}

    @cached_property
    def named(self) -> frozenset[str]:
        """The speakers that the question names, unless it names all."""
        words = set(tokenize(self.asked.text))
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
        needs = [1 / (1 + (estimate_tokens(one.text) / alone) ** 2) for one in self.heard]
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
        dates = [1 + weights.date * date_score(one.said_at, times) if times else 1.0 for one in self.heard]
        if self.speakers:
            named = {one.name for one in self.heard if one.name is not None and fold(one.name) in self.named}
            return [
                date * (1 + weights.speaker * (one.name in named)) for date, one in zip(dates, self.heard, strict=True)
            ]
        role, weight = ("assistant", weights.assistant) if self.asked.is_to_the_assistant else ("user", weights.user)
        return [date * (1 + weight * (one.role == role)) for date, one in zip(dates, self.heard, strict=True)]

    def is_borrowed(self, at: int) -> bool:
        order = self.heard[at].order
        is_meant = any((order, part) in self.evidence.likeness for part in range(len(self.spans[at])))
        return not is_meant and not any(reading.found for reading in self.readings[at])

    def span(self, at: int) -> PassageSpan:
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

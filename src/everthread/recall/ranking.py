"""Put messages in the order in which they are likely to hold what is asked for, whatever kind of conversation it is.

A message's own words count by BM25, half by its best passage and half as a whole. To that comes

- what its neighbours have: a short message is understood from those around it, a long one stands for itself. More
  flows from a message that asks to the one after it. Results of tools neither lend nor borrow, and the more of a
  conversation they are, the less its messages have to do with their neighbours;
- what is talked about around it;
- meaning: the similarity of its best passage to the question, weighed by how much of the question the embedder
  understands. What tools return is no prose, and judged by its words alone; so the more of a conversation that is, the
  less meaning may lift what is said beside it over what a tool returned;
- who said it: where speakers have names, the one that the question names; where they are bare roles, the user, who
  knows what was wanted and decided, unless the question is what the assistant said;
- when it was said, if the question names a time.

The weights are round numbers that do well on four kinds of conversation together (two people chatting, long answers
of an assistant, Chinese, customer service with tools); none is learned, and none knows of a kind by name. What differs
between kinds is measured on the messages themselves. `docs/benchmarks/recall.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import NamedTuple, overload

from everthread.core.queries import Term
from everthread.recall.candidates import NEIGHBOUR_REACH, PostingLists, score_surroundings
from everthread.recall.policy import RecallWeights
from everthread.recall.query import RecallQuery, TermCounter, TermCounts, add_counts
from everthread.text.bm25 import bm25
from everthread.text.dates import TimeRange, date_score
from everthread.text.passages import PassageSpan, estimate_tokens, split_passages
from everthread.text.words import fold, tokenize

_WHOLE_SHARE = 0.5
"""How much the message as a whole counts beside its best passage."""
_ENOUGH_TO_COMPARE = 10
"""From so many messages on, what is usual among them says which similarity is much."""
_TOOL_ROLES = frozenset({"tool", "function"})
_ROLES = _TOOL_ROLES | {"user", "assistant", "system", "developer"}


class CandidateMessage(NamedTuple):
    """A message that was read, to be ranked."""

    entry_key: int
    """Rises through a conversation; those of two conversations are far apart."""
    depth: int
    """The number of messages on its path up to and including it, so neighbours differ by one."""
    conversation_id: str
    role: str
    name: str | None
    text: str
    said_at: datetime | None = None
    """Where the question names a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSignals:
    """What is known besides the texts."""

    postings: PostingLists
    idfs: Mapping[Term, float]
    similarity: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Of the passages nearest in meaning, by entry key and number of the passage: the cosine."""
    understood_share: float = 0.0
    """Which share of the question the embedder understands."""
    times: Sequence[TimeRange] = ()
    """Those that the question names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMessage:
    """A message with its score, and the passage of it that is shown."""

    message: CandidateMessage
    span: PassageSpan
    score: float
    """Compares only with the others of the same question."""
    is_neighbour_only: bool
    """Whether it has nothing of the question itself, only messages around it have."""


def rank(
    query: RecallQuery, messages: Sequence[CandidateMessage], signals: RankingSignals, weights: RecallWeights
) -> Ranking:
    """The messages that have something to do with the question, best first; of equals the newer one."""
    return Ranking(_Scorer(query, sorted(messages, key=lambda message: message.entry_key), signals, weights))


class Ranking(Sequence[RankedMessage]):
    """Messages, best first. Hundreds are compared and a few looked at: only for those the passage to show is
    chosen."""

    def __init__(self, scorer: _Scorer) -> None:
        scores = scorer.scores()
        newest_first = range(len(scores) - 1, -1, -1)
        self._scorer = scorer
        self._scores = scores
        self._order = sorted((at for at in newest_first if scores[at] > 0), key=scores.__getitem__, reverse=True)

    def without(self, entry_keys: Collection[int]) -> Ranking:
        """The same, without these messages."""
        if not entry_keys:
            return self
        fewer = copy(self)
        fewer._order = [at for at in self._order if self._scorer.messages[at].entry_key not in entry_keys]
        return fewer

    @overload
    def __getitem__(self, index: int) -> RankedMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[RankedMessage]: ...
    def __getitem__(self, index: int | slice) -> RankedMessage | list[RankedMessage]:
        if isinstance(index, slice):
            return [self._ranked(at) for at in self._order[index]]
        return self._ranked(self._order[index])

    def __len__(self) -> int:
        return len(self._order)

    def _ranked(self, at: int) -> RankedMessage:
        scorer = self._scorer
        return RankedMessage(
            message=scorer.messages[at],
            span=scorer.best_span(at),
            score=self._scores[at],
            is_neighbour_only=scorer.is_neighbour_only(at),
        )


class _Scorer:
    """Scores the messages that were read for one question; each list here has a place for every message."""

    def __init__(
        self, query: RecallQuery, messages: Sequence[CandidateMessage], signals: RankingSignals, weights: RecallWeights
    ) -> None:
        self.query = query
        self.messages = messages
        self.signals = signals
        self.weights = weights
        self.spans = [split_passages(message.text) for message in messages]
        self.is_tool = [message.role in _TOOL_ROLES for message in messages]
        count = TermCounter(query.terms).count
        self.counts = [
            [count(message.text[start:end]) for start, end in spans]
            for message, spans in zip(messages, self.spans, strict=True)
        ]

    # -- the shape of the conversation -------------------------------------------------------------------------

    @cached_property
    def speakers(self) -> Mapping[str, str]:
        """The names people speak under, by the first token of each; none where speakers are bare roles."""
        names = {message.name for message, is_tool in zip(self.messages, self.is_tool, strict=True) if not is_tool}
        folded = {fold(name) for name in names if name} - _ROLES
        return {token: name for name in sorted(folded) for token in tokenize(name)[:1]}

    @cached_property
    def speakers_in_question(self) -> frozenset[str]:
        """The speakers that the question names, unless it names all."""
        words = set(tokenize(self.query.text))
        named = frozenset(name for token, name in self.speakers.items() if token in words)
        return named if len(named) < len(self.speakers) else frozenset()

    @cached_property
    def talk_share(self) -> float:
        """How far this is people talking, 0 to 1: the less, the more of what is said comes from tools."""
        tool_share = sum(self.is_tool) / max(1, len(self.messages))
        return max(0.0, 1 - self.weights.tool_damping * tool_share)

    @cached_property
    def flows(self) -> list[tuple[int, int, float, float]]:
        """Which two messages lend to each other, and what share the later and the earlier of them gets."""
        lent_next = self.weights.neighbours * self.talk_share
        if not lent_next:
            return []
        alone = self.weights.alone_tokens
        needs = [1 / (1 + (estimate_tokens(message.text) / alone) ** 2) for message in self.messages]
        lent = [lent_next * 0.5**steps for steps in range(NEIGHBOUR_REACH)]
        lent_by_question = [lent[0] * self.weights.asking, *lent[1:]]
        lent_on = [
            lent_by_question if "?" in message.text or "？" in message.text else lent for message in self.messages
        ]
        return [
            (at, later, needs[later] * lent_on[at][steps - 1], needs[at] * lent[steps - 1])
            for at, later, steps in self._neighbours()
        ]

    def _neighbours(self) -> Iterator[tuple[int, int, int]]:
        """Each two that are within reach, and how many steps; results of tools have no neighbours."""
        messages, is_tool = self.messages, self.is_tool
        for at, message in enumerate(messages):
            if is_tool[at]:
                continue
            for later in range(at + 1, min(at + NEIGHBOUR_REACH + 1, len(messages))):
                other = messages[later]
                steps = other.depth - message.depth
                if not 0 < steps <= NEIGHBOUR_REACH or other.conversation_id != message.conversation_id:
                    break
                if not is_tool[later]:
                    yield at, later, steps

    # -- scores ------------------------------------------------------------------------------------------------

    def scores(self) -> list[float]:
        """The final score of each message."""
        if not self.messages:
            return []
        weights, signals = self.weights, self.signals
        total = _normalize(self._with_neighbours(self._word_scores()))
        keys = [message.entry_key for message in self.messages]
        around = _normalize(score_surroundings(keys, signals.postings, signals.idfs))
        total = _normalize([score + weights.around * near for score, near in zip(total, around, strict=True)])
        if weights.meaning * signals.understood_share and signals.similarity:
            by_meaning = _normalize(self._with_neighbours(self._meaning_scores()))
            share = weights.meaning * signals.understood_share * self.talk_share
            total = [
                words if is_tool else (1 - share) * words + share * meaning
                for is_tool, words, meaning in zip(self.is_tool, total, by_meaning, strict=True)
            ]
        return [score * prior for score, prior in zip(total, self._priors(), strict=True)]

    def _word_scores(self) -> list[float]:
        """By the words of each message, half as a whole and half by its best passage."""
        # Who speaks is weighed as a prior; as a word a speaker's name would lift whoever is addressed by it.
        is_name = [term.token in self.speakers for term in self.query.terms]
        asks_names_only = all(is_name)
        idfs = [
            self.signals.idfs.get(term, 0.0) if asks_names_only or not named else 0.0
            for term, named in zip(self.query.terms, is_name, strict=True)
        ]
        by_whole = _normalize(_bm25_scores([_add_passages(counts) for counts in self.counts], idfs))
        if all(len(counts) == 1 for counts in self.counts):
            return by_whole  # each is its own best passage
        in_passages = iter(_bm25_scores([passage for counts in self.counts for passage in counts], idfs))
        by_passage = _normalize([max(next(in_passages) for _ in counts) for counts in self.counts])
        return [
            _WHOLE_SHARE * whole + (1 - _WHOLE_SHARE) * passage
            for whole, passage in zip(by_whole, by_passage, strict=True)
        ]

    def _meaning_scores(self) -> list[float]:
        """The similarity of each message's best passage, from what any message has up to the best."""
        similarity = self.signals.similarity
        floor = min(similarity.values())
        best = [
            similarity.get((message.entry_key, 0), floor)
            if len(spans) == 1
            else max(similarity.get((message.entry_key, part), floor) for part in range(len(spans)))
            for message, spans in zip(self.messages, self.spans, strict=True)
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
        weights, times = self.weights, self.signals.times
        dates = [1 + weights.date * date_score(message.said_at, times) if times else 1.0 for message in self.messages]
        if self.speakers:
            names = {message.name for message in self.messages if message.name is not None}
            named = {name for name in names if fold(name) in self.speakers_in_question}
            return [
                date * (1 + weights.speaker * (message.name in named))
                for date, message in zip(dates, self.messages, strict=True)
            ]
        role, weight = ("assistant", weights.assistant) if self.query.asks_assistant else ("user", weights.user)
        return [
            date * (1 + weight * (message.role == role)) for date, message in zip(dates, self.messages, strict=True)
        ]

    # -- of one message, once it is looked at ------------------------------------------------------------------

    def is_neighbour_only(self, at: int) -> bool:
        key = self.messages[at].entry_key
        has_meaning = any((key, part) in self.signals.similarity for part in range(len(self.spans[at])))
        return not has_meaning and not any(passage.counts for passage in self.counts[at])

    def best_span(self, at: int) -> PassageSpan:
        """The passage that has most of the question, by words and by meaning."""
        spans = self.spans[at]
        if len(spans) == 1:
            return spans[0]
        idfs = [self.signals.idfs.get(term, 0.0) for term in self.query.terms]
        words = _normalize(_bm25_scores(self.counts[at], idfs))
        key, signals = self.messages[at].entry_key, self.signals
        meaning = [signals.understood_share * signals.similarity.get((key, part), 0.0) for part in range(len(spans))]
        best = max(range(len(spans)), key=lambda part: words[part] + meaning[part])
        return spans[best]


def _add_passages(passages: Sequence[TermCounts]) -> TermCounts:
    """The counts of a whole message."""
    if len(passages) == 1:
        return passages[0]
    counts = add_counts(pair for passage in passages for pair in passage.counts)
    return TermCounts(sorted(counts), sum(passage.length for passage in passages))


def _bm25_scores(texts: Sequence[TermCounts], idfs: Sequence[float]) -> list[float]:
    average_length = sum(text.length for text in texts) / len(texts) or 1.0
    return [bm25(counts, length, average_length, idfs) for counts, length in texts]


def _normalize(scores: Sequence[float]) -> list[float]:
    """Scores divided by their greatest, so that those of different kinds can be added."""
    greatest = max(scores, default=0.0)
    return [score / greatest for score in scores] if greatest > 0 else list(scores)

"""Put messages in the order in which they are likely to hold what is asked for, whatever kind of conversation it is.

A message's own words count by BM25, half by its best passage and half as a whole; one that it lacks counts by a related
word, as a part of once. To that comes

- what its neighbours have, as far as they belong together: a short message is understood from those around it, a long
  one stands for itself. Two belong together if they share a rare word, if one answers the other, or if one is a
  fragment said right after the other; else as far as the messages read show that neighbours in this conversation are
  about the same thing. More flows from a message that asks to the one after it, and what only asks counts less than
  its answer. Results of tools neither lend nor borrow, and the more of a conversation they are, the less its messages
  have to do with their neighbours;
- what is talked about around it, as far as neighbours belong together;
- of a tool's result: the words of its call, and of the message from which identifiers lead to it (`links`);
- meaning: the similarity of its best passage to the question, weighed by how much of the question the embedder
  understands. What tools return is no prose, and judged by its words alone; so the more of a conversation that is, the
  less meaning may lift what is said beside it over what a tool returned;
- a standing wish, where something is asked to be done (`wishes`);
- who said it: where speakers have names, the one that the question names, whose messages count a little without any of
  its words, most of all near them; where they are bare roles, the user, who
  knows what was wanted and decided, unless the question is what the assistant said;
- when it was said, if the question names a time; alone, where whatever was said then is asked for.

What says word for word what a better one does stands lower.

The weights are round numbers that do well on four kinds of conversation together (two people chatting, long answers
of an assistant, Chinese, customer service with tools); none is learned, and none knows of a kind by name. What differs
between kinds is measured on the messages themselves. `docs/benchmarks/recall.md` has the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from math import inf
from statistics import median
from typing import overload

from everthread.core.queries import Term
from everthread.core.recent import Recent
from everthread.recall.candidates import NEIGHBOUR_REACH, PostingLists, score_surroundings
from everthread.recall.links import TOOL_ROLES
from everthread.recall.markup import WRAPPED_ROLES, blank_tags, words_of_tags
from everthread.recall.matched_words import words_as_written
from everthread.recall.policy import RecallWeights
from everthread.recall.query import (
    FUNCTION_STEMS,
    PassageWords,
    RecallQuery,
    RelatedTerms,
    TermCounter,
    TermCounts,
    add_counts,
    words_of_passage,
)
from everthread.recall.wishes import MAX_WISHES, matters_of
from everthread.text.bm25 import bm25, idf
from everthread.text.dates import TimeRange, date_score, is_within
from everthread.text.passages import PassageSpan, estimate_tokens, split_passages
from everthread.text.words import fold, tokenize

_WHOLE_SHARE = 0.5
"""How much the message as a whole counts beside its best passage."""
_ENOUGH_TO_COMPARE = 10
"""From so many messages on, what is usual among them says which similarity is much."""
_FEW, _FEW_SHARE = 2, 0.05
"""A word that at most so many of the messages read have, or this share of them, tells that two belong together."""
_COHERENT = 0.1
"""By so much oftener than messages far apart do neighbours share a word where people talk with each other."""
_FRAGMENT_WORDS = 6
_ENDS = (".", "!", "?", "。", "！", "？")
_SOON = timedelta(minutes=2)
"""A fragment belongs to what was said so soon before or after it."""
_ONLY_ASKS_SHARE = 0.7
"""What the words of a message count that only asks: it is the answer that is looked for."""
_ONLY_ASKS_TOKENS = 40
"""A longer message tells something before it asks."""
_PRIOR_PAIRS = 10
"""What is usual counts as much as so many pairs of neighbours."""
_CARRIED = 0.3
"""What a term counts that a message only carries."""
_LESS_LIFTED = 0.08
"""How much less each further wish is lifted."""
_HARDLY_LIFTED = 0.02
"""What wishes beyond the first few get: they are found where there is room."""
_ASKED_FOR = 1.0
"""What a restriction gets beside the best message where restrictions are asked for."""
_RELATED_BELOW = 0.95
"""A message that has only related words stays below those that have the words themselves."""
_FROM_BESIDE = 0.8
"""What a word counts for a message that only the message has to which it belongs."""
_SAID_THEN, _WHATEVER_THEN = 0.1, 2.0
"""What it counts, of the weight of dates, to be said at a time that is named; and where whatever was said then is asked
for."""
_SAYS_WORDS = 12
"""A message of so many words says half of what one can."""
_REPEATED = 0.6
"""What the score of a message counts whose text a better one has."""
_FAR_SHARE = 0.3
"""What it counts that a named speaker says something far from what is asked, of what it counts nearby."""
_ROLES = TOOL_ROLES | {"user", "assistant", "system", "developer"}


@dataclass(frozen=True, eq=False)
class CandidateMessage:
    """A message that was read, to be ranked, and what ranking asks of its text whatever the question: found when it is
    first asked for, and kept with the message from one question to the next."""

    entry_key: int
    """Rises through a conversation; those of two conversations are far apart."""
    depth: int
    """The number of messages on its path up to and including it, so neighbours differ by one."""
    conversation_id: str
    role: str
    name: str | None
    text: str
    said_at: datetime | None = None

    @property
    def is_tool(self) -> bool:
        return self.role in TOOL_ROLES

    @cached_property
    def spans(self) -> Sequence[PassageSpan]:
        """Where its passages stand."""
        return split_passages(self.text)

    @cached_property
    def passages(self) -> Sequence[tuple[str, PassageWords]]:
        """The text and the words of each passage, without the tags a program wrapped it in."""
        said = blank_tags(self.text) if self.role in WRAPPED_ROLES else self.text
        texts = [said[start:end] for start, end in self.spans]
        return [(text, words_of_passage(text)) for text in texts]

    @cached_property
    def words(self) -> Set[str]:
        """The words of the whole message."""
        sets = [words.distinct for _, words in self.passages]
        return sets[0] if len(sets) == 1 else frozenset[str]().union(*sets)

    @cached_property
    def length(self) -> int:
        """How many words it has, repeats included."""
        return sum(words.length for _, words in self.passages)

    @cached_property
    def words_of_tags(self) -> frozenset[str]:
        """The words that it has only in the tags a program wrapped it in."""
        has_tags = self.role in WRAPPED_ROLES and "</" in self.text
        return words_of_tags(self.text) if has_tags else frozenset()

    @cached_property
    def tokens(self) -> int:
        """About what it counts to."""
        return estimate_tokens(self.text)

    @cached_property
    def asks(self) -> bool:
        """Whether it asks something."""
        return "?" in self.text or "？" in self.text

    @cached_property
    def only_asks(self) -> bool:
        """Whether it is a short question and nothing else."""
        return self.text.rstrip().endswith(("?", "？")) and self.tokens <= _ONLY_ASKS_TOKENS

    @cached_property
    def is_fragment(self) -> bool:
        """Whether it is only a few words without an end, as of somebody who sends a sentence in pieces."""
        return self.length <= _FRAGMENT_WORDS and not self.text.rstrip().endswith(_ENDS)

    @property
    def weight_bytes(self) -> int:
        """About what it takes to keep it with its words."""
        return _CANDIDATE_BYTES + _TEXT_COPIES * len(self.text) + _WORD_BYTES * len(self.words)


_CANDIDATE_BYTES, _TEXT_COPIES, _WORD_BYTES = 1_500, 3, 80

recent_candidates: Recent[tuple[object, ...], CandidateMessage] = Recent(16_000_000)
"""Those ranked lately: for one question after another mostly the same are."""


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
    carried: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """The terms of the question, by their place in it, that lead to a tool's call or result by identifiers."""
    related: RelatedTerms = field(default_factory=dict)
    """Other words for what is asked, and what each counts."""
    wishes: frozenset[int] = frozenset()
    """Entry keys of the standing wishes that may govern what is asked, or of the restrictions that are asked for."""
    wishes_are_asked_for: bool = False
    """Whether it is these that are asked for; else they may govern what is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMessage:
    """A message with its score, and the passage of it that is shown."""

    message: CandidateMessage
    span: PassageSpan
    score: float
    """Compares only with the others of the same question."""
    parts: Mapping[str, float]
    """What each signal adds to the score, the greatest first."""
    words: tuple[str, ...]
    """The words of the question that it has, then those related to others of them, as the index writes them."""
    is_neighbour_only: bool
    """Whether it has nothing of the question itself, only messages around it have."""
    coverage: float
    """Which share of the question it has, 0 to 1: of its words by their rarity, of its meaning by similarity."""


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
        best_first = sorted((at for at in newest_first if scores[at] > 0), key=scores.__getitem__, reverse=True)
        self._scorer = scorer
        self._shares = self._shares_of_repeats(best_first)
        self._scores = [self._shares.get(at, 1.0) * score for at, score in enumerate(scores)]
        self._order = sorted(best_first, key=self._scores.__getitem__, reverse=True)

    def _shares_of_repeats(self, best_first: Sequence[int]) -> dict[int, float]:
        """What the score counts of those that say word for word what a better one does: they add little."""
        said: set[tuple[str, str | None, str]] = set()
        shares: dict[int, float] = {}
        for at in best_first:
            one = self._scorer.messages[at]
            if (one.role, one.name, one.text) in said:
                shares[at] = _REPEATED
            said.add((one.role, one.name, one.text))
        return shares

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
            parts={name: self._shares.get(at, 1.0) * part for name, part in scorer.parts_of(at).items()},
            words=scorer.words_of(at),
            is_neighbour_only=scorer.is_neighbour_only(at),
            coverage=scorer.coverage_of(at),
        )


def have_names(messages: Sequence[CandidateMessage]) -> bool:
    """Whether some of these are said under a name."""
    return bool(_speakers(messages))


def names_speaker(query: RecallQuery, messages: Sequence[CandidateMessage]) -> bool:
    """Whether the question names one of those who speak."""
    return any(_named_in(query, _speakers(messages)))


def _speakers(messages: Sequence[CandidateMessage]) -> Mapping[str, str]:
    names = {message.name for message in messages if message.role not in TOOL_ROLES}
    folded = {fold(name) for name in names if name} - _ROLES
    return {token: name for name in sorted(folded) for token in tokenize(name)[:1]}


def _named_in(query: RecallQuery, speakers: Mapping[str, str]) -> list[str]:
    words = set(tokenize(query.text))
    return [name for token, name in speakers.items() if token in words]


class _Scorer:
    """Scores the messages that were read for one question; each list here has a place for every message."""

    def __init__(
        self, query: RecallQuery, messages: Sequence[CandidateMessage], signals: RankingSignals, weights: RecallWeights
    ) -> None:
        self.query = query
        self.messages = messages
        self.signals = signals
        self.weights = weights
        self.spans = [message.spans for message in messages]
        self.is_tool = [message.is_tool for message in messages]
        count = TermCounter(query.terms, signals.related).count
        self.counts = [[count(text, words) for text, words in message.passages] for message in messages]
        self.carried = [self._carried(at) for at in range(len(messages))]

    def _carried(self, at: int) -> Sequence[tuple[int, float]]:
        """The terms that a tool's result has by what it belongs to: by its call and, if the two have something of the
        question themselves, by the identifiers that lead to it."""
        if not self.is_tool[at]:
            return ()
        own = self._terms_of(at)
        call = self._call_of(at)
        with_call = own if call is None else own | self._terms_of(call)
        led = self.signals.carried.get(self.messages[at].entry_key, frozenset())
        whole = with_call | led if with_call - led else with_call
        return [(term, _CARRIED) for term in sorted(whole - own)]

    def _terms_of(self, at: int) -> set[int]:
        return {term for passage in self.counts[at] for term, _ in passage.counts}

    def _call_of(self, at: int) -> int | None:
        """The assistant's message right before a result, and before those of other calls made with it."""
        for before in range(at - 1, max(-1, at - 1 - NEIGHBOUR_REACH), -1):
            if self.messages[at].depth - self.messages[before].depth != at - before:
                return None
            if not self.is_tool[before]:
                return before if self.messages[before].role == "assistant" else None
        return None

    # -- the shape of the conversation -------------------------------------------------------------------------

    @cached_property
    def speakers(self) -> Mapping[str, str]:
        """The names people speak under, by the first token of each; none where speakers are bare roles."""
        return _speakers(self.messages)

    @cached_property
    def speakers_in_question(self) -> frozenset[str]:
        """The speakers that the question names, unless it names all."""
        named = frozenset(_named_in(self.query, self.speakers))
        return named if len(named) < len(self.speakers) else frozenset()

    @cached_property
    def is_by_named(self) -> list[bool]:
        """Whether each is by a speaker that the question names."""
        named = {one.name for one in self.messages if one.name and fold(one.name) in self.speakers_in_question}
        return [message.name in named for message in self.messages]

    @cached_property
    def talk_share(self) -> float:
        """How far this is people talking, 0 to 1: the less, the more of what is said comes from tools."""
        tool_share = sum(self.is_tool) / max(1, len(self.messages))
        return max(0.0, 1 - self.weights.tool_damping * tool_share)

    @cached_property
    def contents(self) -> list[Set[str]]:
        """The words that tell two messages belong together: neither the question's own nor those of any sentence, and
        of the messages read only a few have them."""
        asked = FUNCTION_STEMS.union(term.token for term in self.query.terms)
        words = [message.words for message in self.messages]
        having = Counter(chain.from_iterable(words))
        most = max(_FEW, _FEW_SHARE * len(words))
        left_out = asked.union(word for word, count in having.items() if count > most)
        return [some - left_out for some in words]

    @cached_property
    def coherence(self) -> float:
        """How far messages side by side are about the same thing, 0 to 1: how much oftener they share a word than
        messages far apart do. A conversation that is too short to tell is taken for one."""
        talk = [at for at, is_tool in enumerate(self.is_tool) if not is_tool]
        near = [(at, later) for at, later, steps in self._neighbours() if steps == 1]
        half = len(talk) // 2
        far = [(talk[at], talk[at + half]) for at in range(len(talk) - half)] if half > 2 * NEIGHBOUR_REACH else []
        if not far:
            return 1.0
        more = self._sharing(near) - self._sharing(far)
        surely = (len(near) * more + _PRIOR_PAIRS * _COHERENT) / (len(near) + _PRIOR_PAIRS)
        return min(1.0, max(0.0, surely / _COHERENT))

    def _sharing(self, pairs: Sequence[tuple[int, int]]) -> float:
        """Which share of these pairs have a word in common."""
        contents = self.contents
        return sum(not contents[one].isdisjoint(contents[other]) for one, other in pairs) / max(1, len(pairs))

    def _belonging(self, at: int, later: int, steps: int) -> float:
        """How far two messages belong together, 0 to 1: surely when they share a rare word or one answers the other,
        else as far as this conversation's neighbours do."""
        if not self.contents[at].isdisjoint(self.contents[later]):
            return 1.0
        if steps == 1 and self.messages[at].asks and self._is_other_speaker(at, later):
            return 1.0
        if (self.messages[at].is_fragment or self.messages[later].is_fragment) and self._is_soon_after(at, later):
            return 1.0
        return self.coherence

    def _is_soon_after(self, at: int, later: int) -> bool:
        one, other = self.messages[at].said_at, self.messages[later].said_at
        return one is not None and other is not None and abs(other - one) <= _SOON

    def _is_other_speaker(self, at: int, later: int) -> bool:
        one, other = self.messages[at], self.messages[later]
        return (one.role, one.name) != (other.role, other.name)

    @cached_property
    def flows(self) -> list[tuple[int, int, float, float]]:
        """Which two messages lend to each other, and what share the later and the earlier of them gets."""
        lent_next = self.weights.neighbours * self.talk_share
        if not lent_next:
            return []
        alone = self.weights.alone_tokens
        needs = [1 / (1 + (message.tokens / alone) ** 2) for message in self.messages]
        lent = [lent_next * 0.5**steps for steps in range(NEIGHBOUR_REACH)]
        lent_by_question = [lent[0] * self.weights.asking, *lent[1:]]
        lent_on = [lent_by_question if message.asks else lent for message in self.messages]
        return [
            (at, later, needs[later] * lent_on[at][steps - 1] * belong, needs[at] * lent[steps - 1] * belong)
            for at, later, steps in self._neighbours()
            if (belong := self._belonging(at, later, steps))
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
        scores = list(self.found_scores)
        for at, lift in self.lifts.items():
            scores[at] += lift
        return scores

    @cached_property
    def found_scores(self) -> list[float]:
        """The score of each message before wishes are lifted."""
        totals = [sum(shares) for shares in zip(*self.parts.values(), strict=True)]
        return [score * date * who for score, (date, who) in zip(totals, self.priors, strict=True)]

    @cached_property
    def lifts(self) -> dict[int, float]:
        """What the wishes get that have most to do with the question: first those of the same matter, then those of
        none, then the others, each by their scores and, of equals, the newest first; of two that say the same, the
        newer one. Among people who talk with each other there are none: a wish is what an assistant is told."""
        scores, asked = self.found_scores, self.signals.wishes
        is_told = any(message.role == "assistant" and message.name is None for message in self.messages)
        by_text = {
            fold(message.text): at
            for at, message in enumerate(self.messages)
            if message.entry_key in asked and (is_told or message.name is None or self.signals.wishes_are_asked_for)
        }
        wishes = sorted(by_text.values(), key=lambda at: (self._governs(at), scores[at], at), reverse=True)
        weight = max(self.weights.wish, _ASKED_FOR) if self.signals.wishes_are_asked_for else self.weights.wish
        lift = weight * (max(scores, default=0.0) or 1.0)
        first = len(wishes) if self.signals.wishes_are_asked_for else MAX_WISHES
        less = _LESS_LIFTED * MAX_WISHES / max(MAX_WISHES, first)
        shares = [1 - place * less if place < first else _HARDLY_LIFTED for place in range(len(wishes))]
        return {at: lift * share for at, share in zip(wishes, shares, strict=True)} if lift else {}

    def _governs(self, at: int) -> int:
        """How likely a wish is about what is asked: 2 of the same matter, 1 of none, 0 of another."""
        about, asked = matters_of(self.messages[at].text), matters_of(self.query.text)
        return 2 if about & asked else 0 if about and asked else 1

    @cached_property
    def parts(self) -> dict[str, list[float]]:
        """What each signal adds to each message's score, before who said it and when."""
        weights, signals = self.weights, self.signals
        words = self._word_scores()
        lent = self._lent(words)  # a question lends all it has to its answer, whatever it keeps
        words = [
            score * _ONLY_ASKS_SHARE if message.only_asks else score
            for score, message in zip(words, self.messages, strict=True)
        ]
        parts = _normalize_together({"words": words, "neighbours": lent})
        keys = [message.entry_key for message in self.messages]
        topic = _normalize(score_surroundings(keys, signals.postings, signals.idfs))
        weight = weights.topic * self.coherence
        parts = _normalize_together({**parts, "topic": [weight * near for near in topic]})
        if any(self.is_by_named):
            parts["speaker"] = self._by_named(topic)
        if signals.times:
            parts["date"] = self._said_then()
        if not (weights.meaning * signals.understood_share and signals.similarity):
            return parts
        meaning = self._meaning_scores()
        by_meaning = _normalize_together({"meaning": meaning, "neighbours": self._lent(meaning)})
        share = weights.meaning * signals.understood_share * self.talk_share
        shares = [0.0 if is_tool else share for is_tool in self.is_tool]
        kept = {
            name: [(1 - share) * one for share, one in zip(shares, part, strict=True)] for name, part in parts.items()
        }
        lent = [
            one + share * more
            for one, share, more in zip(kept["neighbours"], shares, by_meaning["neighbours"], strict=True)
        ]
        own = [share * one for share, one in zip(shares, by_meaning["meaning"], strict=True)]
        return {**kept, "neighbours": lent, "meaning": own}

    @cached_property
    def is_said_then(self) -> list[bool]:
        """Whether each was said within a time that the question names; within a year, if it asks for nothing else."""
        times = self.signals.times
        if self.query.asks_for_a_time:
            return [is_within(message.said_at, times) for message in self.messages]
        return [date_score(message.said_at, times) == 1 for message in self.messages]

    def _said_then(self) -> list[float]:
        """What those have that were said then, without any word of the question: much where whatever was said then is
        asked for, and the more, the more they say."""
        whole = self.weights.date * (_WHATEVER_THEN if self.query.asks_for_a_time else _SAID_THEN)
        return [
            whole * (1 - 0.5 ** (1 + message.length / _SAYS_WORDS)) if is_then else 0.0
            for is_then, message in zip(self.is_said_then, self.messages, strict=True)
        ]

    def _by_named(self, topic: Sequence[float]) -> list[float]:
        """What the messages of a speaker whom the question names have without any other word of it: the more, the rarer
        theirs are, and the more of the question is talked about around them."""
        many = len(self.messages)
        told = self.weights.speaker * idf(sum(self.is_by_named), many) / idf(1, many)
        return [
            told * (_FAR_SHARE + (1 - _FAR_SHARE) * near) if is_named else 0.0
            for is_named, near in zip(self.is_by_named, topic, strict=True)
        ]

    def _word_scores(self) -> list[float]:
        """By the words of each message, half as a whole and half by its best passage."""
        idfs = self._idfs_beside_names
        wholes = [
            _with_carried(_add_passages(counts), carried)
            for counts, carried in zip(self.counts, self.carried, strict=True)
        ]
        by_whole = _normalize(_bm25_scores(wholes, idfs))
        if all(len(counts) == 1 for counts in self.counts):
            return self._with_related_below(by_whole)  # each is its own best passage
        passages = [
            _with_carried(passage, carried)
            for counts, carried in zip(self.counts, self.carried, strict=True)
            for passage in counts
        ]
        in_passages = iter(_bm25_scores(passages, idfs))
        by_passage = _normalize([max(next(in_passages) for _ in counts) for counts in self.counts])
        return self._with_related_below(
            [
                _WHOLE_SHARE * whole + (1 - _WHOLE_SHARE) * passage
                for whole, passage in zip(by_whole, by_passage, strict=True)
            ]
        )

    def _with_related_below(self, scores: list[float]) -> list[float]:
        """The scores, where what has only words related to some never stands above what has these words themselves:
        a short message would."""
        if not self.signals.related:
            return scores
        own: list[set[int]] = []
        only_related: dict[frozenset[int], list[int]] = {}
        for at, passages in enumerate(self.counts):
            counts = [pair for passage in passages for pair in passage.counts]
            own.append({term for term, count in counts if count >= 1})
            if counts and not own[at]:
                only_related.setdefault(frozenset(term for term, _ in counts), []).append(at)
        for terms, having in only_related.items():
            most = _RELATED_BELOW * min(
                (score for score, has in zip(scores, own, strict=True) if terms <= has), default=inf
            )
            for at in having:
                scores[at] = min(scores[at], most)
        return scores

    @cached_property
    def _idfs_beside_names(self) -> list[float]:
        """The rarity of each word. Who speaks is weighed as a prior; as a word a speaker's name would lift whoever is
        addressed by it, so it counts only where nothing else is asked for."""
        is_name = [term.token in self.speakers for term in self.query.terms]
        asks_names_only = all(is_name)
        return [
            self.signals.idfs.get(term, 0.0) if asks_names_only or not named else 0.0
            for term, named in zip(self.query.terms, is_name, strict=True)
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

    def _lent(self, scores: Sequence[float]) -> list[float]:
        """What flows to each message from those around it."""
        lent = [0.0] * len(scores)
        for at, later, forward, back in self.flows:
            lent[later] += forward * scores[at]
            lent[at] += back * scores[later]
        return lent

    @cached_property
    def priors(self) -> list[tuple[float, float]]:
        """What speaks for each message beside what it says: when it was said, and by whom."""
        weights, times = self.weights, self.signals.times
        dates = [1 + weights.date * date_score(message.said_at, times) if times else 1.0 for message in self.messages]
        if self.speakers:
            return [
                (date, 1 + weights.speaker * is_named) for date, is_named in zip(dates, self.is_by_named, strict=True)
            ]
        role, weight = ("assistant", weights.assistant) if self.query.asks_assistant else ("user", weights.user)
        return [(date, 1 + weight * (message.role == role)) for date, message in zip(dates, self.messages, strict=True)]

    # -- of one message, once it is looked at ------------------------------------------------------------------

    def parts_of(self, at: int) -> dict[str, float]:
        """What each signal adds to its score, the greatest first; together they are the score."""
        parts = {name: part[at] for name, part in self.parts.items()}
        total = sum(parts.values())
        date, who = self.priors[at]
        parts["date"] = parts.get("date", 0.0) + total * (date - 1)
        parts["speaker"] = parts.get("speaker", 0.0) + total * date * (who - 1)
        parts["wish"] = self.lifts.get(at, 0.0)
        return {name: parts[name] for name in sorted(parts, key=parts.__getitem__, reverse=True) if parts[name]}

    def words_of(self, at: int) -> tuple[str, ...]:
        """The words of the question that the message has, then those related to others of them, as they stand in it."""
        counts = [pair for passage in self.counts[at] for pair in passage.counts]
        own = {term for term, count in counts if count >= 1}
        lacking = {term for term, _ in counts} - own
        text = fold(self.messages[at].text)
        words = self.messages[at].words
        related = (
            term
            for term, places in self.signals.related.items()
            if not lacking.isdisjoint(places) and (term.token in text if term.is_prefix else term.token in words)
        )
        return words_as_written(self.messages[at].text, [*(self.query.terms[term] for term in sorted(own)), *related])

    def is_neighbour_only(self, at: int) -> bool:
        key = self.messages[at].entry_key
        if at in self.lifts or self._is_asked_by_time(at):
            return False
        has_meaning = any((key, part) in self.signals.similarity for part in range(len(self.spans[at])))
        return not has_meaning and not any(passage.counts for passage in self.counts[at])

    def coverage_of(self, at: int) -> float:
        """Which share of the question a message has: of its words by their rarity, those of a message that it belongs
        to included (it answers it, or goes on with it), or of its meaning, whichever is more. All where it is a wish
        that may govern what is asked, or said at the time for which all is asked."""
        if at in self.lifts or self._is_asked_by_time(at):
            return 1.0
        around = [(at - 1, at), (at, at + 1)]
        beside = [
            one if one != at else other
            for one, other in around
            if one >= 0
            and other < len(self.messages)
            and self.messages[other].depth - self.messages[one].depth == 1
            and not (self.is_tool[one] or self.is_tool[other])
            and self._belonging(one, other, 1) == 1
        ]
        own = self._own_weight(at)
        by_words = max([own, *(_FROM_BESIDE * self._own_weight(other) for other in beside)])
        key, similarity = self.messages[at].entry_key, self.signals.similarity
        by_meaning = max((similarity.get((key, part), 0.0) for part in range(len(self.spans[at]))), default=0.0)
        return min(1.0, max(by_words, self.signals.understood_share * by_meaning))

    def _is_asked_by_time(self, at: int) -> bool:
        return self.query.asks_for_a_time and self.is_said_then[at]

    def _own_weight(self, at: int) -> float:
        """Of the rarity of all the words asked for, the share that the message's words have."""
        idfs = self._idfs_beside_names
        counted: dict[int, float] = dict(self.carried[at])
        for passage in self.counts[at]:
            for term, count in passage.counts:
                counted[term] = max(counted.get(term, 0.0), min(1.0, count))
        whole = sum(idfs)
        return sum(idfs[term] * count for term, count in counted.items()) / whole if whole else 0.0

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


def _with_carried(own: TermCounts, carried: Sequence[tuple[int, float]]) -> TermCounts:
    return own._replace(counts=[*own.counts, *carried]) if carried else own


def _bm25_scores(texts: Sequence[TermCounts], idfs: Sequence[float]) -> list[float]:
    average_length = sum(text.length for text in texts) / len(texts) or 1.0
    return [bm25(text.counts, text.length, average_length, idfs) for text in texts]


def _normalize_together(parts: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """Parts of scores divided by the greatest score, so that they still add up to it."""
    greatest = max((sum(shares) for shares in zip(*parts.values(), strict=True)), default=0.0)
    scale = 1 / greatest if greatest > 0 else 1.0
    return {name: [scale * one for one in part] for name, part in parts.items()}


def _normalize(scores: Sequence[float]) -> list[float]:
    """Scores divided by their greatest, so that those of different kinds can be added."""
    greatest = max(scores, default=0.0)
    return [score / greatest for score in scores] if greatest > 0 else list(scores)

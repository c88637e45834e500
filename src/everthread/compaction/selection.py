"""Which lines go into a summary: a greedy choice by worth per token, against saying a thing twice.

A candidate is worth its own weight, less where it overlaps what is already chosen (maximal marginal
relevance), and more for each fact that no chosen line holds yet.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from everthread.compaction.sources import TokenCounter
from everthread.compaction.summary_format import Section

T = TypeVar("T", bound=Hashable)

# Only the best are compared with each other; a summary of 1,000 tokens has some 40 lines.
POOL_SIZE = 400
ESTIMATE_SLACK = 1.15
"""Callers give so much more room than they have: the choice estimates what a line costs around its words, a little too
high, and the lines are then cut to what they really cost."""
_LENGTH_POWER = 0.6
_REDUNDANCY = 0.8
# A piece that shares so many of its terms with a chosen one and adds no fact is not told again.
_SAID_ALREADY = 0.8
# "- user: … [#123]" around a line's own words.
_LINE_OVERHEAD_TOKENS = 7
# A room of a few lines is not divided among the sections.
UNDIVIDED_TOKENS = 150
LEAST_FOR_MESSAGE = 100
"""One thought of one message fits whatever its share."""
# Worth less than this with all its facts, a line is only filling.
_LEAST_WORTH = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLine:
    """A piece that may become a line, or part of one."""

    section: Section
    text: str
    speaker: str
    """What the line opens with: who said it; empty where the text shows it."""
    first_seq: int
    last_seq: int
    index: int
    """Its index among the pieces of its message."""
    weight: float
    facts: Mapping[str, float]
    """Normal form of each fact it holds, with what keeping it is worth."""
    terms: frozenset[str]
    under: str = ""
    """The heading that it needs in order to be understood."""

    @property
    def key(self) -> tuple[Section, int, int]:
        """Pieces with the same key are written on one line."""
        return self.section, self.first_seq, self.last_seq


def _positions(held: Iterable[tuple[int, Iterable[T]]]) -> dict[T, list[int]]:
    """Who holds each of them."""
    found: defaultdict[T, list[int]] = defaultdict(list)
    for at, some in held:
        for one in some:
            found[one].append(at)
    return found


class _Pool:
    """The candidates still to be had, with what the chosen ones have taken from their worth."""

    def __init__(self, candidates: Sequence[CandidateLine], count_tokens: TokenCounter) -> None:
        worthy = [c for c in candidates if c.weight + sum(c.facts.values()) >= _LEAST_WORTH]
        best = sorted(worthy, key=lambda c: (-c.weight - sum(c.facts.values()), c.first_seq, c.index))[:POOL_SIZE]
        self.left = {at: candidate for at, candidate in enumerate(best)}
        self.tokens = [max(1, count_tokens(candidate.text)) for candidate in best]
        self.said_before = [0.0] * len(best)
        self.held: set[str] = set()
        self.opened: set[tuple[Section, int, int]] = set()
        self.headed: set[tuple[int, str]] = set()
        self._by_term = _positions((at, candidate.terms) for at, candidate in self.left.items())
        self._by_fact = _positions((at, candidate.facts) for at, candidate in self.left.items())
        self._by_message = _positions((at, [candidate.last_seq]) for at, candidate in self.left.items())
        self.worth = [self._worth(at) for at in self.left]
        """Of each, kept up to date: only a few of them change with what is taken."""

    def cost(self, at: int) -> int:
        candidate = self.left[at]
        headed = not candidate.under or (candidate.last_seq, candidate.under) in self.headed
        head = 0 if headed else len(candidate.under) // 4
        return self.tokens[at] + head + (1 if candidate.key in self.opened else _LINE_OVERHEAD_TOKENS)

    def _worth(self, at: int) -> float:
        candidate = self.left[at]
        new = sum(value for fact, value in candidate.facts.items() if fact not in self.held)
        if not new and self.said_before[at] >= _SAID_ALREADY:
            return 0.0
        own = candidate.weight * (1.0 - _REDUNDANCY * self.said_before[at])
        return float((own + new) / self.cost(at) ** _LENGTH_POWER)

    def take(self, at: int) -> CandidateLine:
        taken = self.left.pop(at)
        new_facts = taken.facts.keys() - self.held
        self.held |= new_facts
        self.opened.add(taken.key)
        self.headed.add((taken.last_seq, taken.under))
        changed = {*self._by_message[taken.last_seq], *chain.from_iterable(self._by_fact[fact] for fact in new_facts)}
        shared = Counter(chain.from_iterable(self._by_term[term] for term in taken.terms))
        for other, count in shared.items():
            if other not in self.left:
                continue
            # Shared terms over those of the shorter one.
            said = count / min(len(taken.terms), len(self.left[other].terms))
            if said > self.said_before[other]:
                self.said_before[other] = said
                changed.add(other)
        for other in changed & self.left.keys():
            self.worth[other] = self._worth(other)
        return taken


def select_candidates(
    candidates: Sequence[CandidateLine],
    *,
    room_tokens: int,
    shares: Mapping[Section, float],
    message_share: float = 1.0,
    first: Sequence[CandidateLine] = (),
    count_tokens: TokenCounter,
) -> list[CandidateLine]:
    """The chosen candidates, best first, within the room, each section and each message within its share of it.

    Those in `first` are taken before any other, as far as they fit.
    """
    pool = _Pool(candidates, count_tokens)
    room = _Room(room_tokens, shares, message_share)
    wanted = [at for at, candidate in pool.left.items() if any(candidate is one for one in first)]
    chosen: list[CandidateLine] = []
    while pool.left:
        at = _next(pool, room, wanted)
        if at is None:
            break
        room.use(pool.left[at], pool.cost(at))
        chosen.append(pool.take(at))
    return chosen


class _Room:
    """The tokens still free: in all, for each section, for each message."""

    def __init__(self, tokens: int, shares: Mapping[Section, float], message_share: float) -> None:
        self.tokens = tokens
        self.by_section = (
            {section: int(share * tokens) for section, share in shares.items()} if tokens > UNDIVIDED_TOKENS else {}
        )
        self.by_message: defaultdict[int, int] = defaultdict(
            lambda: max(int(message_share * tokens), min(tokens, LEAST_FOR_MESSAGE))
        )

    def fits(self, candidate: CandidateLine, cost: int) -> bool:
        by_section = self.by_section.get(candidate.section, self.tokens)
        return cost <= min(self.tokens, by_section, self.by_message[candidate.last_seq])

    def use(self, candidate: CandidateLine, cost: int) -> None:
        self.tokens -= cost
        self.by_message[candidate.last_seq] -= cost
        if candidate.section in self.by_section:
            self.by_section[candidate.section] -= cost


def _next(pool: _Pool, room: _Room, wanted: list[int]) -> int | None:
    """The best that fits and adds something. What does neither now never will, so it leaves the pool."""
    for at in [wanted.pop(0)] if wanted else _best_first(pool):
        if room.fits(pool.left[at], pool.cost(at)) and pool.worth[at] > 0:
            return at
        del pool.left[at]
    return _next(pool, room, wanted) if wanted or pool.left else None


def _best_first(pool: _Pool) -> Iterator[int]:
    """Mostly the first is taken, so that the others need not be ordered. Of equals the earlier one."""
    first = max(pool.left, key=pool.worth.__getitem__, default=None)
    if first is not None:
        yield first
        yield from sorted(pool.left, key=lambda at: (-pool.worth[at], at))

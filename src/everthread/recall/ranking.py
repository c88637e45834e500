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

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from typing import overload

from everthread.recall.asking import Asked
from everthread.recall.evidence import Evidence, Heard, RecallWeights
from everthread.recall.scoring import Room
from everthread.text.passages import PassageSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A message in its order, and the passage of it that is shown."""

    heard: Heard
    span: PassageSpan
    score: float
    """Compares only with the others of the same question."""
    is_borrowed: bool
    """Whether it has nothing of the question itself, only messages around it have."""


def rank(asked: Asked, heard: Sequence[Heard], evidence: Evidence, weights: RecallWeights) -> Ranking:
    """The messages that have something to do with the question, best first; of equals the newer one."""
    return Ranking(Room(asked, sorted(heard, key=lambda one: one.order), evidence, weights))


class Ranking(Sequence[Ranked]):
    """Messages in their order. Of hundreds that were compared a few are looked at: only for those the passage to show
    is chosen."""

    def __init__(self, room: Room) -> None:
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

"""A conversation as trials need it: the size and the facts of each message, and when requests went out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from everthread.compaction.facts import Fact, facts_of
from everthread.compaction.plan import sources
from everthread.context import read_view
from everthread.context.message_format import is_user_turn, to_openai
from everthread.context.tokens import message_tokens
from everthread.core.entries import Entry
from everthread.core.log import BranchName
from everthread.core.nouns import Ref
from everthread.core.ports import Outlook, PathQuery, Store

_PAGE: Final = 500
Step = Callable[[int], None]
"""Told how many messages have been gone through since it was last called."""


def silent(_: int) -> None:
    """Nobody wants to know how far it has come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a trial must know of one message."""

    seq: int
    tokens: int
    is_answer: bool
    opens_turn: bool
    facts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """One path of a conversation, read once for all trials."""

    said: Sequence[Said]
    known: Mapping[str, Fact]
    """Every fact by its normal form."""

    @property
    def turns(self) -> int:
        return sum(one.opens_turn for one in self.said)

    @property
    def requests(self) -> list[int]:
        """How many messages there were when each request went out."""
        answered = [at for at, one in enumerate(self.said) if one.is_answer and at > 0]
        if not any(one.is_answer for one in self.said):
            return list(range(1, len(self.said) + 1))
        return answered if self.said[-1].is_answer else [*answered, len(self.said)]

    @property
    def facts(self) -> list[Fact]:
        """What had been said when the last request went out, each fact once."""
        asked = self.said[: self.requests[-1]] if self.requests else ()
        return [self.known[normal] for normal in dict.fromkeys(normal for one in asked for normal in one.facts)]

    @property
    def answer_tokens(self) -> int:
        return sum(one.tokens for one in self.said if one.is_answer)


async def read(store: Store, ref: Ref, branch: BranchName = None, step: Step = silent) -> Talk:
    """The messages of a path, page by page: their sizes and their facts, not their text."""
    leaf = _leaf(await store.views.inputs(ref, branch))
    said: list[Said] = []
    known: dict[str, Fact] = {}
    after = 0
    while pairs := await store.log.path(ref, PathQuery(branch=leaf, after=after, limit=_PAGE)):
        said += [_said(place, newest, known) for place, newest in pairs]
        after = pairs[-1][0].seq
        step(len(pairs))
    return Talk(said=said, known=known)


def _leaf(outlook: Outlook) -> int:
    return outlook.segments[-1].last if outlook.segments else 0


def _said(place: Entry, newest: Entry, known: dict[str, Fact]) -> Said:
    """One message; its facts join those known so far."""
    stored = read_view.stored(place, newest)
    found = facts_of(sources([stored]))
    for fact in found:
        known.setdefault(fact.normal, fact)
    return Said(
        seq=stored.seq,
        tokens=sum(message_tokens(message) for message in to_openai(stored.payload)),
        is_answer=newest.role == "assistant",
        opens_turn=is_user_turn(stored.payload),
        facts=frozenset(fact.normal for fact in found),
    )

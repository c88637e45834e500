"""A conversation as trials need it: the size and the facts of each message, and when requests went out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from everthread.compaction.fact_ranking import facts_of_sources
from everthread.compaction.sources import sources_from
from everthread.context import read_view
from everthread.context.message_format import is_user_turn, to_openai
from everthread.context.tokens import message_tokens
from everthread.core import payloads
from everthread.core.entries import Entry
from everthread.core.log import BranchName
from everthread.core.nouns import Ref
from everthread.core.ports import PathQuery, Store
from everthread.text.facts import Fact, find_facts

_PAGE: Final = 500
ProgressCallback = Callable[[int], None]
"""Called with the number of messages processed since the last call."""


def no_progress(_: int) -> None:
    """A callback that does nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMessage:
    """What a trial needs to know about a message."""

    seq: int
    tokens: int
    is_answer: bool
    opens_turn: bool
    facts: frozenset[str]
    used: frozenset[str] = frozenset()
    """The facts of a user's words, or of the arguments of tool calls: what somebody needed just then."""
    said: str = ""
    """What a user said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One path of a conversation, read once for all trials."""

    messages: Sequence[TranscriptMessage]
    known: Mapping[str, Fact]
    """Every fact by its normal form."""

    @property
    def turns(self) -> int:
        return sum(one.opens_turn for one in self.messages)

    @property
    def requests(self) -> list[int]:
        """For each request, how many messages there were when it went out."""
        answered = [at for at, one in enumerate(self.messages) if one.is_answer and at > 0]
        if not any(one.is_answer for one in self.messages):
            return list(range(1, len(self.messages) + 1))
        return answered if self.messages[-1].is_answer else [*answered, len(self.messages)]

    def last_said(self, end: int) -> str:
        """The last thing the user said in the first messages of a path."""
        return next((one.said for one in reversed(self.messages[:end]) if one.opens_turn), "")

    @property
    def facts(self) -> list[Fact]:
        """The facts said before the last request, each once."""
        asked = self.messages[: self.requests[-1]] if self.requests else ()
        return [self.known[normal] for normal in dict.fromkeys(normal for one in asked for normal in one.facts)]

    @property
    def answer_tokens(self) -> int:
        return sum(one.tokens for one in self.messages if one.is_answer)


async def read_transcript(
    store: Store, ref: Ref, branch: BranchName = None, step: ProgressCallback = no_progress
) -> Transcript:
    """The messages of a path, page by page: their sizes and their facts, not their text."""
    segments = (await store.views.inputs(ref, branch)).segments
    leaf = segments[-1].last if segments else 0
    messages: list[TranscriptMessage] = []
    known: dict[str, Fact] = {}
    after = 0
    while pairs := await store.log.path(ref, PathQuery(branch=leaf, after=after, limit=_PAGE)):
        messages += [_measure(place, newest, known) for place, newest in pairs]
        after = pairs[-1][0].seq
        step(len(pairs))
    return Transcript(messages=messages, known=known)


def _measure(place: Entry, newest: Entry, known: dict[str, Fact]) -> TranscriptMessage:
    """One message; its facts are added to `known`."""
    stored = read_view.to_log_message(place, newest)
    found = facts_of_sources(sources_from([stored]))
    opens_turn = is_user_turn(stored.payload)
    said = payloads.text(stored.payload) if opens_turn else ""
    needed = said if opens_turn else "\n".join(_arguments(stored.payload))
    for fact in found:
        known.setdefault(fact.normal, fact)
    return TranscriptMessage(
        seq=stored.seq,
        tokens=sum(message_tokens(message) for message in to_openai(stored.payload)),
        is_answer=newest.role == "assistant",
        opens_turn=opens_turn,
        facts=frozenset(fact.normal for fact in found),
        used=frozenset(fact.normal for fact in find_facts(needed)) if needed else frozenset(),
        said=said,
    )


def _arguments(payload: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of a message's tool calls, a line each."""
    for message in to_openai(payload):
        for call in message.get("tool_calls") or ():
            try:
                given = json.loads(call["function"]["arguments"])
            except ValueError:
                continue
            if isinstance(given, dict):
                yield from (str(one) for one in given.values() if isinstance(one, str | int))

"""Trying a policy on a conversation that exists, without writing anything.

The history is gone through request by request, as if it happened again: the log is read where it stands, and the
compactions of each trial are kept in memory (`_Overlay`), so they begin with none and end with the trial. Beside a
policy stand two ways without summaries: the newest messages only, and all of them.

A request goes out before every message of the assistant (where none speaks, after every message). What a compaction
changes shows in the request after it, as when it runs in the background. Summaries are the extractive ones: a summary
model would have to be paid for every trial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, cast

from everthread import views
from everthread.compaction.facts import Fact, facts_of, kept
from everthread.compaction.plan import sources
from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.record import KeepCompaction
from everthread.compaction.view import shown
from everthread.context.assemble import Context
from everthread.context.budget import Budget, message_tokens
from everthread.context.dialect import Fields
from everthread.context.openai import to_openai
from everthread.context.shape import is_user_turn
from everthread.conversation import Conversation, Means
from everthread.core.clock import Clock
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.errors import Conflict
from everthread.core.log import BranchName, CompactionQuery, Intent
from everthread.core.nouns import Ref
from everthread.core.ports import Outlook, PathQuery, Store

FIXED_WINDOW: Final = 40
_PAGE: Final = 500
Step = Callable[[int], None]
"""Told how many messages have been gone through since it was last called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any currency."""

    input: float
    output: float
    cached: float
    """Of what a prompt cache has from the request before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one way of making requests came to over a whole conversation."""

    way: str
    turns: int
    requests: int
    tokens: int
    """Of all requests together."""
    cached_tokens: int
    """Of these, what stood at the beginning of the request before, message by message."""
    answer_tokens: int
    over_limit: int
    """Requests that the model would have refused."""
    compactions: int
    facts_total: int
    """Distinct facts of the whole conversation."""
    facts_kept: int
    """How many of them the last request still says."""

    @property
    def tokens_per_turn(self) -> float:
        return self.tokens / max(1, self.turns)

    @property
    def stability(self) -> float:
        """The share of all that was sent which a prompt cache would have had."""
        return self.cached_tokens / max(1, self.tokens)

    def cost(self, prices: Prices) -> float:
        """Of the whole conversation."""
        paid = (self.tokens - self.cached_tokens) * prices.input + self.cached_tokens * prices.cached
        return (paid + self.answer_tokens * prices.output) / 1_000_000


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


def _silent(_: int) -> None:
    """Nobody wants to know how far it has come."""


# -- reading -------------------------------------------------------------------------------------------------------


async def read(store: Store, ref: Ref, branch: BranchName = None, step: Step = _silent) -> Talk:
    """The messages of a path, page by page: their sizes and their facts, not their text."""
    leaf = _leaf(await store.outlook(ref, branch))
    said: list[Said] = []
    known: dict[str, Fact] = {}
    after = 0
    while pairs := await store.path(ref, PathQuery(branch=leaf, after=after, limit=_PAGE)):
        said += [_said(place, newest, known) for place, newest in pairs]
        after = pairs[-1][0].seq
        step(len(pairs))
    return Talk(said=said, known=known)


def _leaf(outlook: Outlook) -> int:
    return outlook.segments[-1].last if outlook.segments else 0


def _said(place: Entry, newest: Entry, known: dict[str, Fact]) -> Said:
    """One message; its facts join those known so far."""
    stored = views.stored(place, newest)
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


# -- without summaries ---------------------------------------------------------------------------------------------


def full_history(talk: Talk, limit: int) -> Figures:
    """Everything in every request, also where no model takes that much."""
    return _without_summaries("full history", talk, limit, None)


def fixed_window(talk: Talk, limit: int, size: int = FIXED_WINDOW) -> Figures:
    """The newest messages in every request. Its beginning moves with each turn, so a cache seldom has anything."""
    return _without_summaries(f"newest {size} messages", talk, limit, size)


def _without_summaries(way: str, talk: Talk, limit: int, size: int | None) -> Figures:
    upto = [0, *accumulate(one.tokens for one in talk.said)]
    tokens = cached = over = 0
    before = (0, 0)
    for end in talk.requests:
        start = 0 if size is None else max(0, end - size)
        request = upto[end] - upto[start]
        tokens += request
        over += request > limit
        cached += upto[before[1]] - upto[start] if start == before[0] else 0
        before = (start, end)
    shown = {normal for one in talk.said[slice(*before)] for normal in one.facts}
    return Figures(
        way=way,
        turns=talk.turns,
        requests=len(talk.requests),
        tokens=tokens,
        cached_tokens=cached,
        answer_tokens=talk.answer_tokens,
        over_limit=over,
        compactions=0,
        facts_total=len(talk.facts),
        facts_kept=len(shown),
    )


# -- with a policy -------------------------------------------------------------------------------------------------


class _Overlay:
    """A store to try a policy on: reads go to the log behind it, compactions stay here, nothing else is written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.made: list[Compaction] = []

    async def outlook(self, ref: Ref, branch: BranchName) -> Outlook:
        real = await self._store.outlook(ref, branch)
        row = shown(self.made, real.segments)
        last = await self._store.find(ref, seqs=[row[-1].last_seq]) if row else ()
        depth = last[0].depth if last else 0
        return replace(real, row=row, covered_depth=depth, is_asked_back=False, policies=(None, None))

    async def compactions(self, ref: Ref, query: CompactionQuery) -> Sequence[Compaction]:
        """All that were made: more than was asked for does no harm."""
        return self.made

    async def path(self, ref: Ref, query: PathQuery) -> Sequence[tuple[Entry, Entry]]:
        return await self._store.path(ref, query)

    async def find(self, ref: Ref, *, ids: Sequence[str] = (), seqs: Sequence[int] = ()) -> Sequence[Entry]:
        return await self._store.find(ref, ids=ids, seqs=seqs)

    async def write(self, ref: Ref, intent: Intent[Any]) -> object:
        """One trial is one task, so what it keeps always follows what it kept before."""
        if not isinstance(intent, KeepCompaction):
            raise Conflict("a policy is being tried: nothing is written")
        self.made.append(intent.compaction)
        return intent.compaction, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What trying a policy works with."""

    store: Store
    clock: Clock
    ref: Ref
    budget: Budget
    step: Step = _silent

    async def run(self, way: str, policy: CompactionPolicy, talk: Talk) -> Figures:
        """The same conversation under this policy."""
        overlay = _Overlay(self.store)
        store = cast(Store, overlay)
        conversation = Conversation(Means(store=store, clock=self.clock, policy=policy), await self.store.get(self.ref))
        last: Context | None = None
        tokens = cached = passed = 0
        for end in talk.requests:
            made = await self._request(store, conversation, policy, talk.said[end - 1].seq)
            tokens += made.tokens
            cached += 0 if last is None else _cached(last, made)
            self.step(end - passed)
            last, passed = made, end
        facts = talk.facts
        return Figures(
            way=way,
            turns=talk.turns,
            requests=len(talk.requests),
            tokens=tokens,
            cached_tokens=cached,
            answer_tokens=talk.answer_tokens,
            over_limit=0,
            compactions=len(overlay.made),
            facts_total=len(facts),
            facts_kept=0 if last is None else len(kept(_text(last.messages), facts)[0]),
        )

    async def _request(self, store: Store, conversation: Conversation, policy: CompactionPolicy, seq: int) -> Context:
        """The request when this message was the newest; what is due then is done before the next one."""
        view = await views.look(store, self.ref, seq, policy)
        made = views.render(view, self.budget)
        due = views.is_due(view, made, self.budget)
        if due == "hard_limit":
            return await conversation.context(branch=seq, budget=self.budget)
        if due is not None:
            await conversation.compact(branch=seq, trigger=due)
        return made


def _cached(before: Context, now: Context) -> int:
    """What both requests begin with. A cache may have a little more: the part of the first message that differs."""
    if now.messages[: len(before.messages)] == before.messages:
        return before.tokens
    same = 0
    for old, new in zip(before.messages, now.messages, strict=False):
        if old != new:
            break
        same += message_tokens(new)
    return same


def _text(messages: Sequence[Fields]) -> str:
    """All that a request says, calls included."""
    return "\n".join(_words(message) for message in messages)


def _words(message: Mapping[str, Any]) -> str:
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    content = message.get("content")
    said = content if isinstance(content, str) else _block_texts(content)
    return "\n".join([said, *calls])


def _block_texts(content: object) -> str:
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
    )

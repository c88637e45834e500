"""Bringing back what was said: a question becomes hits, and for a context the episodes that go before the question.

The index tells where the question's words stand; the messages that are worth it are read, with those around them and
those near in meaning, and put in order by `recall.ranking`. Meaning has a time limit and may be away: words answer
without it, and the answer says so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any

import orjson

from everthread.context.ingredients import Recalled, Stored, recalled_block
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.clock import Clock, system_clock
from everthread.core.entries import Entry
from everthread.core.errors import EverthreadError, StoreDamaged
from everthread.core.log import Segment
from everthread.core.meaning import Near
from everthread.core.nouns import Hit, Hits, Message, Ref
from everthread.core.paths import is_on, segments
from everthread.core.ports import PathQuery, Placed, Store, WordPlaces
from everthread.embedding import Meaning, is_behind
from everthread.history.match import parse
from everthread.history.snippets import snippet
from everthread.recall.asking import MOST_CHARACTERS, Asked, asked
from everthread.recall.dates import named_times
from everthread.recall.nearness import Places, in_any_form, rarities, telling, worth_reading
from everthread.recall.passages import WHOLE_TOKENS, Span, estimated_tokens
from everthread.recall.policy import RecallHit, RecallHits, RecallPolicy
from everthread.recall.ranking import Evidence, Heard, Ranked, Ranking, RecallWeights, rank
from everthread.views import View, stored

_READ = 300
"""So many messages are read for a question, at some 40 µs each."""
_NEAREST = 200
"""So many passages near in meaning take part."""
_MOST_PLACES = 20_000
"""Of a word that more messages have, the newest so many are looked at."""
_CONTEXT_HITS = 20
"""Out of so many hits the episodes of a context are made."""
_LEAST_SHARE = 0.3
"""What scores less than this share of the best is not worth its tokens in a request."""
_TURN_REACH = 12
"""How far back the user's turn is looked for that an answer belongs to."""
_ARGUMENTS = re.compile(rb'"(?:args|arguments|input)"\s*:\s*[^"\s]').search
"""Arguments of a call that are not a text of their own: the numbers in them are shown."""
_NO_EMBEDDER = "there is no embedder here; `everthread doctor` tells how to get one"
_MEANING_IS_OFF = "meaning has no weight here: set `recall_meaning` above 0"
_NO_VECTORS = "no vectors are made yet: `everthread reindex` makes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What recall looks into."""

    store: Store
    meaning: Meaning | None = None
    policy: RecallPolicy = field(default_factory=RecallPolicy)
    clock: Clock = system_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearby:
    """What meaning says of a question."""

    found: Sequence[Near] = ()
    grasp: float = 0.0
    is_behind: bool = False
    unanswered: tuple[str, ...] = ()
    why_not: str | None = None
    """Why it says nothing, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found, best first, before it is cut to what is asked for."""

    ranked: Ranking | Sequence[Ranked] = ()
    placed: Mapping[int, Placed] = field(default_factory=dict)
    """The messages by order."""
    nearby: _Nearby = _Nearby()
    truncated: bool = False

    @property
    def is_behind(self) -> bool:
        """Whether some messages have no vectors yet."""
        return self.nearby.is_behind

    @property
    def by_meaning(self) -> bool:
        """Whether likeness in meaning took part."""
        return bool(self.nearby.found)

    def hits(self, limit: int, max_tokens: int) -> RecallHits:
        """At most so many, that together count to no more; what does not fit is passed over."""
        kept: list[RecallHit] = []
        for one in self.ranked:
            if len(kept) == limit:
                break
            place = self.placed[one.heard.order]
            hit = _hit(one, place)
            is_whole = hit.text == one.heard.text
            tokens = place.entry.tokens if is_whole else count_tokens(hit.text)  # the log has counted whole ones
            if tokens <= max_tokens:
                max_tokens -= tokens
                kept.append(hit)
        return RecallHits(tuple(kept), self.is_behind, self.nearby.unanswered, self.truncated, self.by_meaning)


async def find(
    sources: Sources,
    owner: str,
    conversation: str | None,
    question: str,
    *,
    asked_at: datetime | None = None,
    path: Sequence[Segment] | None = None,
    without: Collection[int] = (),
) -> Findings:
    """What has to do with a question, in one conversation along a path, or in all that an owner has.

    Messages by their seq that are in `without` lend to others what they have of the question, but are not found.
    """
    wanted = asked(question)
    places, nearby = await asyncio.gather(
        _word_places(sources.store, owner, conversation, wanted), _near(sources, owner, conversation, question)
    )
    rarity = rarities(places.of, places.total)
    where = telling(places.of, rarity, _READ)
    orders = worth_reading(where, rarity, _READ)
    named = list(dict.fromkeys((near.conversation_id, near.seq) for near in nearby.found))
    read = await sources.store.placed(owner, orders, named) if orders or named else ()
    placed = {one.order: one for one in read if path is None or is_on(path, one.branch, one.seq)}
    times = named_times(question[:MOST_CHARACTERS], asked_at or sources.clock())
    evidence = Evidence(
        places=_along(where, {one.order for one in read} - placed.keys()),
        rarity=rarity,
        likeness=_likeness(nearby.found, placed.values()),
        grasp=nearby.grasp,
        times=times,
    )
    ranked = await asyncio.to_thread(_ranked, wanted, placed.values(), evidence, sources.policy.weights)
    shown = ranked.without({one.order for one in placed.values() if one.seq in without}) if without else ranked
    return Findings(ranked=shown, placed=placed, nearby=nearby, truncated=places.truncated)


def _ranked(wanted: Asked, placed: Iterable[Placed], evidence: Evidence, weights: RecallWeights) -> Ranking:
    heard = [one for place in placed for one in _heard(place, is_dated=bool(evidence.times))]
    return rank(wanted, heard, evidence, weights)


async def _word_places(store: Store, owner: str, conversation: str | None, wanted: Asked) -> WordPlaces:
    if not wanted.terms:
        return WordPlaces({}, 0, False)
    found = await store.word_places(owner, conversation, wanted.forms, cap=_MOST_PLACES)
    return found._replace(of=in_any_form(wanted.terms, found.of))


async def _near(sources: Sources, owner: str, conversation: str | None, question: str) -> _Nearby:
    """What is near in meaning, as far as that answers in time."""
    meaning = sources.meaning
    if meaning is None:
        return _Nearby(why_not=_NO_EMBEDDER)
    text = question[:MOST_CHARACTERS]
    grasp = meaning.embedder.grasp(text) if text.strip() else 0.0
    if not grasp * sources.policy.weights.meaning:
        return _Nearby(why_not=_MEANING_IS_OFF if grasp else f"{meaning.embedder.name} grasps nothing of this text")
    try:
        async with asyncio.timeout(sources.policy.time_limit_seconds):
            vector = await meaning.embedder.query(text)
            found = await meaning.vectors.near(owner, conversation, meaning.embedder.name, vector, _NEAREST)
            late = conversation is not None and await is_behind(sources.store, meaning, Ref(owner, conversation))
    except TimeoutError:
        return _silent(f"no answer within {sources.policy.time_limit_seconds:g} s")
    except EverthreadError as problem:
        return _silent(f"{type(problem).__name__}: {problem}")
    return _Nearby(found=found, grasp=grasp, is_behind=late, why_not=None if found else _NO_VECTORS)


def _silent(why: str) -> _Nearby:
    return _Nearby(unanswered=(f"meaning: {why}",), why_not=why)


def _along(places: Places, elsewhere: Collection[int]) -> Places:
    """Without what is said on other branches: nobody talks about it here."""
    if not elsewhere:
        return places
    return {term: [order for order in having if order not in elsewhere] for term, having in places.items()}


def _likeness(found: Iterable[Near], placed: Iterable[Placed]) -> dict[tuple[int, int], float]:
    """By order; vectors of what a revision has replaced say nothing any more."""
    orders = {(one.conversation_id, one.entry.seq): one.order for one in placed}
    known = ((orders.get((near.conversation_id, near.seq)), near) for near in found)
    return {(order, near.part): near.score for order, near in known if order is not None}


def _heard(place: Placed, *, is_dated: bool) -> list[Heard]:
    """A message as ranking takes it; a damaged one is left out, of which `verify` tells."""
    entry = place.entry
    try:
        payload = _payload(entry)
    except StoreDamaged:
        return []
    said_at = (payloads.said_at(payload) or Message(entry).created_at) if is_dated else None
    name, text = payloads.name(payload), payloads.searchable(payload)
    return [Heard(place.order, place.depth, place.conversation_id, entry.role, name, text, said_at)]


def _payload(entry: Entry) -> Mapping[str, Any]:
    """As `Message` decodes it, five times as fast: only where numbers are shown that orjson would round, not by it."""
    if entry.raw and not (b"tool_" in entry.raw and _ARGUMENTS(entry.raw)):
        with suppress(orjson.JSONDecodeError):
            decoded: dict[str, Any] = orjson.loads(entry.raw)
            return decoded
    return Message(entry).payload


def _hit(one: Ranked, place: Placed) -> RecallHit:
    message = Message(place.entry)
    return RecallHit(
        conversation_id=place.conversation_id,
        ids=(message.id,),
        seqs=(place.seq,),
        text=one.heard.text[one.span.start : one.span.end].strip(),
        score=round(one.score, 6),
        said_at=message.said_at or message.created_at,
        speaker=message.name or message.role,
        is_passage=one.span != (0, len(one.heard.text)),
    )


async def search(sources: Sources, owner: str, conversation: str | None, text: str, limit: int) -> Hits:
    """What is recalled, in the shape of a search: on whichever branch, with a snippet of each."""
    findings = await find(sources, owner, conversation, text)
    query = parse(text)
    return Hits(
        tuple(
            Hit(
                conversation_id=one.heard.conversation_id,
                seq=findings.placed[one.heard.order].seq,
                id=findings.placed[one.heard.order].entry.id,
                snippet=snippet(one.heard.text[one.span.start : one.span.end], query),
                score=one.score,
            )
            for one in findings.ranked[:limit]
        ),
        findings.truncated,
        findings.by_meaning,
        findings.nearby.why_not,
        findings.is_behind,
    )


async def path_of(store: Store, ref: Ref) -> Sequence[Segment]:
    """The active path of a conversation."""
    rows, active = await store.branches(ref)
    return segments({row.number: row for row in rows}, active)


# -- episodes for a context ----------------------------------------------------------------------------------------


async def recalled(sources: Sources, ref: Ref, view: View, query: str) -> tuple[Sequence[Recalled], bool]:
    """The best episodes that go into the policy's cap, in the order in which they were said: what was found, with the
    user's turn it belongs to and its answer. And whether some could not be found by meaning yet."""
    left = view.policy.recalled_max_tokens
    if not left or not sources.policy.top_k or _is_all_in_view(view):
        return (), False
    there = {one.seq for one in (*view.window, *view.pinned, *view.standing)}
    findings = await find(sources, ref.owner, ref.id, query, path=view.outlook.segments, without=there)
    episodes = await _episodes(sources, ref, view, findings)
    kept: dict[int, Recalled] = {}
    for one in (passage for episode in episodes for passage in episode if passage.stored.seq not in there):
        tokens = recalled_block(one).tokens
        if one.stored.seq not in kept and tokens <= left:
            left -= tokens
            kept[one.stored.seq] = one
    return [kept[seq] for seq in sorted(kept)], findings.is_behind


def _is_all_in_view(view: View) -> bool:
    """Whether nothing was said before the window, so that nothing can be brought back."""
    return not view.row and view.passed_over is None


async def _episodes(sources: Sources, ref: Ref, view: View, findings: Findings) -> list[list[Recalled]]:
    """Each with what was found first, then what belongs to it."""
    by_turn: dict[int, list[Recalled]] = {}
    others: dict[int, list[Recalled]] = {}
    best = findings.ranked[0].score if findings.ranked else 0.0
    hits = [one for one in findings.ranked[:_CONTEXT_HITS] if not one.is_borrowed and one.score >= _LEAST_SHARE * best]
    turns = _Turns(sources.store, ref, view, findings.placed.values())
    await turns.read([findings.placed[one.heard.order] for one in hits[: 2 * sources.policy.top_k]])
    for one in hits:
        place = findings.placed[one.heard.order]
        is_full = len(by_turn) == sources.policy.top_k
        if is_full and not turns.may_be_of(by_turn, place):
            continue
        turn = await turns.around(place)
        first = turn[0].stored.seq if turn else place.seq
        if first not in by_turn and is_full:
            continue
        found = [part for part in turn if part.stored.seq == place.seq]
        by_turn.setdefault(first, []).extend(_passage(part, one) for part in found)
        others.setdefault(first, [part for part in turn if _is_short(part)])
    return [[*found, *others[first]] for first, found in by_turn.items()]


class _Turns:
    """The users' turns that messages belong to. Those of a turn mostly stand side by side in the log, so that one read
    has the turns of many; the path is asked where something is missing in between, or was revised."""

    def __init__(self, store: Store, ref: Ref, view: View, known: Iterable[Placed]) -> None:
        self._store = store
        self._ref = ref
        self._view = view
        self._by_depth = {one.depth: one for one in known}
        self._asked: list[int] = []

    async def read(self, places: Sequence[Placed]) -> None:
        """Read what is around these messages, unless it is known."""
        around = {order for one in places for order in range(one.order - _TURN_REACH + 1, one.order + 2)}
        orders = around.difference(one.order for one in self._by_depth.values())
        if orders:
            near = await self._store.placed(self._ref.owner, sorted(orders), ())
            on_path = (one for one in near if is_on(self._view.outlook.segments, one.branch, one.seq))
            self._by_depth.update((one.depth, one) for one in on_path)

    def may_be_of(self, turns: Collection[int], place: Placed) -> bool:
        """Whether a message can be of one of these turns, by the seqs that they begin at: it stands near one that was
        asked for and, as far as is known, no other turn begins in between."""
        if not any(abs(place.depth - depth) <= 2 * _TURN_REACH for depth in self._asked):
            return False
        opening = self._opening(place)
        return opening is None or opening in turns

    def _opening(self, place: Placed) -> int | None:
        """The seq that the message's turn begins at; None if that is not known."""
        for depth in range(place.depth, max(0, place.depth - _TURN_REACH), -1):
            one = self._by_depth.get(depth)
            if one is None:
                return None
            if one.entry.role == "user":
                return one.seq
        return None

    async def around(self, place: Placed) -> list[Recalled]:
        """What the user said, the message, and the answer after it."""
        self._asked.append(place.depth)
        earlier, later = self._side_by_side(place) or await self._along_path(place.seq)
        answers = list(takewhile(lambda one: payloads.role(one.payload) != "user", earlier))
        opening = earlier[len(answers) : len(answers) + 1]
        itself = earlier[:1] if answers else []
        answer = [one for one in later if payloads.role(one.payload) == "assistant"]
        parts = [*opening, *itself, *answer]
        return [Recalled(stored=one, start=0, end=len(payloads.text(one.payload))) for one in parts]

    def _side_by_side(self, place: Placed) -> tuple[list[Stored], list[Stored]] | None:
        """The message and those before it up to the user's, newest first, and the one after it; None if not known."""
        earlier: list[Stored] = []
        for depth in range(place.depth, max(0, place.depth - _TURN_REACH), -1):
            one = self._known(depth)
            if one is None:
                return None
            earlier.append(one)
            if payloads.role(one.payload) == "user":
                break
        if place.depth == self._view.outlook.leaf_depth:
            return earlier, []
        after = self._known(place.depth + 1)
        return None if after is None else (earlier, [after])

    def _known(self, depth: int) -> Stored | None:
        one = self._by_depth.get(depth)
        return None if one is None or one.entry.seq != one.seq else stored(one.entry, one.entry)

    async def _along_path(self, seq: int) -> tuple[list[Stored], list[Stored]]:
        leaf = self._view.leaf_seq
        before = PathQuery(branch=leaf, before=seq + 1, limit=_TURN_REACH, newest_first=True)
        after = PathQuery(branch=leaf, after=seq, limit=1)
        earlier, later = await self._store.path(self._ref, before), await self._store.path(self._ref, after)
        return [stored(*pair) for pair in earlier], [stored(*pair) for pair in later]


def _is_short(one: Recalled) -> bool:
    return 0 < estimated_tokens(one.text) <= WHOLE_TOKENS


def _passage(whole: Recalled, ranked: Ranked) -> Recalled:
    """The passage that was found; of a call, which is no text, what was said with it."""
    span = ranked.span if ranked.span.start < whole.end else Span(0, min(whole.end, WHOLE_TOKENS * 4))
    return Recalled(stored=whole.stored, start=span.start, end=min(span.end, whole.end))

"""Bringing back what was said: a question becomes hits. For a context `episodes` makes more of them.

The index tells where the question's words stand; the messages that are worth it are read, with those around them and
those near in meaning, and put in order by `recall.ranking`. Meaning has a time limit and may be away: words answer
without it, and the answer says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.clock import Clock, system_clock
from everthread.core.driving import is_driven
from everthread.core.errors import EverthreadError, StoreDamaged
from everthread.core.log import Segment
from everthread.core.meaning import Near
from everthread.core.nouns import Hit, Hits, Message, Ref
from everthread.core.paths import is_on, segments
from everthread.core.ports import Placed, Store, WordPlaces
from everthread.history.payload_json import payload_of
from everthread.history.search_query import parse_query
from everthread.history.snippets import snippet
from everthread.recall.asking import MOST_CHARACTERS, Asked, asked
from everthread.recall.embedding import Meaning, is_behind
from everthread.recall.evidence import Evidence, Heard, RecallWeights
from everthread.recall.nearness import Places, in_any_form, rarities, telling, worth_reading
from everthread.recall.policy import RecallHit, RecallHits, RecallPolicy
from everthread.recall.ranking import Ranked, Ranking, rank
from everthread.text.dates import find_time_ranges

_READ = 300
"""So many messages are read for a question, at some 40 µs each."""
_NEAREST = 200
"""So many passages near in meaning take part."""
_MOST_PLACES = 20_000
"""Of a word that more messages have, the newest so many are looked at."""
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
    at_least: int = _READ,
) -> Findings:
    """What has to do with a question, in one conversation along a path, or in all that an owner has.

    Messages by their seq that are in `without` lend to others what they have of the question, but are not found. Those
    that have nothing but words which stand nearly everywhere are looked at where fewer than `at_least` have others.
    """
    nearby = await _near(sources, owner, conversation, question)
    quest = _Quest(owner, conversation, question, asked_at or sources.clock(), path, without, at_least)
    return await sources.store.errand(lambda: _found(sources, quest, nearby))


class _Quest(NamedTuple):
    """What is looked for, and where."""

    owner: str
    conversation: str | None
    text: str
    asked_at: datetime
    path: Sequence[Segment] | None
    without: Collection[int]
    at_least: int


async def _found(sources: Sources, quest: _Quest, nearby: _Nearby) -> Findings:
    """Where the words stand, the messages that are worth it, and their order."""
    wanted = asked(quest.text)
    places = await _word_places(sources.store, quest, wanted)
    rarity = rarities(places.of, places.total)
    where = telling(places.of, rarity, min(quest.at_least, _READ), quest.without)
    orders = worth_reading(where, rarity, _READ)
    named = list(dict.fromkeys((near.conversation_id, near.seq) for near in nearby.found))
    read = await sources.store.search.messages(quest.owner, orders, named) if orders or named else ()
    placed = {one.order: one for one in read if quest.path is None or is_on(quest.path, one.branch, one.seq)}
    evidence = Evidence(
        places=_along(where, {one.order for one in read} - placed.keys()),
        rarity=rarity,
        likeness=_likeness(nearby.found, placed.values()),
        grasp=nearby.grasp,
        times=find_time_ranges(quest.text[:MOST_CHARACTERS], quest.asked_at),
    )
    ranked = await _ranked(wanted, placed.values(), evidence, sources.policy.weights)
    hidden = {one.order for one in placed.values() if one.seq in quest.without} if quest.without else ()
    return Findings(ranked=ranked.without(hidden), placed=placed, nearby=nearby, truncated=places.truncated)


async def _ranked(wanted: Asked, placed: Iterable[Placed], evidence: Evidence, weights: RecallWeights) -> Ranking:
    """In order; in a thread of its own unless this is one."""

    def ranked() -> Ranking:
        heard = [one for place in placed for one in _heard(place, is_dated=bool(evidence.times))]
        return rank(wanted, heard, evidence, weights)

    return ranked() if is_driven() else await asyncio.to_thread(ranked)


async def _word_places(store: Store, quest: _Quest, wanted: Asked) -> WordPlaces:
    if not wanted.terms:
        return WordPlaces({}, 0, False)
    found = await store.search.postings(quest.owner, quest.conversation, wanted.forms, cap=_MOST_PLACES)
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


def _likeness(found: Sequence[Near], placed: Iterable[Placed]) -> dict[tuple[int, int], float]:
    """By order; vectors of what a revision has replaced say nothing any more."""
    if not found:
        return {}
    orders = {(one.conversation_id, one.entry.seq): one.order for one in placed}
    known = ((orders.get((near.conversation_id, near.seq)), near) for near in found)
    return {(order, near.part): near.score for order, near in known if order is not None}


def _heard(place: Placed, *, is_dated: bool) -> list[Heard]:
    """A message as ranking takes it; a damaged one is left out, of which `verify` tells."""
    entry = place.entry
    try:
        payload = payload_of(entry)
    except StoreDamaged:
        return []
    said_at = (payloads.said_at(payload) or Message(entry).created_at) if is_dated else None
    name, text = payloads.name(payload), payloads.searchable(payload)
    return [Heard(place.order, place.depth, place.conversation_id, entry.role, name, text, said_at)]


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
    findings = await find(sources, owner, conversation, text, at_least=limit)
    query = parse_query(text)
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
    rows, active = await store.log.branches(ref)
    return segments({row.number: row for row in rows}, active)

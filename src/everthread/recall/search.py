"""Recall: a question becomes messages, best first. The acting module of the room; for a request, `for_context` makes
episodes of what it finds.

The index tells where the question's words stand; the messages worth it are read, with those around them and those near
in meaning, and ranked. Meaning has a time limit and may be missing: words answer without it, and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import overload

from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.background import is_in_loop
from everthread.core.clock import Clock, system_clock
from everthread.core.embeddings import VectorHit
from everthread.core.errors import EverthreadError, StoreDamaged
from everthread.core.log import Segment
from everthread.core.nouns import Hit, Hits, MatchStrength, Message, Ref
from everthread.core.paths import is_on, segments
from everthread.core.ports import PlacedMessage, Postings, Store
from everthread.core.queries import Term
from everthread.core.timeouts import time_limit
from everthread.history.payload_json import payload_of
from everthread.history.search_query import parse_query
from everthread.history.snippets import snippet
from everthread.recall.candidates import (
    MAX_RELATED_POSTINGS,
    PostingLists,
    choose_candidates,
    drop_common_terms,
    further_around,
    idf_by_term,
    merge_forms,
    substitutes,
    weigh_related,
)
from everthread.recall.collecting import MAX_QUOTED, asks_for_several, group, shorten
from everthread.recall.embedding import SemanticIndex, is_behind
from everthread.recall.links import (
    MAX_LINKED,
    MAX_STEPS,
    RESULT_REACH,
    TOOL_ROLES,
    leads_of,
    naming,
    sources_of,
)
from everthread.recall.lookups import is_lookup
from everthread.recall.policy import RecallPolicy
from everthread.recall.query import MAX_QUESTION_CHARACTERS, RecallQuery, parse_question
from everthread.recall.ranking import (
    CandidateMessage,
    RankedMessage,
    Ranking,
    RankingSignals,
    have_names,
    names_speaker,
    rank,
    recent_candidates,
)
from everthread.recall.said_when import seqs_said_within, spread
from everthread.recall.wishes import WishKind, kind_of_wish, likely_wishes
from everthread.text.dates import find_time_ranges
from everthread.text.secrets import redact_secrets

_MAX_CANDIDATES = 300
"""So many messages are read for a question, at some 40 µs each."""
_MAX_SIMILAR = 200
"""So many passages near in meaning take part."""
_MAX_POSTINGS = 20_000
"""Of a word that more messages have, the newest so many are looked at."""
_MAX_CUED = 200
"""Of a word that wishes begin with, the newest so many messages are looked at."""
_MIN_REASON_SHARE = 0.1
"""What adds less than this share of a score is no reason for a hit."""
_QUOTE_MARGIN_TOKENS = 6
"""What a line of a hit with several messages counts to beside the quote, at most."""
_STRONG_COVERAGE = 0.4
"""A hit that has so much of the question is a strong match. Measured: of questions whose answer is there 45 to 84 in a
hundred have one, of the same questions put to another conversation 7 to 29 (docs/benchmarks/recall.md)."""
_NO_EMBEDDER = "no embedder is installed; `everthread doctor` says how to get one"
_MEANING_IS_OFF = "meaning has no weight here: set `recall_meaning` above 0"
_NO_VECTORS = "no vectors are made yet: `everthread reindex` makes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHit:
    """A message, or a passage of one, that has to do with a question.

    ```python
    for hit in await conv.recall("What can my grandmother not eat?"):
        print(hit.seqs, hit.said_at, hit.speaker, hit.text)
    ```
    """

    conversation_id: str
    ids: tuple[str, ...]
    """The ids of the messages that the text comes from."""
    seqs: tuple[int, ...]
    text: str
    score: float
    """Only comparable with the other hits of the same question."""
    said_at: datetime
    speaker: str
    """The speaker's name, or else the role."""
    match: MatchStrength = "strong"
    """`strong` if it has much of the question, in words or in meaning, or answers a message that has; `weak` if it
    has a little of it, or only a related word. Where all hits are weak, it was probably never said."""
    is_passage: bool = False
    """Whether the text is only a part of the message."""
    why: tuple[str, ...] = ()
    """What it was found by, the strongest first: `words`, `meaning`, `neighbours`, `topic`, `date`, `speaker` or
    `wish` (a standing wish that may govern what is asked)."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """What each of these adds to the score; together they are the score."""
    words: tuple[str, ...] = ()
    """The words of the question that the message has, then words related to others of them, as they stand in it."""


@dataclass(frozen=True, slots=True)
class RecallHits(Sequence[RecallHit]):
    """What was recalled, best first, and whether all of it could be searched.

    ```python
    hits = await conv.recall("What can my grandmother not eat?", max_tokens=500)
    print(len(hits), hits.by_meaning, hits.is_behind, hits.unanswered)
    ```
    """

    items: tuple[RecallHit, ...] = ()
    is_behind: bool = False
    """Whether some messages are not indexed by meaning yet."""
    unanswered: tuple[str, ...] = ()
    """Which parts of the search failed, and why; only words were searched then."""
    truncated: bool = False
    """Whether a word was so common that only the newest messages with it were considered."""
    by_meaning: bool = False
    """Whether meaning was searched too; never without an embedder."""
    asks_for_several: bool = False
    """Whether the question asks for many things at once (which, how many, all, in what order): then each hit quotes up
    to four messages, a line for each, in their order."""

    @property
    def in_order(self) -> tuple[RecallHit, ...]:
        """The hits as they were said, the oldest first."""
        return tuple(sorted(self.items, key=lambda hit: (hit.said_at, hit.seqs)))

    @property
    def only_weak(self) -> bool:
        """Whether there is no strong match, which is so too where there is no hit at all: what was asked for was
        probably said in other words, or never."""
        return all(hit.match == "weak" for hit in self.items)

    @overload
    def __getitem__(self, index: int) -> RecallHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RecallHit, ...]: ...
    def __getitem__(self, index: int | slice) -> RecallHit | tuple[RecallHit, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallServices:
    """What recall works with: the store, the semantic index, its settings and the clock."""

    store: Store
    meaning: SemanticIndex | None = None
    policy: RecallPolicy = field(default_factory=RecallPolicy)
    clock: Clock = system_clock


@dataclass(frozen=True, slots=True, kw_only=True)
class _SimilarPassages:
    """What is near to a question in meaning."""

    passages: Sequence[VectorHit] = ()
    understood_share: float = 0.0
    """Which share of the question the embedder understands."""
    is_behind: bool = False
    unanswered: tuple[str, ...] = ()
    reason: str | None = None
    """Why there are none, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """What was found, best first, before it is cut to what is asked for."""

    ranking: Ranking
    messages: Mapping[int, PlacedMessage]
    """By entry key."""
    similar: _SimilarPassages
    truncated: bool
    asks_for_several: bool = False
    """Whether the question asks for many things at once."""

    @property
    def is_behind(self) -> bool:
        """Whether some messages have no vectors yet."""
        return self.similar.is_behind

    @property
    def by_meaning(self) -> bool:
        """Whether similarity in meaning took part."""
        return bool(self.similar.passages)

    def hits(self, limit: int, max_tokens: int, *, show_secrets: bool) -> RecallHits:
        """At most so many, that together count to no more; what does not fit is passed over."""
        if self.asks_for_several:
            return self._collected(limit, max_tokens, show_secrets=show_secrets)
        hits: list[RecallHit] = []
        for ranked in self.ranking:
            if len(hits) == limit:
                break
            found = self.messages[ranked.message.entry_key]
            hit = _as_hit(ranked, found, show_secrets=show_secrets)
            is_whole = hit.text == ranked.message.text
            tokens = found.entry.tokens if is_whole else count_tokens(hit.text)  # the log has counted whole ones
            if tokens <= max_tokens:
                max_tokens -= tokens
                hits.append(hit)
        return self._as_hits(hits)

    def _collected(self, limit: int, max_tokens: int, *, show_secrets: bool) -> RecallHits:
        """The same for a question that asks for several things: a short quote of each message, those near each other as
        one hit."""
        quoted: dict[str, dict[int, RecallHit]] = {}
        count = 0
        for ranked in self.ranking:
            if count == MAX_QUOTED * limit:
                break
            hit = _as_hit(ranked, self.messages[ranked.message.entry_key], show_secrets=show_secrets)
            short = shorten(hit.text, hit.words)
            hit = replace(hit, text=short, is_passage=hit.is_passage or short != hit.text)
            tokens = count_tokens(hit.text) + _QUOTE_MARGIN_TOKENS
            if tokens <= max_tokens:
                max_tokens -= tokens
                count += 1
                quoted.setdefault(hit.conversation_id, {})[hit.seqs[0]] = hit
        groups = [
            [those[seq] for seq in seqs]
            for those in quoted.values()
            for seqs in group(list(those), max(1, limit - len(quoted) + 1))
        ]
        hits = sorted(map(_joined, groups), key=lambda hit: -hit.score)
        return self._as_hits(hits[:limit], asks_for_several=True)

    def _as_hits(self, hits: Sequence[RecallHit], *, asks_for_several: bool = False) -> RecallHits:
        return RecallHits(
            tuple(hits), self.is_behind, self.similar.unanswered, self.truncated, self.by_meaning, asks_for_several
        )


async def recall(
    services: RecallServices,
    owner: str,
    conversation: str | None,
    question: str,
    *,
    asked_at: datetime | None = None,
    path: Sequence[Segment] | None = None,
    hidden: Collection[int] = (),
    at_least: int = _MAX_CANDIDATES,
    at_most: int = _MAX_CANDIDATES,
    question_at: tuple[str, int] | None = None,
) -> RecallResult:
    """What has to do with a question, in one conversation along a path, or in all that an owner has.

    Messages by their seq that are `hidden` lend to others what they have of the question, but are not found. Those
    that have nothing but words which stand nearly everywhere are looked at where fewer than `at_least` have others.
    Some `at_most` are read and ranked. `question_at` is the message that is the question, by conversation and seq.
    It is no answer, nor are an agent's earlier searches and what they found.
    """
    similar = await _find_similar(services, owner, conversation, question)
    store = services.store

    async def search() -> RecallResult:
        asked = question[:MAX_QUESTION_CHARACTERS]
        times = find_time_ranges(asked, asked_at or services.clock())
        said_then = await seqs_said_within(store, owner, conversation, times, at_most)
        query = parse_question(question)
        asks_for_then = query.asks_for_a_time and bool(said_then)
        if asks_for_then:
            query = query.for_its_dates()
        in_index = Postings({}, 0, False)
        if query.terms:
            in_index = await store.search.postings(owner, conversation, query.all_forms, cap=_MAX_POSTINGS)
        postings = merge_forms(query.terms, in_index.of)
        idfs = idf_by_term(postings, in_index.total)
        postings = drop_common_terms(postings, idfs, min(at_least, at_most), hidden)
        others: PostingLists = {}
        if query.related and services.policy.weights.related:
            cap = MAX_RELATED_POSTINGS + 1
            others = (await store.search.postings(owner, conversation, list(query.related), cap=cap)).of
        related = weigh_related(query, others, idfs, in_index.total, services.policy.weights.related)
        instead = substitutes(query, related, others, postings)
        keys = choose_candidates(postings, idfs, at_most, instead)
        kind = kind_of_wish(asked) if services.policy.weights.wish else None
        cues = await store.search.postings(owner, conversation, kind.cues if kind else (), cap=_MAX_CUED)
        may_govern = likely_wishes(cues.of)
        keys = list(dict.fromkeys([*keys, *may_govern]))
        candidates = _Candidates(question_at)
        named = list(dict.fromkeys((near.conversation_id, near.seq) for near in similar.passages))
        named += spread(said_then, at_most - len(keys))
        read = await store.search.messages(owner, keys, named) if keys or named else ()
        if len(read) < at_most:
            read = await _with_named_speaker(
                store, owner, conversation, query, read, keys, in_index.total, candidates, at_most
            )
        messages = {one.entry_key: one for one in read if path is None or is_on(path, one.branch, one.seq)}
        if elsewhere := {one.entry_key for one in read} - messages.keys():
            # What is said on other branches is no part of what is talked about here.
            postings = {term: [at for at in having if at not in elsewhere] for term, having in postings.items()}
        postings = _without_tags(postings, candidates.of(messages.values()))
        carried: dict[int, frozenset[int]] = {}
        if any(one.entry.role in TOOL_ROLES for one in messages.values()):
            spoken = [key for key, one in messages.items() if one.entry.role not in TOOL_ROLES]
            begin = naming(query, idfs, postings, spoken)
            carried = await _follow_identifiers(store, owner, conversation, path, messages, begin)
        signals = RankingSignals(
            postings=postings,
            idfs=idfs,
            similarity=_similarity_by_key(similar.passages, messages.values()),
            understood_share=similar.understood_share,
            times=times,
            carried=carried,
            related=related,
            wishes=_among(messages, may_govern, candidates, kind),
            wishes_are_asked_for=kind is not None and kind.is_asked_for,
        )

        def rank_all() -> Ranking:
            return rank(query, list(candidates.of(messages.values())), signals, services.policy.weights)

        # Ranking takes milliseconds: never in an event loop's thread.
        ranking = await asyncio.to_thread(rank_all) if is_in_loop() else rank_all()
        hidden_keys = {one.entry_key for one in messages.values() if one.seq in hidden} if hidden else ()
        return RecallResult(
            ranking=ranking.without(hidden_keys),
            messages=messages,
            similar=similar,
            truncated=in_index.truncated,
            asks_for_several=asks_for_then or asks_for_several(asked),
        )

    return await store.run_reads(search)


async def _with_named_speaker(
    store: Store,
    owner: str,
    conversation: str | None,
    query: RecallQuery,
    read: Sequence[PlacedMessage],
    keys: Sequence[int],
    total: int,
    candidates: _Candidates,
    at_most: int,
) -> Sequence[PlacedMessage]:
    """What was read and, if the question names somebody who speaks, as many messages further around and the newest
    ones as there is room for: the index knows no speakers, and theirs need not have any of the words."""
    known = list(candidates.of(read))
    if read and not have_names(known):
        return read
    room = at_most - len(read)
    further = further_around(keys, room)
    first = max(1, total - (room - len(further)) + 1)
    newest = [(conversation, seq) for seq in range(first, total + 1)] if conversation is not None else []
    if not further and not newest:
        return read
    more = await store.search.messages(owner, further, newest)
    if not names_speaker(query, [*known, *candidates.of(more)]):
        return read
    return list({one.entry_key: one for one in (*read, *more)}.values())


def _without_tags(postings: PostingLists, messages: Iterable[CandidateMessage]) -> PostingLists:
    """The postings without the messages that have a term only in the tags a program wrapped them in."""
    tags = {one.entry_key: one.words_of_tags for one in messages if one.words_of_tags}
    if not tags:
        return postings
    return {
        term: having if term.is_prefix else [key for key in having if term.token not in tags.get(key, ())]
        for term, having in postings.items()
    }


def _among(
    messages: Mapping[int, PlacedMessage], keys: Iterable[int], candidates: _Candidates, kind: WishKind | None
) -> frozenset[int]:
    """Of these messages those that are wishes of this kind."""
    if kind is None:
        return frozenset()
    read = candidates.of(messages[key] for key in keys if key in messages)
    return frozenset(one.entry_key for one in read if kind.is_one(one.role, one.text))


async def _follow_identifiers(
    store: Store,
    owner: str,
    conversation: str | None,
    path: Sequence[Segment] | None,
    messages: dict[int, PlacedMessage],
    named: Mapping[int, frozenset[int]],
) -> dict[int, frozenset[int]]:
    """Which terms of the question each message of tools carries because identifiers lead to it; adds what was read."""
    carried: dict[int, set[int]] = {}
    followed: set[str] = set()
    reached: Mapping[int, Collection[int]] = named
    for _ in range(MAX_STEPS):
        sources = sources_of(((_text_of(messages[key]), terms) for key, terms in reached.items()), followed)
        if not sources:
            break
        followed.update(sources)
        asked = [Term(token=word) for word in sources]
        found = await store.search.postings(owner, conversation, asked, cap=MAX_LINKED + 1)
        leads = leads_of(found.of, sources)
        wanted = {key + step for key in leads for step in range(RESULT_REACH + 1)} - messages.keys()
        if wanted:
            read = await store.search.messages(owner, sorted(wanted), ())
            messages.update((one.entry_key, one) for one in read if path is None or is_on(path, one.branch, one.seq))
        new = [(at, terms) for key, terms in leads.items() for at in _with_results(messages, key)]
        new = [(at, terms) for at, terms in new if not terms <= carried.get(at, set())]
        for at, terms in new:
            carried.setdefault(at, set()).update(terms)
        reached = {at: carried[at] for at, _ in new}
    return {key: frozenset(terms) for key, terms in carried.items()}


def _with_results(messages: Mapping[int, PlacedMessage], key: int) -> Iterator[int]:
    """A message, if it was read and, if it may be a call, the results after it."""
    if key not in messages:
        return
    yield key
    if messages[key].entry.role != "assistant":
        return
    for after in range(key + 1, key + RESULT_REACH + 1):
        if after not in messages or messages[after].entry.role not in TOOL_ROLES:
            return
        yield after


def _text_of(found: PlacedMessage) -> str:
    """What is searched of a message; nothing of a damaged one."""
    try:
        return payloads.searchable(payload_of(found.entry))
    except StoreDamaged:
        return ""


async def _find_similar(
    services: RecallServices, owner: str, conversation: str | None, question: str
) -> _SimilarPassages:
    """What is near in meaning, as far as that answers in time."""
    meaning = services.meaning
    if meaning is None:
        return _SimilarPassages(reason=_NO_EMBEDDER)
    text = question[:MAX_QUESTION_CHARACTERS]
    understood_share = meaning.embedder.understood_share(text) if text.strip() else 0.0
    if not understood_share * services.policy.weights.meaning:
        not_understood = f"{meaning.embedder.name} understands nothing of this text"
        return _SimilarPassages(reason=_MEANING_IS_OFF if understood_share else not_understood)
    try:
        async with time_limit(services.policy.time_limit_seconds):
            vector = await meaning.embedder.query(text)
            passages = await meaning.vectors.near(owner, conversation, meaning.embedder.name, vector, _MAX_SIMILAR)
            late = conversation is not None and await is_behind(services.store, meaning, Ref(owner, conversation))
    except (TimeoutError, EverthreadError) as problem:
        limit = services.policy.time_limit_seconds
        is_late = isinstance(problem, TimeoutError)
        reason = f"no answer within {limit:g} s" if is_late else f"{type(problem).__name__}: {problem}"
        return _SimilarPassages(unanswered=(f"meaning: {reason}",), reason=reason)
    return _SimilarPassages(
        passages=passages, understood_share=understood_share, is_behind=late, reason=None if passages else _NO_VECTORS
    )


def _similarity_by_key(
    passages: Sequence[VectorHit], messages: Iterable[PlacedMessage]
) -> dict[tuple[int, int], float]:
    """By entry key and part; vectors of what a revision has replaced say nothing any more."""
    if not passages:
        return {}
    keys = {(one.conversation_id, one.entry.seq): one.entry_key for one in messages}
    known = ((keys.get((near.conversation_id, near.seq)), near) for near in passages)
    return {(key, near.part): near.score for key, near in known if key is not None}


class _Candidates:
    """The messages read for a question as ranking takes them, each made once."""

    def __init__(self, question_at: tuple[str, int] | None) -> None:
        self._question_at = question_at
        self._known: dict[int, CandidateMessage | None] = {}

    def of(self, messages: Iterable[PlacedMessage]) -> Iterator[CandidateMessage]:
        """All but the question itself, those without a text, searches, and damaged ones, which `verify` reports."""
        for found in messages:
            if (found.conversation_id, found.seq) == self._question_at:
                continue
            key = found.entry_key
            if key not in self._known:
                self._known[key] = _as_candidate(found)
            if (one := self._known[key]) is not None:
                yield one


def _as_candidate(found: PlacedMessage) -> CandidateMessage | None:
    entry = found.entry
    key = (found.entry_key, found.depth, found.conversation_id, entry.chain)  # no other entry has its place in a chain
    known = recent_candidates.get(key)
    if known is None and (known := _made_candidate(found)) is not None and entry.raw and entry.chain:
        recent_candidates.put(key, known, known.weight_bytes)
    return known


def _made_candidate(found: PlacedMessage) -> CandidateMessage | None:
    entry = found.entry
    try:
        payload = payload_of(entry)
    except StoreDamaged:
        return None
    said_at = payloads.said_at(payload) or Message(entry).created_at
    name, text = payloads.name(payload), payloads.searchable(payload)
    if not text.strip() or is_lookup(payload):
        return None  # only a picture, say: there is nothing to quote
    return CandidateMessage(found.entry_key, found.depth, found.conversation_id, entry.role, name, text, said_at)


def _passage(ranked: RankedMessage, *, show_secrets: bool) -> str:
    text, span = ranked.message.text, ranked.span
    return text[span.start : span.end] if show_secrets else redact_secrets(text, span.start, span.end)


def _as_hit(ranked: RankedMessage, found: PlacedMessage, *, show_secrets: bool) -> RecallHit:
    message = Message(found.entry)
    return RecallHit(
        conversation_id=found.conversation_id,
        ids=(message.id,),
        seqs=(found.seq,),
        text=_passage(ranked, show_secrets=show_secrets).strip(),
        score=round(ranked.score, 6),
        match=_match_of(ranked),
        said_at=message.said_at or message.created_at,
        speaker=message.name or message.role,
        is_passage=ranked.span != (0, len(ranked.message.text)),
        why=tuple(name for name, part in ranked.parts.items() if part >= _MIN_REASON_SHARE * ranked.score),
        parts={name: round(part, 6) for name, part in ranked.parts.items()},
        words=ranked.words,
    )


def _joined(hits: Sequence[RecallHit]) -> RecallHit:
    """Quotes of messages near each other as one hit, a line for each: who said it if they are several, and when if it
    was another day."""
    best = max(hits, key=lambda hit: hit.score)
    if len(hits) == 1:
        return best
    are_several = len({hit.speaker for hit in hits}) > 1
    lines = []
    day = hits[0].said_at.date()
    for hit in hits:
        when = "" if hit.said_at.date() == day else f"{hit.said_at.date().isoformat()} "
        who = f"{hit.speaker}: " if are_several else ""
        lines.append(when + who + " ".join(hit.text.split()))
        day = hit.said_at.date()
    return replace(
        best,
        ids=tuple(id for hit in hits for id in hit.ids),
        seqs=tuple(seq for hit in hits for seq in hit.seqs),
        text="\n".join(lines),
        said_at=hits[0].said_at,
        speaker=hits[0].speaker,
        match="strong" if any(hit.match == "strong" for hit in hits) else "weak",
        is_passage=any(hit.is_passage for hit in hits),
        words=tuple(dict.fromkeys(word for hit in hits for word in hit.words)),
    )


def _match_of(ranked: RankedMessage) -> MatchStrength:
    return "strong" if ranked.coverage >= _STRONG_COVERAGE else "weak"


async def search_by_meaning(
    services: RecallServices,
    owner: str,
    conversation: str | None,
    text: str,
    limit: int,
    *,
    show_secrets: bool = False,
) -> Hits:
    """What is recalled, in the shape of a search: on whichever branch, with a snippet of each."""
    result = await recall(services, owner, conversation, text, at_least=limit)
    query = parse_query(text)
    return Hits(
        tuple(
            Hit(
                conversation_id=ranked.message.conversation_id,
                seq=result.messages[ranked.message.entry_key].seq,
                id=result.messages[ranked.message.entry_key].entry.id,
                snippet=snippet(_passage(ranked, show_secrets=show_secrets), query),
                score=ranked.score,
                match=_match_of(ranked),
            )
            for ranked in result.ranking[:limit]
        ),
        result.truncated,
        result.by_meaning,
        result.similar.reason,
        result.is_behind,
    )


async def active_path(store: Store, ref: Ref) -> Sequence[Segment]:
    """The active path of a conversation."""
    rows, active = await store.log.branches(ref)
    return segments({row.number: row for row in rows}, active)

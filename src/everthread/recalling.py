"""What is brought back for a question: passages from before the window that have its words.

Found by the search that people use, over this conversation and along this path; each is quoted with where it stands,
and all of them together stay within the policy's cap.
"""

from __future__ import annotations

from collections.abc import Sequence

from everthread.compaction.terms import terms
from everthread.context.ingredients import Recalled, recalled_block
from everthread.core import payloads
from everthread.core.entries import Entry
from everthread.core.nouns import Ref
from everthread.core.paths import is_on
from everthread.core.ports import Store
from everthread.core.queries import Query
from everthread.history import searching
from everthread.history.match import parse, stretch
from everthread.views import View, stored

_MOST_HITS = 20
_WHOLE_TOKENS = 250
"""A message up to this is quoted whole; of a longer one the passage around the words."""
_PASSAGE_CHARACTERS = 800


async def recalled(store: Store, ref: Ref, view: View, query: str) -> Sequence[Recalled]:
    """The best passages that go into the policy's cap, in the order in which they were said."""
    left = view.policy.recalled_max_tokens
    asked = _telling(query)
    hits = await searching.search(store, asked, owner=ref.owner, conversation=ref.id, limit=_MOST_HITS) if left else ()
    there = {one.seq for one in (*view.window, *view.pinned)}
    found = await _pairs(store, ref, [hit.seq for hit in hits if hit.seq not in there])
    kept: list[Recalled] = []
    for hit in hits:
        place, newest = found.get(hit.seq, (None, None))
        if place is None or newest is None or not is_on(view.outlook.segments, place.branch, place.seq):
            continue
        one = _passage(place, newest, parse(asked))
        left -= recalled_block(one).tokens
        if left < 0:
            break
        kept.append(one)
    return sorted(kept, key=lambda one: one.stored.seq)


def _telling(query: str) -> str:
    """The question without the words that any message has; as it is in scripts whose words we do not know."""
    words = dict.fromkeys(terms(query))
    return " ".join(words) if words or query.isascii() else query


async def _pairs(store: Store, ref: Ref, seqs: Sequence[int]) -> dict[int, tuple[Entry, Entry]]:
    """(place, newest revision) by the place's seq."""
    places = await store.find(ref, seqs=seqs) if seqs else ()
    revised = {place.newest_seq for place in places if place.newest_seq is not None}
    newest = {entry.seq: entry for entry in await store.find(ref, seqs=sorted(revised))} if revised else {}
    return {place.seq: (place, newest.get(place.newest_seq or -1, place)) for place in places if not place.is_erased}


def _passage(place: Entry, newest: Entry, query: Query) -> Recalled:
    one = stored(place, newest)
    text = payloads.text(one.payload)
    if one.tokens <= _WHOLE_TOKENS:
        return Recalled(stored=one, start=0, end=len(text))
    near = stretch(text, query, _PASSAGE_CHARACTERS)
    start = max(0, text.find(near))
    return Recalled(stored=one, start=start, end=start + len(near))

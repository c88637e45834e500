"""What goes before a question in a request: episodes of what was said, out of what `recalling` has found.

What was found is shown with the user's turn it belongs to and its answer, the best ones first as long as they go into
the policy's cap, and in the end in the order in which they were said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile

from everthread.context.ingredients import Recalled, Stored
from everthread.context.quotes import recalled_block
from everthread.context.read_view import View, stored
from everthread.core import payloads
from everthread.core.nouns import Ref
from everthread.core.paths import is_on
from everthread.core.ports import PathQuery, Placed, Store
from everthread.recall.ranking import Ranked
from everthread.recall.search import Findings, Sources, find
from everthread.text.passages import WHOLE_TOKENS, PassageSpan, estimate_tokens

_CONTEXT_HITS = 20
"""Out of so many hits the episodes of a context are made."""
_LEAST_SHARE = 0.3
"""What scores less than this share of the best is not worth its tokens in a request …"""
_LEAST_FOUND = 1
"""… and where one has a word that tells something, all that has words of every message only scores less."""
_TURN_REACH = 12
"""How far back the user's turn is looked for that an answer belongs to."""


async def recalled(sources: Sources, ref: Ref, view: View, query: str) -> tuple[Sequence[Recalled], bool]:
    """The best episodes that go into the policy's cap, in the order in which they were said: what was found, with the
    user's turn it belongs to and its answer. And whether some could not be found by meaning yet."""
    left = view.policy.recalled_max_tokens
    if not left or not sources.policy.top_k or _is_all_in_view(view):
        return (), False
    there = {one.seq for one in (*view.window, *view.pinned, *view.standing)}
    path = view.outlook.segments
    findings = await find(sources, ref.owner, ref.id, query, path=path, without=there, at_least=_LEAST_FOUND)
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
            near = await self._store.search.messages(self._ref.owner, sorted(orders), ())
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
        earlier, later = await self._store.log.path(self._ref, before), await self._store.log.path(self._ref, after)
        return [stored(*pair) for pair in earlier], [stored(*pair) for pair in later]


def _is_short(one: Recalled) -> bool:
    return 0 < estimate_tokens(one.text) <= WHOLE_TOKENS


def _passage(whole: Recalled, ranked: Ranked) -> Recalled:
    """The passage that was found; of a call, which is no text, what was said with it."""
    span = ranked.span if ranked.span.start < whole.end else PassageSpan(0, min(whole.end, WHOLE_TOKENS * 4))
    return Recalled(stored=whole.stored, start=span.start, end=min(span.end, whole.end))

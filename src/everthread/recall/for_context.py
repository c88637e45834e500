"""Recall for a request: the episodes that are quoted before a question.

What `search` finds is quoted with the user's turn it belongs to and its answer. The best come first as long as they
fit into the policy's cap; those that do stand in the order in which they were said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from everthread.context.ingredients import LogMessage, RecalledPassage, quotable_text
from everthread.context.quotes import recalled_block
from everthread.context.read_view import View, to_log_message
from everthread.core import payloads
from everthread.core.nouns import Ref
from everthread.core.paths import is_on
from everthread.core.ports import PathQuery, PlacedMessage, Store
from everthread.recall.ranking import RankedMessage
from everthread.recall.search import RecallResult, RecallServices, recall
from everthread.text import cues
from everthread.text.passages import WHOLE_TOKENS, PassageSpan, estimate_tokens

_MAX_HITS = 20
"""Out of so many hits the episodes of a context are made."""
_MIN_SCORE_SHARE = 0.3
"""What scores less than this share of the best is not worth its tokens in a request …"""
_ENOUGH_WITH_RARE_WORDS = 1
"""… and where one has a rare word, all that has nothing but common words scores less."""
_MAX_CANDIDATES = 150
"""So many messages are ranked for a request, half as many as where somebody asks. Measured: as many of 147 answers are
in a request of 8,000 tokens, and a late turn takes a tenth less CPU (docs/benchmarks/recall.md)."""
_TURN_REACH = 12
"""How far back the user's turn is looked for that an answer belongs to."""


async def recall_episodes(
    services: RecallServices, ref: Ref, view: View, query: str
) -> tuple[Sequence[RecalledPassage], bool]:
    """The parts of the best episodes that fit into the policy's cap, in the order in which they were said; and whether
    some messages could not be found by meaning yet."""
    left = view.policy.recalled_max_tokens
    is_all_in_view = not view.summaries and view.passed_over is None  # nothing was said before the window
    if not left or not services.policy.top_k or is_all_in_view:
        return (), False
    in_view = {one.seq for one in (*view.window, *view.pinned, *view.standing)}
    result = await recall(
        services,
        ref.owner,
        ref.id,
        query,
        path=view.inputs.segments,
        hidden=in_view,
        at_least=_ENOUGH_WITH_RARE_WORDS,
        at_most=_MAX_CANDIDATES,
    )
    episodes = await _make_episodes(services, ref, view, result)
    kept: dict[int, RecalledPassage] = {}
    for one in (passage for episode in episodes for passage in episode if passage.stored.seq not in in_view):
        tokens = recalled_block(one).tokens
        if one.stored.seq not in kept and tokens <= left:
            left -= tokens
            kept[one.stored.seq] = replace(one, rank=len(kept))
    return [kept[seq] for seq in sorted(kept)], result.is_behind


async def _make_episodes(
    services: RecallServices, ref: Ref, view: View, result: RecallResult
) -> list[list[RecalledPassage]]:
    """Each with what was found first, then what belongs to it."""
    by_turn: dict[int, list[RecalledPassage]] = {}
    others: dict[int, list[RecalledPassage]] = {}
    least = _MIN_SCORE_SHARE * result.ranking[0].score if result.ranking else 0.0
    hits = [hit for hit in result.ranking[:_MAX_HITS] if not hit.is_neighbour_only and hit.score >= least]
    turns = _TurnReader(services.store, ref, view, result.messages.values())
    await turns.prefetch([result.messages[hit.message.entry_key] for hit in hits[: 2 * services.policy.top_k]])
    for hit in hits:
        message = result.messages[hit.message.entry_key]
        is_full = len(by_turn) == services.policy.top_k
        if is_full and not turns.may_be_of(by_turn, message):
            continue
        turn = await turns.turn_of(message)
        first = turn[0].stored.seq if turn else message.seq
        if first not in by_turn and is_full:
            continue
        found = [part for part in turn if part.stored.seq == message.seq]
        by_turn.setdefault(first, []).extend(_passage(part, hit) for part in found)
        others.setdefault(first, [part for part in turn if _is_worth_quoting(part)])
    return [[*found, *others[first]] for first, found in by_turn.items()]


def _is_worth_quoting(part: RecalledPassage) -> bool:
    """Of what belongs to a hit: neither a long text nor an answer that only says that it was heard."""
    return 0 < estimate_tokens(part.text) <= WHOLE_TOKENS and not (
        payloads.role(part.stored.payload) == "assistant" and cues.acknowledges(part.text)
    )


class _TurnReader:
    """Reads the users' turns that messages belong to.

    The messages of a turn mostly stand side by side in the log, so that one read has the turns of many; the path is
    asked where something is missing in between, or was revised.
    """

    def __init__(self, store: Store, ref: Ref, view: View, known: Iterable[PlacedMessage]) -> None:
        self._store = store
        self._ref = ref
        self._view = view
        self._by_depth = {one.depth: one for one in known}
        self._asked: list[int] = []

    async def prefetch(self, messages: Sequence[PlacedMessage]) -> None:
        """Read what is around these messages, unless it is known."""
        around = {key for one in messages for key in range(one.entry_key - _TURN_REACH + 1, one.entry_key + 2)}
        unread = around.difference(one.entry_key for one in self._by_depth.values())
        if unread:
            near = await self._store.search.messages(self._ref.owner, sorted(unread), ())
            on_path = (one for one in near if is_on(self._view.inputs.segments, one.branch, one.seq))
            self._by_depth.update((one.depth, one) for one in on_path)

    def may_be_of(self, turns: Collection[int], message: PlacedMessage) -> bool:
        """Whether a message can be of one of these turns, by the seqs that they begin at: it stands near one that was
        asked for and, as far as is known, no other turn begins in between."""
        if not any(abs(message.depth - depth) <= 2 * _TURN_REACH for depth in self._asked):
            return False
        opening = self._opening(message)
        return opening is None or opening in turns

    def _opening(self, message: PlacedMessage) -> int | None:
        """The seq that the message's turn begins at; None if that is not known."""
        for depth in range(message.depth, max(0, message.depth - _TURN_REACH), -1):
            one = self._by_depth.get(depth)
            if one is None:
                return None
            if one.entry.role == "user":
                return one.seq
        return None

    async def turn_of(self, message: PlacedMessage) -> list[RecalledPassage]:
        """What the user said, the message, and the answer after it."""
        self._asked.append(message.depth)
        earlier, later = self._side_by_side(message) or await self._along_path(message.seq)
        answers = list(takewhile(lambda one: payloads.role(one.payload) != "user", earlier))
        opening = earlier[len(answers) : len(answers) + 1]
        itself = earlier[:1] if answers else []
        answer = [one for one in later if payloads.role(one.payload) == "assistant"]
        parts = [*opening, *itself, *answer]
        return [RecalledPassage(stored=one, start=0, end=len(quotable_text(one.payload))) for one in parts]

    def _side_by_side(self, message: PlacedMessage) -> tuple[list[LogMessage], list[LogMessage]] | None:
        """The message and those before it up to the user's, newest first, and the one after it; None if not known."""
        earlier: list[LogMessage] = []
        for depth in range(message.depth, max(0, message.depth - _TURN_REACH), -1):
            one = self._known(depth)
            if one is None:
                return None
            earlier.append(one)
            if payloads.role(one.payload) == "user":
                break
        if message.depth == self._view.inputs.leaf_depth:
            return earlier, []
        after = self._known(message.depth + 1)
        return None if after is None else (earlier, [after])

    def _known(self, depth: int) -> LogMessage | None:
        one = self._by_depth.get(depth)
        return None if one is None or one.entry.seq != one.seq else to_log_message(one.entry, one.entry)

    async def _along_path(self, seq: int) -> tuple[list[LogMessage], list[LogMessage]]:
        leaf = self._view.leaf_seq
        before = PathQuery(branch=leaf, before=seq + 1, limit=_TURN_REACH, newest_first=True)
        after = PathQuery(branch=leaf, after=seq, limit=1)
        earlier, later = await self._store.log.path(self._ref, before), await self._store.log.path(self._ref, after)
        return [to_log_message(*pair) for pair in earlier], [to_log_message(*pair) for pair in later]


def _passage(whole: RecalledPassage, hit: RankedMessage) -> RecalledPassage:
    """The passage that was found; of a tool call, which has no text of its own, what was said with it."""
    span = hit.span if hit.span.start < whole.end else PassageSpan(0, min(whole.end, WHOLE_TOKENS * 4))
    return RecalledPassage(stored=whole.stored, start=span.start, end=min(span.end, whole.end))

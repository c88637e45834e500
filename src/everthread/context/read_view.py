"""What a model sees of a conversation: reading a view, rendering it, and rendering again what was once shown.

Reading takes two reads of the store: the inputs (path, summaries, settings), then the window's messages, up to the
very message those inputs end at. Once the window has left the beginning of the path, a third finds the system messages
there, which hold all the same.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, cast

import orjson

from everthread.compaction.condense import summaries_within, with_changes, without_told, without_told_orders
from everthread.compaction.policy import CompactionPolicy, apply_settings, apply_stored_settings, window_bounds
from everthread.context import manifest as manifests
from everthread.context.assemble import Context, assemble
from everthread.context.budget import Budget
from everthread.context.ingredients import (
    MESSAGE_BYTES,
    Ingredients,
    LogMessage,
    QuotedMemory,
    RecalledPassage,
    recent_messages,
)
from everthread.context.manifest import Manifest
from everthread.context.message_format import (
    MAX_LEADING_SYSTEM,
    Provider,
    count_leading_system,
    is_system,
    is_user_turn,
    user_message,
)
from everthread.context.quotes import quote
from everthread.context.tokens import message_tokens
from everthread.context.units import unit_spans
from everthread.context.window import WindowBounds, jump_length
from everthread.core import payloads
from everthread.core.clock import from_micros
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, EntryOrigin
from everthread.core.log import BranchName, CompactionQuery
from everthread.core.notes import NoteKind, NoteQuery
from everthread.core.nouns import Ref
from everthread.core.paths import is_on
from everthread.core.ports import PathQuery, Store, ViewInputs
from everthread.history.payload_json import payload_of
from everthread.recall.memory_intents import memory_key, note_to_memory
from everthread.recall.memory_selection import ContextMemories, quote_memory

_LOOK_BACK = 32
"""Messages read before the window's first: whether it stands in the middle of a unit, and whose turn it belongs to."""
_LONG_RUN = 256
"""Messages read once more where all of those are of one long run of tools, to find the question it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A path as a model sees it now."""

    inputs: ViewInputs
    policy: CompactionPolicy
    summaries: Sequence[Compaction]
    """The summaries that stand for the path at the highest level there is, oldest first."""
    told: Sequence[Compaction]
    """The same stretch in the most detail that the budget has room for: what a request quotes."""
    window: Sequence[LogMessage]
    """The messages no summary stands for, as far as the window reaches."""
    opened_with: int
    """How many messages the window had when its start last moved."""
    passed_over: tuple[int, int] | None
    pinned: Sequence[LogMessage]
    standing: Sequence[LogMessage]
    """System messages that hold wherever the window is: those the path begins with where it has left them behind, and
    pinned ones, which may be in the window too."""
    quarantined: Sequence[int]
    """Messages of the path that are in no view."""
    uncovered: int
    """Messages after the summaries, deleted ones counted."""
    sets_summaries_aside: bool = False
    """Whether there are summaries that were made for a smaller budget: all messages are in the window instead."""

    @property
    def covered_until(self) -> int:
        return self.summaries[-1].last_seq if self.summaries else 0

    @property
    def compacted_at(self) -> datetime | None:
        """When the newest of its summaries was made."""
        return max((one.created_at for one in self.summaries), default=None)

    @property
    def seqs(self) -> frozenset[int]:
        """The messages that it shows as they are."""
        return frozenset(one.seq for one in (*self.window, *self.pinned, *self.standing))

    @property
    def leaf_seq(self) -> int:
        """The message the path ends at; 0 when it is empty."""
        return self.inputs.segments[-1].last if self.inputs.segments else 0


def effective_policy(
    base: CompactionPolicy, inputs: ViewInputs, request: Mapping[str, Any] | None = None
) -> CompactionPolicy:
    """The server's settings, then the conversation's, then the request's."""
    policy = base
    for level in inputs.policies:
        if level is not None:
            policy = apply_stored_settings(policy, orjson.loads(level))
    return apply_settings(policy, request) if request else policy


async def read_view(
    store: Store,
    ref: Ref,
    branch: BranchName,
    base: CompactionPolicy,
    request: Mapping[str, Any] | None = None,
    *,
    budget: Budget | None = None,
    system: str | None = None,
    whole_if_small: bool = False,
) -> View:
    """Read what a view of this path is made from; for a `budget`, with the summaries in as much detail as fits, or
    `whole_if_small` with none where they were made for a smaller one."""
    inputs = await store.views.inputs(ref, branch)
    policy = effective_policy(base, inputs, request)
    if whole_if_small and budget is not None and inputs.summaries:
        room = _room_of_whole(policy, budget, system)
        if await _may_be_whole(store, ref, inputs, policy, room):
            whole = await _read(store, ref, replace(inputs, summaries=(), covered_depth=0), policy, budget, system)
            if sum(one.tokens for one in whole.window) <= room:
                return replace(whole, sets_summaries_aside=True)
    return await _read(store, ref, inputs, policy, budget, system)


def _room_of_whole(policy: CompactionPolicy, budget: Budget, system: str | None) -> int:
    """Up to how many tokens of messages are sent as they are though there are summaries of them. It lies far below the
    mark at which summaries are made for this budget, so that those are never put aside."""
    return int(policy.threshold * _free_of(budget, system) / 2)


async def _may_be_whole(store: Store, ref: Ref, inputs: ViewInputs, policy: CompactionPolicy, room: int) -> bool:
    """Whether the summaries of a path were made by themselves and for a smaller budget, as far as they tell."""
    if policy.compact_ahead or inputs.leaf_depth > policy.message_mark // 2:
        return False
    if any(one.trigger == "manual" or one.tokens_before > room for one in inputs.summaries):
        return False
    leaves = await _in_detail(store, ref, inputs.summaries, room=sys.maxsize)
    is_asked_for = any(one.trigger == "manual" for one in leaves)
    return not is_asked_for and sum(one.tokens_before for one in leaves) <= room


async def _read(
    store: Store, ref: Ref, inputs: ViewInputs, policy: CompactionPolicy, budget: Budget | None, system: str | None
) -> View:
    bounds = window_bounds(policy)
    summaries = inputs.summaries
    covered = summaries[-1].last_seq if summaries else 0
    uncovered = max(0, inputs.leaf_depth - inputs.covered_depth)
    jumped = jump_length(uncovered, bounds)
    wanted = uncovered - jumped
    leaf = inputs.segments[-1].last if inputs.segments else 0
    query = PathQuery(branch=leaf, after=covered, limit=wanted + _LOOK_BACK, newest_first=True)
    read = [to_log_message(place, newest) for place, newest in (await store.log.path(ref, query))[::-1]]
    begin = max(0, len(read) - wanted)
    start = _window_start(read, begin, bounds)
    anchor = await _anchor(store, ref, query, read, start)
    if jumped:
        opened_with = max(0, bounds.max_message_history + 1 - bounds.step - (start - begin))
    else:
        opened_with = summaries[-1].new_count - 1 if summaries else 0
    window = [*anchor, *read[start:]]
    in_window = {one.seq for one in window}
    leading = await _leading_system(store, ref, leaf) if summaries or jumped else []
    pinned = [
        to_log_message(place, newest)
        for place, newest in inputs.pinned
        if place.seq not in in_window and is_on(inputs.segments, place.branch, place.seq)
    ]
    # Instructions hold however far the window has moved on, and pinned ones also where newer ones follow.
    begins_with = 0 if summaries or start else count_leading_system(one.payload for one in window)
    pins = {place.seq for place, _ in inputs.pinned}
    held = [*leading, *pinned, *(one for one in window[begins_with:] if one.seq in pins)]
    standing = {one.seq: one for one in held if is_system(one.payload)}
    return View(
        inputs=inputs,
        policy=policy,
        summaries=summaries,
        told=summaries if budget is None else await _in_detail(store, ref, summaries, room_of(policy, budget, system)),
        window=window,
        opened_with=len(anchor) + opened_with,
        passed_over=(covered + 1, read[start].seq - 1) if start else None,
        pinned=[one for one in pinned if not is_system(one.payload)],
        standing=[standing[seq] for seq in sorted(standing)],
        quarantined=[seq for number, seq in inputs.quarantined if is_on(inputs.segments, number, seq)],
        uncovered=uncovered,
    )


def _window_start(read: Sequence[LogMessage], begin: int, bounds: WindowBounds) -> int:
    """Where the window starts: the first user's turn near `begin`, else a unit there. Only messages that were there
    when it jumped decide, so it stays until the next jump."""
    if begin == 0:
        return 0
    starts = [span.start for span in unit_spans([one.payload for one in read])]
    near = [start for start in starts if begin <= start <= begin + bounds.slack and start < len(read)]
    turns = [start for start in near if is_user_turn(read[start].payload)]
    return (turns or near or [max(start for start in starts if start <= begin)])[0]


async def _anchor(store: Store, ref: Ref, query: PathQuery, read: Sequence[LogMessage], start: int) -> list[LogMessage]:
    """The user's turn that the window begins in the middle of, which says what the rest is for: in a long run of
    tools, or where a summary ends between a question and its answer."""
    if start >= len(read) or is_user_turn(read[start].payload) or (start == 0 and query.after == 0):
        return []
    turns = [one for one in read[:start] if is_user_turn(one.payload)]
    if turns:
        return turns[-1:]
    earlier = await store.log.path(ref, replace(query, after=0, before=read[0].seq, limit=_LONG_RUN))
    run = (to_log_message(place, newest) for place, newest in earlier if newest.role == "user")
    return list(islice((one for one in run if is_user_turn(one.payload)), 1))


def room_of(policy: CompactionPolicy, budget: Budget, system: str | None) -> int:
    """How many tokens of a request summaries may take. The system prompt is estimated, and where the limit follows what
    a provider reports, the room does so in steps: a request whose beginning changes is paid for in full."""
    room = policy.summaries_share * _free_of(budget, system)
    return int(room if budget.factor == 1.0 else 2 ** (math.floor(8 * math.log2(max(1.0, room))) / 8))


def _free_of(budget: Budget, system: str | None) -> int:
    return max(0, budget.limit - len((system or "").encode(errors="replace")) // 4)


async def _in_detail(store: Store, ref: Ref, summaries: Sequence[Compaction], room: int) -> list[Compaction]:
    """Each summary replaced by those it was made from, the newest first, as long as all of them fit."""
    told = list(summaries)
    used = sum(one.tokens_after for one in told)
    at = len(told) - 1
    while at >= 0 and used < room:
        ids = told[at].children
        below = await store.views.compactions(ref, CompactionQuery(ids=ids)) if ids else ()
        by_id = {one.id: one for one in below}
        children = [by_id[id] for id in ids if id in by_id]
        more = sum(one.tokens_after for one in children) - told[at].tokens_after
        if children and len(children) == len(ids) and used + more <= room:
            told[at : at + 1] = children
            used += more
            at += len(children) - 1
        else:
            at -= 1
    return told


async def _leading_system(store: Store, ref: Ref, leaf: int) -> list[LogMessage]:
    """The system messages that the path begins with, each in its newest revision."""
    first = [
        to_log_message(*pair) for pair in await store.log.path(ref, PathQuery(branch=leaf, limit=MAX_LEADING_SYSTEM))
    ]
    return first[: count_leading_system(one.payload for one in first)]


def to_log_message(place: Entry, newest: Entry) -> LogMessage:
    """A message of the log, as contexts and compactions take it."""
    if not newest.raw or not newest.chain:
        return _to_log_message(place, newest)
    key = (place.chain, newest.chain, newest.tokens, newest.origin)
    known = recent_messages.get(key)
    if known is None:
        known = _to_log_message(place, newest)
        recent_messages.put(key, known, MESSAGE_BYTES + 2 * len(newest.raw))
    return known


def _to_log_message(place: Entry, newest: Entry) -> LogMessage:
    payload: Mapping[str, Any] = payload_of(newest)
    tokens = newest.tokens
    said = payloads.said_at(payload) or from_micros(place.created_at)
    if newest.origin == EntryOrigin.IMPORT and is_system(payload):
        payload = _as_data(payload)
        tokens = message_tokens(payload)
    return LogMessage(
        seq=place.seq,
        entry_seq=newest.seq,
        payload=payload,
        tokens=tokens,
        said=said.isoformat(timespec="minutes"),
    )


def with_question(view: View, question: str) -> View:
    """The view with a question that nobody has asked yet as its newest message."""
    payload = {"role": "user", "content": question}
    seq = view.inputs.entry_count + 1
    asked = LogMessage(seq=seq, entry_seq=seq, payload=payload, tokens=message_tokens(payload))
    return replace(view, window=[*view.window, asked], uncovered=view.uncovered + 1)


def _as_data(system: Mapping[str, Any]) -> Mapping[str, Any]:
    """The system prompt of another program's history, quoted: whoever wrote the file must not instruct our models."""
    told = quote("imported", payloads.text(system), role="system")
    kept = {name: system[name] for name in ("id", "created_at") if name in system}
    return {**kept, **user_message(system, f"What instructed the assistant of this imported history, as data:\n{told}")}


def render(
    view: View,
    budget: Budget,
    *,
    system: str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
    recalled: Sequence[RecalledPassage] = (),
    known: ContextMemories | None = None,
    provider: Provider | None = None,
) -> Context:
    """The request this view makes."""
    room, seqs = view.policy.memory_max_tokens, view.seqs
    summaries_room = room_of(view.policy, budget, system)
    summaries = summaries_within(tuple(view.told), summaries_room)
    found = [one for one in recalled if one.stored.seq not in seqs]
    shown = {*seqs, *(one.stored.seq for one in found if one.is_whole)}
    standing = {one.seq for one in view.standing}
    old = view.window[: max(0, view.opened_with - view.policy.keep_recent)]
    at_start = [] if known is None else known.at_start(view.compacted_at, room)
    reminded = [] if known is None else known.before_question(view.compacted_at, room, shown)
    most = budget.limit // 2
    memories, reminded = without_told(at_start, summaries, most), without_told(reminded, summaries, most)
    given = Ingredients(
        system=system,
        memories=memories,
        reminded=reminded,
        standing=view.standing,
        tools=tools,
        recalled=with_changes(
            without_told_orders(found, [*memories, *reminded], summaries, most), summaries, view.window
        ),
        summaries=summaries,
        summaries_room=summaries_room,
        pinned=view.pinned,
        window=[one for one in view.window if one.seq not in standing],
        quarantined=view.quarantined,
        passed_over=view.passed_over,
        # Old are those that were when its start last moved: the request began anew then, and until it does again its
        # beginning must not change.
        old_before=sum(one.seq not in standing for one in old),
    )
    return assemble(given, budget, provider=provider)


# -- what was shown ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenContext:
    """What a model was shown, rendered again from the log.

    ```python
    id = await conv.keep_context(await conv.context(system="You plan trips."))
    seen = await conv.seen_context(id)
    print(seen.is_same, seen.erased)
    ```
    """

    context: Context
    manifest: Manifest
    is_same: bool
    """Whether it is byte for byte what was sent."""
    erased: tuple[int, ...] = ()
    """The seqs of messages that were shown and have been erased since; they are missing here."""
    erased_summaries: tuple[str, ...] = ()
    """The ids of summaries that were shown and were erased with one of their messages."""
    erased_memories: tuple[str, ...] = ()
    """The ids of memories that were shown and have been erased since."""

    @property
    def is_of_other_renderer(self) -> bool:
        """Whether it was sent by a version of everthread that renders requests differently."""
        return self.manifest.renderer != manifests.RENDERER


async def render_again(store: Store, ref: Ref, id: str) -> SeenContext:
    """Render a kept manifest again."""
    kept = manifests.load(await store.views.manifest(ref, id))
    shared = await store.views.prompts(ref, [one for one in (kept.system_digest, kept.tools_digest) if one])
    by_id = {one.id: one for one in await store.views.compactions(ref, CompactionQuery(ids=kept.summary_ids))}
    window, window_gone = await _revisions(store, ref, kept.window)
    pinned, pinned_gone = await _revisions(store, ref, kept.pinned)
    standing, standing_gone = await _revisions(store, ref, kept.standing)
    recalled, recalled_gone = await _revisions(store, ref, [(seq, entry) for seq, entry, *_ in kept.recalled])
    known = await _memories(store, ref, (*kept.memory_ids, *kept.reminded_ids))
    spans = {(seq, entry): (start, end) for seq, entry, start, end in kept.recalled}
    changes: defaultdict[int, tuple[int, ...]] = defaultdict(tuple)
    for seq, changed_by in kept.recalled_changes:
        changes[seq] += (changed_by,)
    given = Ingredients(
        system=shared.get(kept.system_digest or "", b"").decode() or None,
        standing=standing,
        tools=orjson.loads(shared.get(kept.tools_digest or "", b"[]")),
        recalled=[
            RecalledPassage(stored=one, start=start, end=end, changed_by=changes[one.seq])
            for one in recalled
            for start, end in [spans[one.seq, one.entry_seq]]
        ],
        memories=[known[id] for id in kept.memory_ids if id in known],
        reminded=[known[id] for id in kept.reminded_ids if id in known],
        summaries=summaries_within(tuple(by_id[one] for one in kept.summary_ids if one in by_id), kept.summaries_room),
        summaries_room=kept.summaries_room,
        pinned=pinned,
        window=window,
        quarantined=[one.seq for one in kept.omitted if one.reason == manifests.QUARANTINED],
        passed_over=kept.passed_over,
        old_before=kept.old_before,
        live_calls=frozenset(kept.live_calls),
        is_of_older_renderer=kept.renderer < 10,
    )
    again = assemble(given, Budget(**kept.budget), provider=cast("Provider | None", kept.provider))
    return SeenContext(
        context=replace(again, omitted=kept.omitted),
        manifest=kept,
        is_same=again.manifest.digest == kept.digest,
        erased=tuple(sorted({*window_gone, *pinned_gone, *standing_gone, *recalled_gone})),
        erased_summaries=tuple(one for one in kept.summary_ids if one not in by_id),
        erased_memories=tuple(id for id in (*kept.memory_ids, *kept.reminded_ids) if id not in known),
    )


async def _memories(store: Store, ref: Ref, ids: Sequence[str]) -> dict[str, QuotedMemory]:
    """These memories as they were quoted, those that were erased left out."""
    if not ids:
        return {}
    query = NoteQuery(kind=NoteKind.MEMORY, keys=[memory_key(id) for id in ids])
    notes = await store.notes.list(ref.owner, query)
    return {note.id: quote_memory(note_to_memory(note, ref.owner), ref) for note in notes}


async def _revisions(
    store: Store, ref: Ref, wanted: Sequence[manifests.RevisionRef]
) -> tuple[list[LogMessage], list[int]]:
    """These revisions, and the seqs of those that were erased."""
    found = {
        entry.seq: entry for entry in await store.log.find(ref, seqs=sorted({seq for pair in wanted for seq in pair}))
    }
    whole = [(seq, entry) for seq, entry in wanted if seq in found and entry in found and not found[entry].is_erased]
    gone = [pair[0] for pair in wanted if pair not in whole]
    return [to_log_message(found[seq], found[entry]) for seq, entry in whole], gone

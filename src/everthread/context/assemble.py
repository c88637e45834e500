"""Assembling a request: what the model will see, from what the log and the summaries hold. Pure.

In this order: the system prompt (then the log's own system messages) · a record of what is before the window
(memories, summaries oldest first, pinned messages) as quoted data · the window · what is recalled for the newest user
message, quoted too · that message and what follows from it. What stands before the recalled only grows between two
compactions, so prompt caches stay warm. Every message of the path is in a summary's span, in the window, or named in
`omitted`.

When all of it is over the limit, the record is kept to a part of the room (whole summaries, the newest first) and
`fit` makes the rest go in beside it; a record that leaves too little is made smaller, at last left out and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import orjson

from everthread.context.budget import Budget
from everthread.context.clamp import DEFAULT_POLICY, Clamp, ClampPolicy, elide
from everthread.context.fit import fit
from everthread.context.ingredients import Ingredients, LogMessage, QuotedMemory, RecalledPassage
from everthread.context.manifest import (
    MERGED,
    QUARANTINED,
    RECALL_DROPPED,
    RENDERER,
    Manifest,
    Omission,
    budget_fields,
    messages_digest,
    text_digest,
)
from everthread.context.message_format import (
    Fields,
    Provider,
    content_of,
    encodable,
    is_system,
    is_user_turn,
)
from everthread.context.prepared import PreparedMessage, own_copy, prepare
from everthread.context.quotes import (
    QuotedBlock,
    Quotes,
    given_at,
    language_of_recalled,
    memories_tokens,
    memory_block,
    quotes_within,
    recalled_block,
    recalled_message,
    record_message,
    without_our_tags,
)
from everthread.context.repair import repair_report
from everthread.context.tokens import has_media, message_tokens
from everthread.context.units import unit_spans
from everthread.core import payloads
from everthread.core.errors import ContextOverflow
from everthread.core.jobs import NewJob

PartKind = Literal["system", "memory", "pinned", "summary", "window", "recalled"]

RECORD_SHARES = (2, 4, 8)
"""What part of the room the record may take when not everything fits, in the order it is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a request, such as the window or the summaries, and what it costs.

    ```python
    context = await conv.context(system="You plan trips.")
    print({part.kind: part.tokens for part in context.parts})
    ```
    """

    kind: PartKind
    tokens: int
    seqs: tuple[int, ...] = ()
    summary_ids: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    exact: bool = True
    """Whether the count is the model's own; else it is an estimate: of a model whose vocabulary we do not have (the
    budget's factor is not 1), or of images and files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a request, and where it comes from: a message of the window, or a quotation (a memory, a summary, a
    pinned or recalled message), of which one message of the request holds several.

    ```python
    context = await conv.context(query="What can she not eat?")
    for piece in context.pieces:
        print(piece.message, piece.kind, piece.seqs, piece.form)
    ```
    """

    message: int
    """Which message of the request it is in, as an index of `Context.messages`."""
    kind: PartKind
    tokens: int
    seqs: tuple[int, ...] = ()
    """The messages of the log that it is or comes from; of a summary the first and the last."""
    summary_ids: tuple[str, ...] = ()
    memory_id: str | None = None
    form: Literal["whole", "in_part", "merged"] = "whole"
    """`in_part` where a long message is shortened, `merged` where several summaries were shortened into one text."""
    text: str | None = None
    """The quotation with its tags; None where the piece is the whole message of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A request that is ready to be sent: messages in OpenAI's format, valid and within the budget.

    ```python
    context = await conv.context(system="You plan trips.", query="What can she not eat?")
    print(context.tokens, "of", context.limit, [message["role"] for message in context.messages])
    ```
    """

    messages: list[Fields]
    """In OpenAI's format."""
    parts: tuple[Part, ...]
    omitted: tuple[Omission, ...]
    manifest: Manifest
    tokens: int
    """How many tokens it has; never more than `limit`."""
    limit: int
    wanted_tokens: int = field(default=0)
    """What it would count to with nothing shortened or left out, the recalled aside, and of the record at most the part
    that it may ever have: what decides whether a compaction is due, which makes no record smaller than a summary."""
    shared: Mapping[str, bytes] = field(default_factory=dict)
    """The texts that the manifest names by hash: the system prompt, and the tool schemas as JSON."""
    _jobs: tuple[NewJob, ...] = ()
    """A compaction that was found to be due when it was built, for `keep_context` to queue."""
    _to_pieces: Callable[[], tuple[Piece, ...]] = field(default=tuple, repr=False, compare=False)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Where each message and each quotation comes from, in the order of the request. Made when it is asked for."""
        return self._to_pieces()


def assemble(
    given: Ingredients,
    budget: Budget,
    *,
    provider: Provider | None = None,
    policy: ClampPolicy = DEFAULT_POLICY,
    exact: bool = True,
) -> Context:
    """The request within the budget. ContextOverflow when the system prompt leaves no room at all."""
    whole = _Draft(given, quotes_within(given), provider, policy)
    wanted = whole.tokens - whole.recalled_tokens - whole.record_beyond(budget.limit)
    unquoted: list[Omission] = []
    if (given.recalled or given.reminded) and whole.tokens > budget.limit:
        cut = _with_less_record(given, whole, budget, provider, policy)
        if cut is None:  # what is recalled is the first to go
            given, unquoted = _with_less_recalled(given, whole.tokens - budget.limit)
        whole = cut or _Draft(given, quotes_within(given), provider, policy)
        if cut is None and whole.tokens > budget.limit:
            given, more = _with_less_recalled(given, whole.tokens)
            unquoted += more
            whole = _Draft(given, quotes_within(given), provider, policy)
    draft, sent = _fit_draft(given, whole, budget, provider, policy)
    omitted = tuple(sorted((*draft.omissions(sent.dropped), *unquoted), key=lambda omission: omission.seq))
    system = encodable(given.system).encode() if given.system else None
    tools = tools_text(given.tools) if given.tools else None
    manifest = Manifest(
        renderer=RENDERER,
        system_digest=None if system is None else text_digest(system),
        tools_digest=None if tools is None else text_digest(tools),
        summary_ids=tuple(id for summary in given.summaries for id in summary.ids),
        summaries_room=given.summaries_room,
        pinned=tuple((stored.seq, stored.entry_seq) for stored in given.pinned),
        window=tuple((stored.seq, stored.entry_seq) for stored in given.window),
        recalled=tuple((one.stored.seq, one.stored.entry_seq, one.start, one.end) for one in given.recalled),
        recalled_changes=tuple((one.stored.seq, seq) for one in given.recalled for seq in one.changed_by),
        passed_over=given.passed_over,
        old_before=given.old_before,
        live_calls=tuple(sorted(given.live_calls)),
        budget=budget_fields(budget),
        provider=provider,
        clamped=draft.seqs_of(clamp.index for clamp in (*draft.clamps, *sent.clamps)),
        omitted=omitted,
        repairs=tuple(f"{repair.kind}:{repair.call_id}" for repair in draft.repairs),
        tokens=sent.tokens,
        digest=messages_digest(sent.messages),
        standing=tuple((stored.seq, stored.entry_seq) for stored in given.standing),
        memory_ids=tuple(memory.id for memory in given.memories),
        reminded_ids=tuple(memory.id for memory in given.reminded),
    )
    return Context(
        messages=sent.messages,
        parts=draft.parts(sent, exact=exact and budget.factor == 1),
        omitted=omitted,
        manifest=manifest,
        tokens=sent.tokens,
        limit=budget.limit,
        wanted_tokens=wanted,
        shared={text_digest(text): text for text in (system, tools) if text},
        _to_pieces=partial(draft.pieces, sent),
    )


def _with_less_recalled(given: Ingredients, tokens: int) -> tuple[Ingredients, list[Omission]]:
    """Without what takes so many tokens: of what was recalled what is worth least, then the memories beside it."""
    left = sorted(given.recalled, key=lambda one: one.rank)
    gone: list[Omission] = []
    while tokens > 0 and left:
        dropped = left.pop()
        tokens -= recalled_block(dropped).tokens
        gone.append(Omission(seq=dropped.stored.seq, reason=RECALL_DROPPED))
    reminded = given.reminded
    if tokens > 0:
        gone += [_without_memory(memory) for memory in reminded]
        reminded = ()
    recalled = tuple(one for one in given.recalled if one in left)
    return replace(given, recalled=recalled, reminded=reminded), gone


def _without_memory(memory: QuotedMemory) -> Omission:
    return Omission(seq=memory.message or 0, reason="over_budget", memory_id=memory.id)


def tools_text(tools: Sequence[Mapping[str, Any]]) -> bytes:
    """Tool schemas in one form, so that the same ones have the same hash."""
    return orjson.dumps(list(tools), option=orjson.OPT_SORT_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """What goes out; positions are those of the draft it was made from."""

    messages: list[Fields]
    sizes: Mapping[int, int]
    """What each counts to, by its position."""
    dropped: Sequence[int]
    clamps: Sequence[Clamp]
    tokens: int


def _with_less_record(
    given: Ingredients, whole: _Draft, budget: Budget, provider: Provider | None, policy: ClampPolicy
) -> _Draft | None:
    """Where the record is over its part and is cut anyway: the request with what is recalled, if that is enough."""
    most = (budget.limit - whole.system_tokens) // RECORD_SHARES[0]
    if whole.record_tokens <= most or whole.tokens - whole.recalled_tokens <= budget.limit:
        return None
    draft = _Draft(given, quotes_within(given, most), provider, policy)
    return draft if draft.tokens <= budget.limit else None


def _fit_draft(
    given: Ingredients, whole: _Draft, budget: Budget, provider: Provider | None, policy: ClampPolicy
) -> tuple[_Draft, _Sent]:
    """The draft that fits with the most of the record."""
    for draft in _drafts(given, whole, budget, provider, policy):
        try:
            return draft, draft.fitted(budget)
        except ContextOverflow:
            continue  # the record left too little; the draft without one, which comes last, speaks for itself below
    bare = _Draft(given, Quotes(), provider, policy)
    return bare, bare.fitted(budget)


def _drafts(
    given: Ingredients, whole: _Draft, budget: Budget, provider: Provider | None, policy: ClampPolicy
) -> Iterator[_Draft]:
    room = budget.limit - whole.system_tokens
    if whole.tokens <= budget.limit or whole.record_tokens <= room // RECORD_SHARES[0]:
        yield whole
    for share in RECORD_SHARES:
        quotes = quotes_within(given, room // share)
        if quotes:
            yield _Draft(given, quotes, provider, policy)


class _Draft:
    """The request before anything is left out: one dialect, valid, and each message with its source."""

    def __init__(self, given: Ingredients, quotes: Quotes, provider: Provider | None, policy: ClampPolicy) -> None:
        self._given = given
        self._quotes = quotes
        self._policy = policy
        self._provider = provider
        placed: list[PreparedMessage] = []
        if given.system:
            placed.append(PreparedMessage({"role": "system", "content": given.system}))
        # Before the record: an instruction after it would be one of mid conversation, which a newer one replaces.
        leading = given.leading
        placed += [one for stored in (*given.window[:leading], *given.standing) for one in prepare(stored, provider)]
        recorded_at = len(placed) if quotes else None
        if quotes:
            placed.append(PreparedMessage(record_message(quotes.blocks, quotes.introduction)))
        asked_at = next(
            (at for at in reversed(range(len(given.window))) if is_user_turn(given.window[at].payload)), None
        )
        recalled_at = None
        for at, stored in enumerate(given.window):
            if at == asked_at and (given.recalled or given.reminded):
                recalled_at = len(placed)
                recalled = [recalled_block(one).block for one in given.recalled]
                reminded = [memory_block(one).block for one in given.reminded]
                placed.append(PreparedMessage(recalled_message(recalled, reminded, language_of_recalled(given))))
            if at >= leading:
                placed += self._window_message(stored)
        report = repair_report(
            [one.message for one in placed],
            given.live_calls,
            provider=provider,
            repaired=[one.repaired for one in placed],
        )
        self.repairs = report.repairs
        self._seqs = [
            [seq for at in sources if (seq := placed[at].seq) is not None] for sources in report.sources
        ]  # more than one where messages were joined
        self._first_seqs = [seqs[0] if seqs else None for seqs in self._seqs]
        self._record_at = next((at for at, sources in enumerate(report.sources) if sources == (recorded_at,)), None)
        self._recalled_at = next((at for at, sources in enumerate(report.sources) if sources == (recalled_at,)), None)
        self._left_out = self._omitted_by_repair(placed)
        old_before = self._first_recent()
        self._not_plain = report.not_plain
        """Where there is more than words of a user or an assistant: nowhere else are instructions, results, images."""
        short = elide(
            report.messages, old_before=old_before, seqs=self._first_seqs, policy=policy, only=self._not_plain
        )
        self.messages = short.messages
        self.clamps = short.clamps
        self._systems = frozenset(at for at in self._not_plain if is_system(self.messages[at]))
        counted = {id(one.repaired.message): one.tokens for one in placed if one.repaired is not None}
        self.sizes = [
            quotes.tokens if at == self._record_at else counted.get(id(message)) or message_tokens(message)
            for at, message in enumerate(short.messages)
        ]
        self.tokens = sum(self.sizes)

    def _window_message(self, stored: LogMessage) -> Sequence[PreparedMessage]:
        """A message of the window after the instructions it begins with. One given in mid conversation will stand with
        the others at the start, so it says where it was given; the prompt of the start, sent again, does not."""
        told = prepare(stored, self._provider)
        is_plain = len(told) == 1 and told[0].is_plain
        if is_plain or not is_system(stored.payload):
            return told
        first = (*self._given.standing, *self._given.window[: self._given.leading])
        if content_of(stored.payload) in (self._given.system, *(content_of(one.payload) for one in first)):
            return told
        return [
            PreparedMessage({**one.message, "content": given_at(one.message.get("content"), stored.seq)}, stored.seq)
            for one in told
        ]

    @property
    def record_tokens(self) -> int:
        return 0 if self._record_at is None else self.sizes[self._record_at]

    def record_beyond(self, limit: int) -> int:
        """What the record takes above the largest part of the room that it may have."""
        return max(0, self.record_tokens - max(0, limit - self.system_tokens) // RECORD_SHARES[0])

    @property
    def recalled_tokens(self) -> int:
        return 0 if self._recalled_at is None else self.sizes[self._recalled_at]

    @property
    def system_tokens(self) -> int:
        return sum(self.sizes[at] for at in self._systems)

    def _omitted_by_repair(self, placed: Sequence[PreparedMessage]) -> list[Omission]:
        """Messages that no request can hold (a result of no call, an empty one), with what was wrong."""
        shown = {seq for seqs in self._seqs for seq in seqs}
        wrong = {placed[repair.index].seq: str(repair.kind) for repair in self.repairs}
        given = (*self._given.standing, *self._given.window)
        unshown = [stored.seq for stored in given if stored.seq not in shown]
        return [Omission(seq=seq, reason=wrong.get(seq, "empty_message")) for seq in unshown]

    def _first_recent(self) -> int:
        """Where the recent messages begin, among those of the request."""
        before = (*self._given.standing, *self._given.window[: self._given.old_before])
        old = {stored.seq for stored in before}
        firsts = self._first_seqs
        return next((at for at, seq in enumerate(firsts) if seq is not None and seq not in old), len(firsts))

    def fitted(self, budget: Budget) -> _Sent:
        """Within the budget: the record as it stands, the rest as far as it goes. ContextOverflow if it does not."""
        if self.tokens <= budget.limit:
            messages = [own_copy(message) for message in self.messages]
            sizes = dict(enumerate(self.sizes))
            return _Sent(messages=messages, sizes=sizes, dropped=(), clamps=(), tokens=self.tokens)
        others = [at for at in range(len(self.messages)) if at != self._record_at]
        rest = [self.messages[at] for at in others]
        done = fit(
            [[rest[at] for at in span] for span in unit_spans(rest)],
            _leave_room(budget, self.record_tokens),
            seqs=[self._first_seqs[at] for at in others],
            tokens=[self.sizes[at] for at in others],
            policy=self._policy,
        )
        shown = {others[at]: message for at, message in zip(done.indexes, done.messages, strict=True)}
        if self._record_at is not None:
            shown[self._record_at] = self.messages[self._record_at]
        indexes = sorted(shown)
        cut = {others[clamp.index]: clamp.tokens_after for clamp in done.clamped}
        return _Sent(
            messages=[own_copy(shown[at]) for at in indexes],
            sizes={at: cut.get(at, self.sizes[at]) for at in indexes},
            dropped=[others[gone.index] for gone in done.omitted],
            clamps=[replace(clamp, index=others[clamp.index]) for clamp in done.clamped],
            tokens=done.tokens + self.record_tokens,
        )

    def seqs_of(self, indexes: Iterable[int]) -> tuple[int, ...]:
        """The messages of the log behind these of the request."""
        return tuple(sorted({seq for at in indexes for seq in self._seqs[at]}))

    def omissions(self, dropped: Sequence[int]) -> list[Omission]:
        """Everything of the path that is neither shown nor summarised, or of whose summaries only a part is."""
        gone = list(self._left_out)
        gone += [Omission(seq=seq, reason=QUARANTINED) for seq in self._given.quarantined]
        if self._given.passed_over is not None:
            first, last = self._given.passed_over
            gone.append(Omission(seq=first, last_seq=last, reason="passed_over"))
        gone += [Omission(seq=seq, reason="over_budget") for seq in self.seqs_of(dropped)]
        told = {summary.id for summary in self._quotes.summaries}
        gone += [
            Omission(seq=summary.first_seq, last_seq=summary.last_seq, reason="over_budget")
            for summary in self._given.summaries
            if summary.id not in told
        ]
        gone += [
            Omission(seq=summary.first_seq, last_seq=summary.last_seq, reason=MERGED)
            for summary in self._quotes.summaries
            if summary.earlier_ids
        ]
        known = {memory.id for memory in self._quotes.memories}
        gone += [_without_memory(memory) for memory in self._given.memories if memory.id not in known]
        pins = {stored.seq for stored in self._quotes.pinned}
        gone += [
            Omission(seq=stored.seq, reason="over_budget") for stored in self._given.pinned if stored.seq not in pins
        ]
        return gone

    def pieces(self, sent: _Sent) -> tuple[Piece, ...]:
        """Where each message and each quotation of what is sent comes from."""
        short = {clamp.index for clamp in (*self.clamps, *sent.clamps)}
        found: list[Piece] = []
        for index, at in enumerate(sorted(sent.sizes)):
            if at == self._record_at:
                found += self._record_pieces(index)
            elif at == self._recalled_at:
                found += [_memory_piece(index, memory, memory_block(memory)) for memory in self._given.reminded]
                found += [_recalled_piece(index, one) for one in self._given.recalled]
            else:
                found.append(
                    Piece(
                        message=index,
                        kind="system" if at in self._systems else "window",
                        tokens=sent.sizes[at],
                        seqs=self.seqs_of([at]),
                        form="in_part" if at in short else "whole",
                    )
                )
        return tuple(found)

    def _record_pieces(self, index: int) -> Iterator[Piece]:
        quotes = self._quotes
        blocks = iter(quotes.quoted[1 if quotes.memories else 0 :])
        for memory in quotes.memories:
            yield _memory_piece(index, memory, next(blocks))
        for summary in quotes.summaries:
            block = next(blocks)
            is_whole = without_our_tags(encodable(summary.text)).strip() in block.block
            yield Piece(
                message=index,
                kind="summary",
                tokens=block.tokens,
                seqs=(summary.first_seq, summary.last_seq),
                summary_ids=summary.ids,
                form="merged" if summary.earlier_ids else "whole" if is_whole else "in_part",
                text=block.block,
            )
        for stored in quotes.pinned:
            block = next(blocks)
            is_whole = without_our_tags(encodable(payloads.text(stored.payload))).strip() in block.block
            yield Piece(
                message=index,
                kind="pinned",
                tokens=block.tokens,
                seqs=(stored.seq,),
                form="whole" if is_whole else "in_part",
                text=block.block,
            )

    def parts(self, sent: _Sent, *, exact: bool) -> tuple[Part, ...]:
        """What each part of what is sent counts to."""
        tokens = sent.sizes
        sent_at = dict(zip(tokens, sent.messages, strict=True))
        guessed = {at for at in self._not_plain if at in sent_at and has_media(sent_at[at])}
        standing = [index for index in tokens if index in self._systems]
        system = sum(tokens[index] for index in standing)
        spoken = [index for index in tokens if index not in self._systems]
        summaries = self._quotes.summaries
        remembered, summed, pinned = self._record_parts()
        reminded = self.recalled_tokens
        if self._given.recalled:  # the frame is theirs, where there are both
            reminded = min(reminded, memories_tokens(self._given.reminded, language_of_recalled(self._given)))
        known = (*self._quotes.memories, *(self._given.reminded if reminded else ()))
        found = (
            Part(
                kind="system", tokens=system, seqs=self.seqs_of(standing), exact=exact and guessed.isdisjoint(standing)
            ),
            Part(
                kind="memory",
                tokens=remembered + reminded,
                memory_ids=tuple(memory.id for memory in known),
                exact=exact,
            ),
            Part(
                kind="summary",
                tokens=summed,
                seqs=tuple(seq for summary in summaries for seq in (summary.first_seq, summary.last_seq)),
                summary_ids=tuple(id for summary in summaries for id in summary.ids),
                exact=exact,
            ),
            Part(
                kind="pinned",
                tokens=pinned,
                seqs=tuple(stored.seq for stored in self._quotes.pinned),
                exact=exact,
            ),
            Part(
                kind="window",
                tokens=sum(tokens.values()) - system - self.record_tokens - self.recalled_tokens,
                seqs=self.seqs_of(spoken),
                exact=exact and guessed.isdisjoint(spoken),
            ),
            Part(
                kind="recalled",
                tokens=self.recalled_tokens - reminded,
                seqs=tuple(one.stored.seq for one in self._given.recalled),
                exact=exact,
            ),
        )
        return tuple(part for part in found if part.tokens)

    def _record_parts(self) -> tuple[int, int, int]:
        """What memories, summaries and pinned messages count to in the record; its frame goes to one that is there."""
        quotes, whole = self._quotes, self.record_tokens
        remembered, pinned = min(whole, quotes.memory_tokens), min(whole, quotes.pinned_tokens)
        if quotes.summaries:
            return remembered, whole - remembered - pinned, pinned
        return (remembered, 0, whole - remembered) if quotes.pinned else (whole, 0, 0)


def _memory_piece(index: int, memory: QuotedMemory, quoted: QuotedBlock) -> Piece:
    return Piece(
        message=index,
        kind="memory",
        tokens=quoted.tokens,
        seqs=(memory.message,) if memory.message else (),
        memory_id=memory.id,
        text=quoted.block,
    )


def _recalled_piece(index: int, recalled: RecalledPassage) -> Piece:
    quoted = recalled_block(recalled)
    return Piece(
        message=index,
        kind="recalled",
        tokens=quoted.tokens,
        seqs=(recalled.stored.seq,),
        form="whole" if recalled.is_whole else "in_part",
        text=quoted.block,
    )


def _leave_room(budget: Budget, taken: int) -> Budget:
    """The budget with so many tokens less. ContextOverflow when that is all of it."""
    if taken == 0:
        return budget
    if taken >= budget.limit:
        raise ContextOverflow(f"{taken:,} tokens of earlier messages leave nothing of the limit of {budget.limit:,}")
    return replace(budget, tools_tokens=budget.tools_tokens + taken)

"""Repair: any history as a request that a provider accepts. Nothing is dropped that a person or a model said.

Agents are interrupted, runs die between a call and its result, models reuse call ids, frameworks write results
in the order of completion. Each of these is an HTTP 400 at the next request, for ever, because the history is
sent again every turn. So the *view* is put in order here; the log is never touched.

- every message is made valid by itself (`repair_message`)
- every call is answered once, right after it; a call of a dead run by a synthetic "interrupted" result
- a result without a call, and a second result of the same call, are left out of the view
- call ids are unique in the request, and such as both providers take
- one system slot, at the start; keyed by name, the newest of a key stands
- a message with nothing in it is left out; a view that starts with the assistant gets an opening

Deterministic and idempotent; the input is not changed. `repair_report` also says what was done and from which
input message each message of the view comes, so that a manifest can name it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from everthread.context.message_format import (
    INVALID_ARGUMENTS,
    Call,
    Fields,
    Message,
    Provider,
    as_json,
    calls_of,
    check_messages,
    check_provider,
    has_content,
    is_message,
    is_system,
    read_arguments,
    result_block,
    result_message,
    results_of,
    role_of,
    user_message,
    with_calls,
    with_result_ids,
)
from everthread.context.repair_message import MessageRepairKind, RepairedMessage, repair_message
from everthread.context.units import CallRef, Pairing, pair

OPENING = "[the conversation starts with the assistant]"


def repair(
    messages: Sequence[Message], live_calls: Collection[str] = (), *, provider: Provider | None = None
) -> list[Fields]:
    """The messages as a valid request. `live_calls` are ids of calls still running: left alone.

    Without a `provider` the result is valid for all; naming one keeps what only that one takes: signed reasoning and
    images in tool results for Anthropic, recorded speech for OpenAI.
    """
    return list(repair_report(messages, live_calls, provider=provider).messages)


def repair_report(
    messages: Sequence[Message],
    live_calls: Collection[str] = (),
    *,
    provider: Provider | None = None,
    repaired: Sequence[RepairedMessage | None] = (),
) -> RepairReport:
    """`repair`, with an account of what was done. `repaired` has what `repair_message` made of each, where that is
    known."""
    check_provider(provider)
    check_messages(messages)
    log = RepairLog()
    system, spoken = _system_slot(list(_repair_each(messages, provider, log, repaired)), log)
    spoken = CallRepair(spoken, frozenset(live_calls), log).repaired()
    spoken = list(_without_empty(spoken, log))
    spoken = _with_opening(_without_trailing_space(spoken, log), log)
    view = [*system, *spoken]
    return RepairReport(
        messages=tuple(item.message for item in view),
        sources=tuple(item.sources for item in view),
        repairs=tuple(log.repairs),
        not_plain=tuple(at for at, item in enumerate(view) if not item.is_plain),
    )


def _repair_each(
    messages: Sequence[Message], provider: Provider | None, log: RepairLog, repaired: Sequence[RepairedMessage | None]
) -> Iterator[ViewItem]:
    for index, message in enumerate(messages):
        fixed = repaired[index] if repaired else None
        if fixed is None and not is_message(message):
            log.note("unknown_role", ViewItem({}, (index,)))
            continue
        fixed = fixed or repair_message(message, provider=provider)
        item = ViewItem(fixed.message, (index,), fixed.is_plain)
        for kind, call_id in fixed.done:
            log.note(kind, item, call_id)
        yield item


# --- the system slot -------------------------------------------------------------------------


def _system_slot(items: list[ViewItem], log: RepairLog) -> tuple[list[ViewItem], list[ViewItem]]:
    """Standing instructions first, and the rest.

    What stands at the start stays, in its order. An instruction in mid conversation is usually the same prompt
    sent again with every turn: of each name (or of none) only the newest stands, and it replaces the one of
    that name at the start.
    """
    leading = next((at for at, item in enumerate(items) if not item.is_system), len(items))
    newest: dict[object, ViewItem] = {}
    for item in items[leading:]:
        if item.is_system:
            name = item.message.get("name")
            if name in newest:
                log.note("system_superseded", newest[name])
            newest[name] = item
    for item in newest.values():
        log.note("system_moved", item)
    spoken = [item for item in items[leading:] if not item.is_system]
    return _newest_per_name([*items[:leading], *newest.values()], log), spoken


def _newest_per_name(system: list[ViewItem], log: RepairLog) -> list[ViewItem]:
    """One instruction per name; those without a name are told apart by what they say."""
    kept: dict[str, ViewItem] = {}
    for item in system:
        name = item.message.get("name")
        key = f"name {name}" if name else f"text {as_json(item.message.get('content'))}"
        if not has_content(item.message):
            log.note("empty_message", item)
            continue
        if key in kept:
            log.note("system_superseded", kept[key])
        kept[key] = item
    return list(kept.values())


# --- the ends --------------------------------------------------------------------------------


def _without_empty(items: list[ViewItem], log: RepairLog) -> Iterator[ViewItem]:
    for item in items:
        message = item.message
        if item.is_plain or role_of(message) == "tool" or calls_of(message) or has_content(message):
            yield item
        else:
            log.note("empty_message", item)


def _without_trailing_space(items: list[ViewItem], log: RepairLog) -> list[ViewItem]:
    """Anthropic refuses a last assistant message that ends in white space."""
    if not items or role_of(items[-1].message) != "assistant" or calls_of(items[-1].message):
        return items
    last = items[-1]
    content = last.message["content"]
    if isinstance(content, str):
        trimmed: Any = content.rstrip()
    elif content[-1].get("type") == "text":
        trimmed = [*content[:-1], {**content[-1], "text": content[-1]["text"].rstrip()}]
    else:
        return items
    if trimmed == content:
        return items
    log.note("trimmed", last)
    return [*items[:-1], last._replace(message={**last.message, "content": trimmed})]


def _with_opening(items: list[ViewItem], log: RepairLog) -> list[ViewItem]:
    """Anthropic wants the first message from the user."""
    if not items or role_of(items[0].message) == "user":
        return items
    log.note("opened", items[0])
    return [ViewItem(user_message(items[0].message, OPENING), ()), *items]


RepairKind = (
    MessageRepairKind
    | Literal[
        "interrupted",  # a call of a dead run, answered by us
        "orphan_result",  # a result without a call, left out
        "second_result",  # a second result of the same call, left out
        "moved_result",  # a result that stood apart from its call
        "renamed_call",  # a call id that was empty, taken, or not to a provider's taste
        "system_moved",  # a standing instruction in mid conversation, moved to the start
        "system_superseded",  # a standing instruction that a newer one of its key replaces, left out
        "empty_message",  # a message with nothing in it, left out
        "unknown_role",  # a message no provider has a role for, left out
        "opened",  # a user's word put before a conversation that the assistant begins
        "trimmed",  # white space at the end of a closing assistant message
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One thing that was put right."""

    kind: RepairKind
    index: int
    """Position of the message in the input."""
    call_id: str = ""
    """The id in the input, where a call or a result is concerned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """The repaired view and how it came about."""

    messages: tuple[Fields, ...]
    sources: tuple[tuple[int, ...], ...]
    """For each message of the view the positions in the input it comes from; none when it is ours."""
    repairs: tuple[Repair, ...]
    not_plain: tuple[int, ...]
    """Which messages of the view are more than words of a user or an assistant."""


class ViewItem(NamedTuple):
    """A message of the view, and the positions in the input it comes from. A named tuple: one is made for every message
    of every request."""

    message: Fields
    sources: tuple[int, ...]
    is_plain: bool = False

    @property
    def is_system(self) -> bool:
        return not self.is_plain and is_system(self.message)


@dataclass(slots=True)
class RepairLog:
    """What has been done so far."""

    repairs: list[Repair] = field(default_factory=list)

    def note(self, kind: RepairKind, item: ViewItem, call_id: str = "") -> None:
        self.repairs.append(Repair(kind=kind, index=item.sources[0] if item.sources else 0, call_id=call_id))


INTERRUPTED = "[interrupted: this call was not completed and has no result]"
NOT_RUN = "[not run: the arguments of this call were not a JSON object]"

CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""OpenAI takes up to 40 characters; Anthropic takes no others."""


class CallRepair:
    """Puts every result right after its call. A group that is in order is left exactly as it is; one that is
    not is rebuilt in the order of its calls."""

    def __init__(self, items: list[ViewItem], live: frozenset[str], log: RepairLog) -> None:
        self.items = items
        self.ledger = log
        self.calls = [() if item.is_plain else calls_of(item.message) for item in items]
        self.answers = [() if item.is_plain else results_of(item.message) for item in items]
        self.pairing: Pairing = pair(self.calls, self.answers)
        newest = {
            call.id: CallRef(at, slot)
            for at, made in enumerate(self.calls)
            for slot, call in enumerate(made)
            if call.id in live
        }
        self.live = frozenset(ref for ref in newest.values() if ref not in self.pairing.answers)
        """The calls that are still running: the newest of each live id, if it has no result yet."""
        self.ids = _unique_ids(self.calls, self.live)
        self.call_of = {answer: call for call, answer in self.pairing.answers.items()}
        self.placed: set[int] = set()
        """Messages that were already written, beside their call."""

    def repaired(self) -> list[ViewItem]:
        out: list[ViewItem] = []
        for at, item in enumerate(self.items):
            if self.calls[at]:
                out.extend(self._caller_with_results(at))
            elif at in self.placed:
                continue
            elif self.answers[at]:
                if said := self._other_blocks(at):
                    out.append(item._replace(message={**item.message, "content": said}))
            else:
                out.append(item)
        for ref in sorted(self.pairing.orphans | self.pairing.repeats):
            call_id = self.answers[ref.message][ref.slot].call_id
            kind: RepairKind = "orphan_result" if ref in self.pairing.orphans else "second_result"
            self.ledger.note(kind, self.items[ref.message], call_id)
        return out

    def _caller_with_results(self, at: int) -> Iterator[ViewItem]:
        """A caller, and all its results."""
        run = self._results_after(at)
        yield self._with_call_ids(at)
        if self._in_order(at, run):
            self.placed.update(run)
            yield from map(self._with_result_ids, run)
            return
        blocks: list[ViewItem] = []
        for slot, call in enumerate(self._sent_calls(at)):
            ref = CallRef(at, slot)
            if ref in self.pairing.answers:
                result = self._existing_result(self.pairing.answers[ref], run)
            elif ref in self.live:
                continue
            else:
                result = self._interrupted_result(at, call, self.calls[at][slot].id)
            if result.message.get("type") == "tool_result":
                blocks.append(result)
            else:
                yield result
        if blocks:
            yield self._results_message(at, run, blocks)

    def _existing_result(self, answer: CallRef, run: range) -> ViewItem:
        """A result that is there: a message, or a block of one."""
        item = self._with_result_ids(answer.message)
        told = self.answers[answer.message][answer.slot]
        if answer.message not in run:
            self.ledger.note("moved_result", item, told.call_id)
        if told.block is not None:
            return item._replace(message=item.message["content"][told.block])
        self.placed.add(answer.message)
        return item

    def _interrupted_result(self, at: int, call: Call, former_id: str) -> ViewItem:
        """A result for a call that never got one."""
        self.ledger.note("interrupted", self.items[at], former_id)
        was_invalid = set(read_arguments(call.arguments) or ()) == {INVALID_ARGUMENTS}
        excuse = NOT_RUN if was_invalid else INTERRUPTED
        if call.in_blocks_only:
            return ViewItem(result_block(call, excuse), ())
        return ViewItem(result_message(self.items[at].message, call, excuse), ())

    def _results_message(self, at: int, run: range, blocks: list[ViewItem]) -> ViewItem:
        """Results as blocks: all in one user message, before whatever the user says in it."""
        results = [block.message for block in blocks]
        sources = {source for block in blocks for source in block.sources}
        host = next((carrier for carrier in run if self.answers[carrier][0].block is not None), None)
        if host is None:
            return ViewItem(user_message(self.items[at].message, list(results)), tuple(sorted(sources)))
        self.placed.add(host)
        item = self.items[host]
        content = [*results, *self._other_blocks(host)]
        return ViewItem({**item.message, "content": content}, tuple(sorted({*sources, *item.sources})))

    def _results_after(self, at: int) -> range:
        """The messages directly after a caller that carry results, up to the first that says more."""
        end = at + 1
        while end < len(self.items) and self.answers[end]:
            end += 1
            if self._other_blocks(end - 1):
                break
        return range(at + 1, end)

    def _in_order(self, at: int, run: range) -> bool:
        expected = {CallRef(at, slot) for slot in range(len(self.calls[at]))} - self.live
        found = [
            self.call_of.get(CallRef(carrier, slot)) for carrier in run for slot in range(len(self.answers[carrier]))
        ]
        answered = {ref for ref in found if ref is not None and ref.message == at}
        carriers = [carrier for carrier in run if self.answers[carrier][0].block is not None]
        return (
            len(answered) == len(found)
            and expected <= answered
            and carriers in ([], [run[-1]] if run else [])
            # results come before whatever the user says in the same message
            and all([one.block for one in self.answers[host]] == [*range(len(self.answers[host]))] for host in carriers)
        )

    def _other_blocks(self, carrier: int) -> list[Any]:
        """What a carrier of results says besides."""
        content = self.items[carrier].message.get("content")
        taken = {answer.block for answer in self.answers[carrier]}
        if taken == {None} or not isinstance(content, list):
            return []
        return [block for at, block in enumerate(content) if at not in taken]

    def _sent_calls(self, at: int) -> list[Call]:
        return [call._replace(id=self.ids[CallRef(at, slot)]) for slot, call in enumerate(self.calls[at])]

    def _with_call_ids(self, at: int) -> ViewItem:
        item, sent = self.items[at], self._sent_calls(at)
        if all(before.id == after.id for before, after in zip(self.calls[at], sent, strict=True)):
            return item
        for before, after in zip(self.calls[at], sent, strict=True):
            if before.id != after.id:
                self.ledger.note("renamed_call", item, before.id)
        return item._replace(message=with_calls(item.message, sent))

    def _with_result_ids(self, carrier: int) -> ViewItem:
        """A carrier whose results answer the ids their calls now have."""
        item = self.items[carrier]
        changed = []
        for slot, answer in enumerate(self.answers[carrier]):
            call = self.call_of.get(CallRef(carrier, slot))
            if call is not None and self.ids[call] != answer.call_id:
                changed.append(replace(answer, call_id=self.ids[call]))
        return item._replace(message=with_result_ids(item.message, changed)) if changed else item


def _unique_ids(calls: Sequence[Sequence[Call]], live: frozenset[CallRef]) -> dict[CallRef, str]:
    """An id for every call that no other call of the request has. A live call keeps its own: its result is
    still to come."""
    ids = {ref: calls[ref.message][ref.slot].id for ref in live}
    taken = set(ids.values())
    copies: Counter[str] = Counter()
    for at, made in enumerate(calls):
        for slot, call in enumerate(made):
            ref = CallRef(at, slot)
            if ref not in ids:
                ids[ref] = _free_id(call, taken, copies)
                taken.add(ids[ref])
    return ids


def _free_id(call: Call, taken: Collection[str], copies: Counter[str]) -> str:
    if CALL_ID.fullmatch(call.id) and call.id not in taken:
        return call.id
    if CALL_ID.fullmatch(call.id) and len(call.id) <= 32:
        stem = call.id
    else:
        seed = call.id or f"{call.name} {as_json(call.arguments)}"
        stem = f"call_{hashlib.sha256(seed.encode()).hexdigest()[:24]}"
    candidate = stem
    while candidate in taken:
        copies[stem] += 1
        candidate = f"{stem}-{copies[stem] + 1}"
    return candidate

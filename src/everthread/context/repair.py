"""Repair: any history as a request that a provider accepts. Nothing is dropped that a person or a model said.

Agents are interrupted, runs die between a call and its result, models reuse call ids, frameworks write results
in the order of completion. Each of these is an HTTP 400 at the next request, for ever, because the history is
sent again every turn. So the *view* is put in order here; the log is never touched.

- every call is answered once, right after it; a call of a dead run by a synthetic "interrupted" result
- a result without a call, and a second result of the same call, are left out of the view
- call ids are unique in the request, and such as both providers take
- a content block that the provider does not take is said in its words, or left out
- one system slot, at the start; keyed by name, the newest of a key stands
- a message with nothing in it is left out; a view that starts with the assistant gets an opening

Deterministic and idempotent; the input is not changed. `repair_report` also says what was done and from which
input message each message of the view comes, so that a manifest can name it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from everthread.context.answering import Answering
from everthread.context.dialect import Fields, as_json, user_message
from everthread.context.mend import mend
from everthread.context.repairs import Item, Ledger, RepairReport
from everthread.context.shape import (
    Message,
    Provider,
    calls_of,
    check_messages,
    check_provider,
    is_message,
    is_system,
    role_of,
    says_something,
)

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
    messages: Sequence[Message], live_calls: Collection[str] = (), *, provider: Provider | None = None
) -> RepairReport:
    """`repair`, with an account of what was done."""
    check_provider(provider)
    check_messages(messages)
    ledger = Ledger()
    system, spoken = _system_slot(list(_mended(messages, provider, ledger)), ledger)
    spoken = Answering(spoken, frozenset(live_calls), ledger).answered()
    spoken = list(_without_empty(spoken, ledger))
    spoken = _opened(_trimmed(spoken, ledger), ledger)
    view = [*system, *spoken]
    return RepairReport(
        messages=tuple(item.message for item in view),
        sources=tuple(item.sources for item in view),
        repairs=tuple(ledger.repairs),
    )


def _mended(messages: Sequence[Message], provider: Provider | None, ledger: Ledger) -> Iterator[Item]:
    for index, message in enumerate(messages):
        if not is_message(message):
            ledger.note("unknown_role", Item({}, (index,)))
            continue
        mended = mend(message, provider=provider)
        item = Item(mended.message, (index,))
        for kind, call_id in mended.done:
            ledger.note(kind, item, call_id)
        yield item


# --- the system slot -------------------------------------------------------------------------


def _system_slot(items: list[Item], ledger: Ledger) -> tuple[list[Item], list[Item]]:
    """Standing instructions first, and the rest.

    What stands at the start stays, in its order. An instruction in mid conversation is usually the same prompt
    sent again with every turn: of each name (or of none) only the newest stands, and it replaces the one of
    that name at the start.
    """
    leading = next((at for at, item in enumerate(items) if not is_system(item.message)), len(items))
    newest: dict[object, Item] = {}
    for item in items[leading:]:
        if is_system(item.message):
            name = item.message.get("name")
            if name in newest:
                ledger.note("system_superseded", newest[name])
            newest[name] = item
    for item in newest.values():
        ledger.note("system_moved", item)
    spoken = [item for item in items[leading:] if not is_system(item.message)]
    return _distinct([*items[:leading], *newest.values()], ledger), spoken


def _distinct(system: list[Item], ledger: Ledger) -> list[Item]:
    """One instruction per name; those without a name are told apart by what they say."""
    kept: dict[str, Item] = {}
    for item in system:
        name = item.message.get("name")
        key = f"name {name}" if name else f"text {as_json(item.message.get('content'))}"
        if not says_something(item.message):
            ledger.note("empty_message", item)
            continue
        if key in kept:
            ledger.note("system_superseded", kept[key])
        kept[key] = item
    return list(kept.values())


# --- the ends --------------------------------------------------------------------------------


def _without_empty(items: list[Item], ledger: Ledger) -> Iterator[Item]:
    for item in items:
        message = item.message
        if role_of(message) == "tool" or calls_of(message) or says_something(message):
            yield item
        else:
            ledger.note("empty_message", item)


def _trimmed(items: list[Item], ledger: Ledger) -> list[Item]:
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
    ledger.note("trimmed", last)
    return [*items[:-1], replace(last, message={**last.message, "content": trimmed})]


def _opened(items: list[Item], ledger: Ledger) -> list[Item]:
    """Anthropic wants the first message from the user."""
    if not items or role_of(items[0].message) == "user":
        return items
    ledger.note("opened", items[0])
    return [Item(user_message(items[0].message, OPENING), ()), *items]

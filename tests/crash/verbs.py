"""How each verb of a script is done, the first time and *again*.

Again means: it was begun, the process died, and whoever asked for it was never told. Where a call carries an id or
a key of the caller, it is simply made again, and the log sorts it out; where it cannot carry one (fork, copy), the
caller looks first, as any careful caller would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any

from everthread import Conflict, Conversation, Everthread, NotFound, Receipt
from tests.crash.script import Lane, Step

Answer = list[Any]


async def do(et: Everthread, lane: Lane, step: Step, *, again: bool) -> Answer:
    """Make the call; give what was answered, as JSON and without what chance decides."""
    if step.verb == "create":
        return await _create(et, again, id=lane.name, **step.arguments)
    if step.verb == "heads":
        return [asdict(head) for head in await et.heads()]
    conversation = await et.conversations.get(lane.name)
    return await _DEEDS[step.verb](et, conversation, again, **step.arguments)


async def _create(et: Everthread, again: bool, **arguments: Any) -> Answer:
    try:
        await et.conversations.create(**arguments)
    except Conflict:
        if not again:
            raise
    return []


async def _append(
    et: Everthread,
    conversation: Conversation,
    again: bool,
    messages: list[dict[str, Any]],
    key: str | None,
    to: str | None = None,
) -> Answer:
    if to is not None:
        conversation = await et.conversations.get(to)
    return [_receipt(receipt) for receipt in await conversation.append(messages, idempotency_key=key)]


async def _edit(
    et: Everthread, conversation: Conversation, again: bool, target: str, message: dict[str, Any]
) -> Answer:
    try:
        return [_receipt(await conversation.edit(target, message))]
    except Conflict:
        if not again:
            raise
        sibling = await conversation.message(message["id"])
        return [[sibling.id, sibling.entry_seq, sibling.revision]]


async def _fork(et: Everthread, conversation: Conversation, again: bool, target: str, activate: bool) -> Answer:
    at = (await conversation.message(target)).seq
    made = [branch async for branch in conversation.branches() if branch.fork_seq == branch.leaf_seq == at]
    branch = made[0] if again and made else await conversation.fork(at, activate=activate)
    return [branch.id, branch.fork_seq, branch.leaf_seq]


async def _set_active(et: Everthread, conversation: Conversation, again: bool, branch: str) -> Answer:
    return [(await conversation.set_active(branch)).id]


async def _mark(et: Everthread, conversation: Conversation, again: bool, how: str, target: str) -> Answer:
    await getattr(conversation, how)(target)
    return []


async def _update(et: Everthread, conversation: Conversation, again: bool, **changes: Any) -> Answer:
    return [(await conversation.update(**changes)).title]


async def _change(et: Everthread, conversation: Conversation, again: bool, how: str) -> Answer:
    await getattr(conversation, how)()
    return []


async def _search(et: Everthread, conversation: Conversation, again: bool, text: str) -> Answer:
    return sorted(hit.seq for hit in await et.search(text, conversation=conversation.id, limit=1000))


async def _erase(et: Everthread, conversation: Conversation, again: bool, target: str) -> Answer:
    try:
        await et.erase(conversation=conversation.id, message=target)
    except NotFound:
        if not again:
            raise
    return []


async def _copy(et: Everthread, conversation: Conversation, again: bool, title: str) -> Answer:
    """Making the copy and filling it are two commits; an empty one was left by a crash."""
    if again:
        page = await et.conversations.list(limit=1000)
        made = [found.info.entry_count for found in page.items if found.title == title and found.info.entry_count]
        if made:
            return made
    return [(await conversation.copy(title=title)).info.entry_count]


async def _spawn(et: Everthread, conversation: Conversation, again: bool, id: str) -> Answer:
    child = await et.conversations.ensure(id, parent_id=conversation.id)
    return [child.parent_id]


def _receipt(receipt: Receipt) -> Answer:
    """Without `new`, which says how often a call was made, and without an id the log made up."""
    return [receipt.id if receipt.id.startswith(("m", "child")) else "made", receipt.seq, receipt.revision]


_DEEDS: Mapping[str, Callable[..., Awaitable[Answer]]] = {
    "append": _append,
    "change": _change,
    "copy": _copy,
    "edit": _edit,
    "erase": _erase,
    "fork": _fork,
    "mark": _mark,
    "search": _search,
    "set_active": _set_active,
    "spawn": _spawn,
    "update": _update,
}

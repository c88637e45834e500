"""Two servers on one database, several writers of one conversation each: whatever they do at once is refused with a
typed error or done whole, and afterwards the log verifies and every view can be read."""

from __future__ import annotations

import asyncio
import random

import pytest

import everthread
from everthread import Conversation, Everthread, EverthreadError
from tests.contracts.message_helpers import history, says


async def append(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.append([says(f"said {step}", id=f"m{step}"), {"role": "assistant", "content": f"answered {step}"}])


async def edit(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.edit(id, says(f"edited {step}"))


async def revise(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.append([says(f"revised {step}", id=id)])


async def restore(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    for message in [one async for one in conv.messages(include_deleted=True) if one.is_deleted][:1]:
        await conv.restore_message(message.id)


async def release(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    for message in [one async for one in conv.messages(include_deleted=True) if one.is_quarantined][:1]:
        await conv.release(message.id)


async def erase(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await et.erase(conversation=conv.id, message=id)


async def compact(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.compact(trigger="manual")


async def undo(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    for compaction in [one async for one in conv.compactions() if one.is_live][-1:]:
        await conv.undo_compaction(compaction.id)


async def fork(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.set_active(await conv.fork((await conv.message(id)).seq))


async def rename(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.update(title=f"title {step}")


async def ask(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.keep_context(await conv.context())


async def delete(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.delete_message(id)


async def quarantine(et: Everthread, conv: Conversation, id: str, step: str) -> None:
    await conv.quarantine(id)


ACTS = (
    append,
    append,
    append,
    edit,
    revise,
    restore,
    release,
    erase,
    compact,
    undo,
    fork,
    rename,
    ask,
    delete,
    quarantine,
)


@pytest.mark.parametrize("seed", range(2))
async def test_what_two_servers_do_at_once_is_done_whole_or_refused(durable_url: str, seed: int) -> None:
    refused: list[str] = []

    async def writer(et: Everthread, number: int) -> None:
        dice = random.Random(100 * seed + number)
        conv = await et.conversations.get("shared")
        for step in range(20):
            try:
                said = await history(conv)
                id = dice.choice(said).id if said else "none"
                await dice.choice(ACTS)(et, conv, id, f"{number}-{step}")
            except EverthreadError as problem:
                refused.append(type(problem).__name__)

    async with (
        everthread.open(durable_url, worker=False) as one,
        everthread.open(durable_url, worker=False) as other,
    ):
        conv = await one.conversations.create(id="shared")
        await conv.append([says(f"first {number}") for number in range(15)])
        await asyncio.gather(*(writer(et, number) for number, et in enumerate((one, other, one, other))))
        assert (await one.verify()).problems == ()
        assert {head.count for head in await one.heads()} == {head.count for head in await other.heads()}
        async for branch in conv.branches():
            shown = [
                message.seq for message in await history(await other.conversations.get("shared"), branch=branch.id)
            ]
            assert shown == sorted(set(shown))
        await conv.append([says("and after all that?")])  # a branch may have been left with nothing to show
        assert "and after all that?" in str((await conv.context()).messages[-1])
    assert len(refused) < 60

"""Owners: everything belongs to one, and to another it looks as if it never was."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from everthread import Everthread, EverthreadError, Invalid, NotFound
from tests.contracts.message_helpers import appended, says, texts


async def problem(call: Callable[[], Awaitable[object]]) -> tuple[type[EverthreadError], str]:
    with pytest.raises(EverthreadError) as caught:
        await call()
    return type(caught.value), str(caught.value)


async def test_people_may_choose_the_same_ids(et: Everthread) -> None:
    for owner in ("ann", "bob"):
        conv = await et.conversations.create(id="1", owner=owner, title=owner)
        await conv.append([says(f"I am {owner}", id="m1")], idempotency_key="k")
    for owner in ("ann", "bob"):
        conv = await et.conversations.get("1", owner=owner)
        assert (conv.owner, conv.title) == (owner, owner)
        assert await texts(conv) == [f"I am {owner}"]
        assert [item.title for item in (await et.conversations.list(owner)).items] == [owner]


async def test_i20_another_owners_id_looks_unknown(et: Everthread) -> None:
    theirs = await et.conversations.create(id="theirs", owner="ann")
    await theirs.append([says("private", id="m1")])
    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda id: et.conversations.get(id, owner="bob"),
        lambda id: et.conversations.create(id="child", owner="bob", parent_id=id),
        lambda id: et.search("private", owner="bob", conversation=id),
        lambda id: et.erase(owner="bob", conversation=id),
        lambda id: et.erase(owner="bob", conversation=id, message="m1"),
    ]
    for call in calls:
        kind, message = await problem(lambda call=call: call("theirs"))  # type: ignore[misc]
        unknown_kind, unknown_message = await problem(lambda call=call: call("nobodys"))  # type: ignore[misc]
        assert kind is unknown_kind is NotFound
        assert message == unknown_message.replace("nobodys", "theirs")
    assert list((await et.conversations.list("bob")).items) == []
    assert list((await et.conversations.list("bob", parent_id="theirs")).items) == []
    assert list(await et.search("private", owner="bob")) == []
    assert await texts(theirs) == ["private"]


async def test_i20_an_erased_conversation_of_another_owner_looks_unknown_too(et: Everthread) -> None:
    await et.conversations.create(id="gone", owner="ann")
    await et.erase(owner="ann", conversation="gone")
    assert await problem(lambda: et.conversations.get("gone", owner="bob")) == (NotFound, "no conversation 'gone'")
    mine = await et.conversations.create(id="gone", owner="bob")
    assert await appended(mine, "my own") == [1]


async def test_i20_a_cursor_works_for_its_owner_only(et: Everthread) -> None:
    for owner in ("ann", "bob"):
        for number in range(3):
            await et.conversations.create(id=str(number), owner=owner)
    page = await et.conversations.list("ann", limit=1)
    with pytest.raises(Invalid, match="cursor"):
        await et.conversations.list("bob", cursor=page.next_cursor)


async def test_erasing_an_owner_leaves_the_others_alone(et: Everthread) -> None:
    for owner in ("ann", "bob", "local"):
        await appended(await et.conversations.create(id="1", owner=owner), "needle")
    proof = await et.erase(owner="ann")
    assert (proof.conversations, proof.entries) == (1, 1)
    for owner in ("bob", "local"):
        assert await texts(await et.conversations.get("1", owner=owner)) == ["needle"]
        assert len(await et.search("needle", owner=owner)) == 1
    assert list((await et.conversations.list("ann")).items) == []

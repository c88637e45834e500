"""While a legal hold stands, no door erases what it is on; who held it and why stays on record."""

from __future__ import annotations

import pytest

import everthread
from everthread import Conflict, Everthread, Held, Invalid, NotFound


async def test_what_is_held_is_erased_by_no_door_until_it_is_released(et: Everthread) -> None:
    conv = await et.conversations.create(id="trip", owner="ann")
    child = await et.conversations.create(id="child", owner="ann", parent_id="trip")
    other = await et.conversations.create(id="other", owner="ann")
    for one in (conv, child, other):
        await one.append({"role": "user", "content": "evidence", "id": f"m-{one.id}"})
    memory = await conv.remember("The user lives in Kunming.", seq=1)
    hold = await et.holds.add("ann", "trip", reason="case 12", by="legal")
    refused = [
        et.erase(owner="ann", conversation="trip"),
        et.erase(owner="ann", conversation="trip", message="m-trip"),
        et.erase(owner="ann", conversation="child"),
        et.erase(owner="ann", conversation="child", message="m-child"),
        et.erase(owner="ann"),
        et.memories.erase("ann", memory.id),
    ]
    for act in refused:
        with pytest.raises(Held, match=f"{hold.id}.*legal.*case 12"):
            await act
    assert [message.text async for message in conv.messages()] == ["evidence"]
    await et.erase(owner="ann", conversation="other")
    with pytest.raises(Conflict, match="already"):
        await et.holds.add("ann", "trip", reason="again", by="legal")
    released = await et.holds.release(hold.id, by="judge")
    assert (released.held_by, released.released_by, released.is_active) == ("legal", "judge", False)
    report = await et.erase(owner="ann")
    assert any("legal holds" in place for place in report.cannot_reach)
    assert await et.holds.list("ann") == []
    assert [one.reason for one in await et.holds.list(include_released=True)] == ["case 12"]
    with pytest.raises(Conflict, match="judge"):
        await et.holds.release(hold.id, by="judge")


async def test_a_hold_on_an_owner_covers_what_comes_later_and_nobody_else(et: Everthread) -> None:
    await et.holds.add("ann", reason="case 13", by="legal")
    for owner in ("ann", "bob"):
        await (await et.conversations.create(id="c", owner=owner)).append({"role": "user", "content": "x", "id": "m"})
    memory = await et.memories.add("ann", "Likes tea.")
    for act in (et.erase(owner="ann", conversation="c"), et.erase(owner="ann"), et.memories.erase("ann", memory.id)):
        with pytest.raises(Held):
            await act
    await et.erase(owner="bob")


async def test_a_held_subagent_keeps_the_conversation_above_it(et: Everthread) -> None:
    await et.conversations.create(id="above")
    await et.conversations.create(id="below", parent_id="above")
    await et.holds.add("local", "below", reason="case 14", by="legal")
    with pytest.raises(Held):
        await et.erase(conversation="above")


async def test_bad_holds_are_refused(et: Everthread) -> None:
    await et.conversations.create(id="off", off_record=True)
    with pytest.raises(NotFound):
        await et.holds.add("local", "nowhere", reason="r", by="b")
    with pytest.raises(Invalid, match="off the record"):
        await et.holds.add("local", "off", reason="r", by="b")
    with pytest.raises(Invalid, match="why"):
        await et.holds.add("local", reason=" ", by="b")
    with pytest.raises(NotFound):
        await et.holds.release("nothing", by="b")


async def test_a_hold_is_in_a_backup(tmp_path: object) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/a.db", worker=False) as et:
        await et.holds.add("ann", reason="case 15", by="legal")
        await et.backup(f"{tmp_path}/b.db")
    async with everthread.open(f"sqlite:///{tmp_path}/b.db", worker=False) as et:
        assert [one.reason for one in await et.holds.list()] == ["case 15"]

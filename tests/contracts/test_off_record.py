"""Off the record: indexed nowhere, and erased when the database is closed."""

from __future__ import annotations

from pathlib import Path

import pytest

import everthread
from everthread import Erased, Everthread, NotFound
from tests.contracts.message_helpers import appended, says, texts
from tests.forensics import readable


async def test_it_reads_and_writes_like_any_other(et: Everthread) -> None:
    conv = await et.conversations.create(off_record=True, title="between us")
    assert conv.off_record
    await conv.append([says("a", id="a"), says("b", id="b")])
    await conv.append([says("a2", id="a")])
    await conv.edit("b", says("B"))
    await conv.pin("a")
    assert await texts(conv) == ["a2", "B"]
    assert (await et.conversations.get(conv.id)).off_record
    assert [item.id for item in (await et.conversations.list()).items] == [conv.id]
    assert not (await et.conversations.create()).off_record


async def test_nothing_of_it_is_found(et: Everthread) -> None:
    conv = await et.conversations.create(off_record=True)
    await conv.append([says("hush", id="m")])
    await conv.append([says("hush hush", id="m")])
    await conv.edit("m", says("hush again"))
    assert list(await et.search("hush")) == []
    assert list(await et.search("hush", conversation=conv.id)) == []


async def test_a_copy_of_it_is_off_the_record_too(et: Everthread) -> None:
    conv = await et.conversations.create(off_record=True)
    await appended(conv, "hush")
    copy = await conv.copy()
    assert copy.off_record
    assert await texts(copy) == ["hush"]
    assert list(await et.search("hush")) == []


async def test_a_child_of_it_is_off_the_record_too(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        await et.conversations.create(id="secret", off_record=True)
        child = await et.conversations.create(id="child", parent_id="secret")
        assert child.off_record
        await appended(child, "hush")
        assert list(await et.search("hush")) == []
    async with everthread.open(durable_url) as et:
        with pytest.raises(NotFound):
            await et.conversations.get("child")


async def test_closing_erases_it_and_keeps_the_rest(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        secret = await et.conversations.create(id="secret", off_record=True, title="hush")
        await appended(secret, "hush")
        await (await et.conversations.get("secret")).copy(id="copy")
        await appended(await et.conversations.create(id="open"), "hello")
    async with everthread.open(durable_url) as et:
        for id in ("secret", "copy"):
            with pytest.raises(NotFound):
                await et.conversations.get(id)
            with pytest.raises(Erased):
                await et.conversations.create(id=id)
        assert await texts(await et.conversations.get("open")) == ["hello"]
        report = await et.verify()
        assert report.ok
        assert (report.messages, report.erased) == (1, 2)


async def test_closing_a_database_in_memory_erases_it_too() -> None:
    et = everthread.open("memory://")
    async with et:
        secret = await et.conversations.create(off_record=True)
        await appended(secret, "hush")
        kept = await et.conversations.create()
        await appended(kept, "hello")
    async with et:
        with pytest.raises(NotFound):
            await texts(secret)
        assert await texts(kept) == ["hello"]


async def test_one_erased_by_hand_does_not_trouble_the_closing(durable_url: str) -> None:
    async with everthread.open(durable_url) as et:
        secret = await et.conversations.create(id="secret", off_record=True)
        await appended(secret, "hush")
        await et.erase(conversation="secret")
    async with everthread.open(durable_url) as et:
        assert (await et.verify()).ok


async def test_closing_one_opening_leaves_what_another_has_off_the_record(durable_url: str) -> None:
    async with everthread.open(durable_url) as other:
        async with everthread.open(durable_url) as one:
            await appended(await one.conversations.create(id="mine", off_record=True), "hush")
            theirs = await other.conversations.create(id="theirs", off_record=True)
            await appended(theirs, "still talking")
        assert await texts(theirs) == ["still talking"]
        with pytest.raises(NotFound):
            await other.conversations.get("mine")


def bytes_in(folder: Path) -> bytes:
    return b"".join(readable(path.read_bytes()) for path in folder.iterdir())


async def test_i22_no_file_holds_it_after_closing(tmp_path: Path) -> None:
    file = tmp_path / "et.db"
    async with everthread.open(f"sqlite:///{file}") as et:
        conv = await et.conversations.create(off_record=True, title="abecedarian", metadata={"k": "borborygmus"})
        await appended(conv, "callipygian", "defenestration " * 10_000)
        written = bytes_in(tmp_path)
    left = bytes_in(tmp_path)
    for word in (b"abecedarian", b"borborygmus", b"callipygian", b"defenestration"):
        assert word in written
        assert word not in left

"""Large payloads in a blob store: durable before the log refers to them, whole when read, and gone when erased."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

import everthread
from everthread import Conversation, Everthread, Invalid, StoreDamaged, StoreError
from everthread.core import failpoints
from tests.contracts.message_helpers import says, texts

BIG = "The zirconium ledger of Osnabrück. " * 3_000
"""Some 100 kB."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(folder: Path) -> str:
    return f"file://{folder}"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def holds(folder: Path, needle: bytes) -> bool:
    """Whether any file there, of the blobs or of a database, has these bytes."""
    return any(needle in file.read_bytes() for file in files(folder))


async def talk(et: Everthread) -> Conversation:
    conv = await et.conversations.create(id="c")
    await conv.append([says("small"), says(BIG, id="big"), says("small too")])
    return conv


async def test_a_large_payload_is_a_file_and_comes_back_as_it_was(durable_url: str, blobs: str, folder: Path) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await talk(et)
        before = (await conv.message("big")).raw
        assert [file.read_bytes() for file in files(folder)] == [before]
        assert (await et.stats())["payload_bytes"] > len(BIG)
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await et.conversations.get("c")
        assert await texts(conv) == ["small", BIG, "small too"]
        assert (await conv.message("big")).raw == before
        assert [hit.id for hit in await et.search("zirconium", conversation="c")] == ["big"]
        assert "zirconium" in str((await conv.context()).messages)
        assert (await et.verify()).ok
        (receipt,) = await conv.append([says(BIG, id="big")])
        assert not receipt.new


async def test_the_same_content_is_there_once_in_a_conversation_and_apart_in_a_copy(
    durable_url: str, blobs: str, folder: Path
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([b'{"role": "user", "content": "%s"}' % BIG.encode()] * 2)
        assert len(files(folder)) == 1
        copy = await conv.copy(id="d")
        assert len(files(folder)) == 2
        await et.erase(conversation="c")
        assert await texts(copy) == [BIG, BIG]
        assert (await et.verify()).ok


async def test_an_erase_deletes_the_file_unless_another_message_has_it_too(
    durable_url: str, blobs: str, folder: Path, tmp_path: Path
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([b'{"content": "%s", "role": "user"}' % BIG.encode()] * 2)
        first, second = [message.id async for message in conv.messages()]
        await et.erase(conversation="c", message=first)
        assert len(files(folder)) == 1
        assert [message.id async for message in conv.messages()] == [second]
        report = await et.erase(conversation="c", message=second)
        assert report.reached["payloads"] == 1
        assert files(folder) == []
        assert list(await et.search("zirconium")) == []
        assert (await et.verify()).ok
    assert not holds(tmp_path, b"zirconium")


async def test_without_the_blob_store_one_is_told_what_to_set(durable_url: str, blobs: str) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        await talk(et)
    async with everthread.open(durable_url) as et:
        conv = await et.conversations.get("c")
        with pytest.raises(StoreError, match="EVERTHREAD_BLOBS"):
            await texts(conv)
        assert [receipt.new for receipt in await conv.append([says("more")])] == [True]


@pytest.mark.parametrize("how", ["missing", "damaged"])
async def test_a_missing_or_damaged_blob_is_named(durable_url: str, blobs: str, folder: Path, how: str) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await talk(et)
        (file,) = files(folder)
        name = f"{file.parent.name}/{file.name}"
        if how == "missing":
            file.unlink()
        else:
            file.write_bytes(b'{"role": "user", "content": "forged"}')
        (problem,) = (await et.verify()).problems
        assert (problem.kind, problem.seq) == ("blob", 2)
        assert name in problem.detail
        found = await et.check_blobs()
        assert not found.ok
        assert list(found.missing if how == "missing" else found.damaged) == [name]
        if how == "missing":
            with pytest.raises(StoreDamaged):
                await texts(conv)
            with pytest.raises(StoreDamaged):
                await conv.copy(id="d")


async def test_what_is_erased_after_its_blob_is_gone_leaves_no_word_behind(
    durable_url: str, blobs: str, folder: Path
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        await talk(et)
        assert len(await et.search("zirconium")) == 1
        files(folder)[0].unlink()
        await et.erase(conversation="c", message="big")
        assert list(await et.search("zirconium")) == []
        assert len(await et.search("small")) == 2
        assert (await et.verify()).ok


async def test_a_sweep_takes_what_is_old_and_unused_only(durable_url: str, blobs: str, folder: Path) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        await talk(et)
        (used,) = files(folder)
        old, young = (used.with_name(letter * 64) for letter in "ab")
        for file in (old, young):
            file.write_bytes(b"left by a crash")
        for file in (old, used):
            os.utime(file, (1, 1))
        assert len((await et.check_blobs()).unused) == 2
        assert [one.size_bytes for one in await et.sweep_blobs(dry_run=True)] == [15]
        assert old.exists()
        await et.sweep_blobs()
        assert (old.exists(), young.exists(), used.exists()) == (False, True, True)
        await et.sweep_blobs(older_than=timedelta(0))
        assert files(folder) == [used]


@pytest.fixture
def stops_at() -> Iterator[list[str]]:
    """Fail points at which the flow stops, as if the process had ended there."""
    points: list[str] = []

    def trap(name: str) -> None:
        if name in points:
            raise StoreError(f"stopped at {name}")

    failpoints.arm(trap)
    yield points
    failpoints.arm(None)


async def test_an_erase_that_was_cut_short_is_finished_by_the_next_opening(
    durable_url: str, blobs: str, folder: Path, stops_at: list[str]
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        await talk(et)
        stops_at.append("blob.deleted")
        with suppress(StoreError):
            await et.erase(conversation="c", message="big")
        stops_at.clear()
    async with everthread.open(durable_url, blobs=blobs) as et:
        assert files(folder) == []
        assert (await et.verify()).ok


async def test_an_append_that_fails_after_its_blob_leaves_only_that(
    durable_url: str, blobs: str, folder: Path, stops_at: list[str]
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        conv = await et.conversations.create(id="c")
        stops_at.append("append.entries_written")
        with pytest.raises(StoreError):
            await conv.append([says(BIG, id="big")])
        stops_at.clear()
        assert await texts(conv) == []
        assert len((await et.check_blobs()).unused) == 1
        await conv.append([says(BIG, id="big")])
        found = await et.check_blobs()
        assert (found.ok, found.referred, list(found.unused)) == (True, 1, [])


async def test_any_file_system_of_fsspec_will_do(durable_url: str, tmp_path: Path) -> None:
    for address in (f"local://{tmp_path}/far", "memory://everthread-test"):
        async with everthread.open(durable_url, blobs=address) as et:
            conv = await et.conversations.create()
            (receipt,) = await conv.append([says(BIG)])
            assert await texts(conv) == [BIG]
            assert (await et.check_blobs()).referred >= 1
            await et.erase(conversation=conv.id)
            assert list((await et.check_blobs()).unused) == []
            assert receipt.new


@pytest.mark.parametrize("address", ["blobs", "file://", "file://host/folder", "file:///", 7])
async def test_an_address_that_is_none_is_refused(address: object) -> None:
    with pytest.raises(Invalid, match="blobs"):
        everthread.open("memory://", blobs=address)  # type: ignore[arg-type]


async def test_a_blob_is_readable_by_its_owner_only_and_never_half_there(
    durable_url: str, blobs: str, folder: Path
) -> None:
    async with everthread.open(durable_url, blobs=blobs) as et:
        await talk(et)
        (file,) = files(folder)
        assert file.stat().st_mode & 0o077 == 0
        assert not [path for path in files(folder) if path.name.startswith(".")]

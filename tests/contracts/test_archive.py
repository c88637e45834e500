"""I11: what is exported is the same before and after a compaction, a restart, and an import into an empty store."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
import zstandard

import everthread
from everthread import Conflict, Conversation, Everthread, Invalid
from everthread.history.export import Format
from everthread.testing import ManualClock
from tests.contracts.views import tell


async def filled(et: Everthread) -> Conversation:
    """A conversation with everything that a log can hold, and a subagent's below it."""
    conv = await et.conversations.create(id="c", title="旅行", metadata={"k": [1, None]})
    await conv.append({"role": "user", "content": "first", "id": "m1"})
    await tell(conv, 14)
    await conv.append({"role": "user", "content": "revised", "id": "m1"})
    await conv.append(
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "t", "name": "look", "args": {"at": "昆明"}}]},
            {"role": "tool", "tool_call_id": "t", "content": "x" * 70_000},
            {"role": "user", "content": "\ud800 \x00 `` <b>", "id": "odd", "n": 10**30},
        ]
    )
    await conv.edit("m1", {"role": "user", "content": "otherwise"})
    await conv.set_active("main")
    await conv.fork(3)
    await conv.pin("odd")
    await conv.append({"role": "user", "content": "to be deleted", "id": "gone"})
    await conv.delete_message("gone")
    await conv.append({"role": "user", "content": "to be erased", "id": "erased"})
    await et.erase(conversation="c", message="erased")
    child = await et.conversations.create(id="sub", parent_id="c")
    await child.append({"role": "user", "content": "below"})
    await child.delete()
    return await conv.refresh()


async def archive(et: Everthread, owner: str = "local") -> bytes:
    return b"".join([piece async for piece in et.export_archive(owner=owner)])


async def exports(et: Everthread) -> dict[str, bytes]:
    conv = await et.conversations.get("c")
    shown = {name: b"".join([piece async for piece in conv.export(name)]) for name in get_args(Format)}
    return {**shown, "archive": await archive(et)}


async def pieces(whole: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]


async def test_i11_exports_are_the_same_after_a_compaction_and_an_import(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await filled(et)
        before = await exports(et)
        assert (await conv.compact()).compacted
        assert await exports(et) == before
    async with everthread.open("memory://", worker=False) as elsewhere:
        await elsewhere.import_archive(pieces(before["archive"]))
        assert await exports(elsewhere) == before


async def test_i11_an_import_into_an_empty_store_gives_the_same_archive(et: Everthread) -> None:
    async with everthread.open("memory://", worker=False, clock=ManualClock()) as original:
        await filled(original)
        before = await exports(original)
    report = await et.import_archive(pieces(before["archive"]))
    assert set(report.imported) == {"c", "sub"}
    assert await exports(et) == before
    assert (await et.verify()).ok
    assert [hit.id for hit in await et.search("revised")] == ["m1"]
    assert [one.id async for one in (await et.conversations.get("c")).children()] == []
    assert (await et.conversations.get("sub")).is_deleted
    assert (await et.conversations.get("sub")).parent_id == "c"


async def test_i11_exports_are_the_same_after_a_restart(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        await filled(et)
        before = await exports(et)
    async with everthread.open(durable_url, worker=False) as et:
        assert await exports(et) == before


async def test_what_is_here_already_is_left_and_what_differs_is_refused(et: Everthread) -> None:
    conv = await filled(et)
    whole = await archive(et)
    again = await et.import_archive(pieces(whole))
    assert (set(again.skipped), again.imported) == ({"c", "sub"}, ())
    await conv.append({"role": "user", "content": "more"})
    with pytest.raises(Conflict):
        await et.import_archive(pieces(whole))
    assert (await et.verify()).ok


async def test_an_archive_can_be_read_in_for_another_owner(et: Everthread) -> None:
    await filled(et)
    await et.import_archive(pieces(await archive(et)), owner="bob")
    assert (await et.verify()).ok
    assert entries_in(await archive(et)) == entries_in(await archive(et, "bob"))


def entries_in(whole: bytes) -> list[bytes]:
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(whole)
    return [line for line in plain.splitlines() if line.startswith(b'{"entry"')]


async def test_an_import_that_was_cut_short_can_be_begun_again(et: Everthread) -> None:
    async with everthread.open("memory://", worker=False) as original:
        await filled(original)
        whole = await archive(original)
    with pytest.raises(Invalid, match="incomplete"):
        await et.import_archive(pieces(whole[: len(whole) - 20]))
    await et.import_archive(pieces(whole))
    assert await archive(et) == whole


def damaged(whole: bytes, old: bytes, new: bytes) -> bytes:
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(whole)
    assert old in plain
    return zstandard.ZstdCompressor().compress(plain.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"first", b"f1rst"),
        (b'"seq":2,', b'"seq":3,'),
        (b'"seq":2,', b'"seq":"2",'),
        (b'"parent_seq":1,', b'"parent_seq":7,'),
        (b'"depth":2,', b'"depth":5,'),
        (b'"kind":0,', b'"kind":9,'),
        (b'{"everthread":"archive"', b'{"everthread":"other"'),
        (b'"version":1', b'"version":2'),
        (b'"id":"c"', b'"id":""'),
        (b'{"manifest"', b'{"something"'),
        (b'{"entry"', b'["entry"'),
    ],
)
async def test_a_changed_archive_is_refused_and_writes_nothing_of_the_conversation(old: bytes, new: bytes) -> None:
    async with everthread.open("memory://", worker=False) as original:
        await filled(original)
        whole = await archive(original)
    async with everthread.open("memory://", worker=False) as et:
        with pytest.raises(Invalid):
            await et.import_archive(pieces(damaged(whole, old, new)))
        assert (await et.verify()).ok


@pytest.mark.parametrize("whole", [b"", b"no archive", zstandard.ZstdCompressor().compress(b"\n"), b"\x28\xb5\x2f\xfd"])
async def test_what_is_no_archive_is_refused(whole: bytes) -> None:
    async with everthread.open("memory://", worker=False) as et:
        with pytest.raises(Invalid):
            await et.import_archive(pieces(whole))


async def test_an_archive_that_unpacks_to_far_more_is_given_up_early() -> None:
    bomb = zstandard.ZstdCompressor(level=1).compress(b"x" * (300 * 1024 * 1024))
    async with everthread.open("memory://", worker=False) as et:
        with pytest.raises(Invalid, match="too large when decompressed"):
            await et.import_archive(pieces(bomb, 1024))


async def test_nothing_in_a_message_is_obeyed_by_a_page_or_ends_a_fence() -> None:
    clock = ManualClock()
    async with everthread.open("memory://", worker=False, clock=clock) as et:
        conv = await et.conversations.create(title="<script>alert(1)</script>\n# x")
        written = "<script>alert(1)</script>\n![x](https://evil.example/p.png) **bold**\n`<b>` and \\`<i>`\n"
        written += "`<b>` and more\n| `a | <u>` |\n```html\n<p>"
        await conv.append({"role": "user", "content": written})
        calls = [{"id": "t", "name": "f", "args": {"a": "```"}}]
        await conv.append({"role": "assistant", "content": "", "tool_calls": calls})
        clock.move(timedelta(days=1))
        page = b"".join([piece async for piece in conv.export("html")]).decode()
        text = b"".join([piece async for piece in conv.export("md")]).decode()
        shown = json.loads(b"".join([piece async for piece in conv.export("json")]))
    assert "<script>" not in page
    assert text.startswith("# &lt;script>alert(1)&lt;/script> # x\n")
    assert text.count("<script") == text.count("![") == text.count("<i>") == text.count("<u>") == 0
    assert "**bold**\n" in text
    assert "`<b>` and more" in text
    assert "```html\n<p>\n```\n" in text
    assert "````\n" in text
    assert [one["role"] for one in shown["messages"]] == ["user", "assistant"]


async def test_others_get_their_turn_while_an_archive_is_read(et: Everthread) -> None:
    """Counted in turns of the event loop: of an archive that is cut off, so that nothing else gives turns."""
    conv = await et.conversations.create(id="long")
    words = "the same words " * 60
    await conv.append([{"role": "user", "content": f"message {number} {words}"} for number in range(1_000)])
    whole, turns = await archive(et), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(others())
    with pytest.raises(Invalid, match="incomplete"):
        await et.import_archive(pieces(whole[:-20], len(whole)), owner="ann")
    ticking.cancel()
    assert turns > len(words) * 1_000 // 131_072


async def test_an_archive_is_read_from_whatever_holds_it(et: Everthread, tmp_path: Path) -> None:
    await (await et.conversations.create()).append({"role": "user", "content": "x"})
    whole = await archive(et)
    path = tmp_path / "a.archive"
    path.write_bytes(whole)
    with path.open("rb") as file:
        given: list[Any] = [whole, bytearray(whole), path, str(path), file, io.BytesIO(whole), pieces(whole)]
        for number, one in enumerate(given):
            report = await et.import_archive(one, owner=f"owner-{number}")
            assert len(report.imported) == 1
    wrongs: list[Any] = [5, [whole], io.StringIO("text"), None]
    for wrong in wrongs:
        with pytest.raises(Invalid, match=r"pieces: must be .*bytes.*path.*file"):
            await et.import_archive(wrong)
    with pytest.raises(Invalid, match="cannot be read: No such file"):
        await et.import_archive(tmp_path / "nowhere")

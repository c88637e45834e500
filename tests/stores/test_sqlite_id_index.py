"""Ids on SQLite are indexed many at once; until then, and while several write or a write fails, each is known."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import everthread
from everthread import Conflict, Conversation
from everthread.adapters.stores.sqlite import id_index, log
from everthread.adapters.stores.sqlite.engine import Engine
from everthread.core.nouns import Ref
from everthread.history import ingest, intents


@pytest.fixture(autouse=True)
def few_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "MOST_PENDING", 8)
    monkeypatch.setattr(id_index, "_MOST_PENDING_WHEN_COLD", 5)
    monkeypatch.setattr(id_index, "_MOST_IDS_OF_A_LOG", 10)


def says(*ids: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"said as {id}", "id": id} for id in ids]


def numbered(first: int, last: int) -> list[str]:
    return [f"m{number}" for number in range(first, last)]


async def seqs(conversation: Conversation, ids: Sequence[str]) -> list[int]:
    """Where a retry finds them: in the writer's memory, or in the index."""
    receipts = await conversation.append(says(*ids))
    assert not any(receipt.new for receipt in receipts)
    return [receipt.seq for receipt in receipts]


def indexed(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM entry_ids").fetchone()[0]
        return count


@pytest.mark.parametrize("batch", [1, 3, 7, 30])
async def test_each_id_is_known_whether_indexed_or_not(tmp_path: Path, batch: int) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        ids = numbered(0, 30)
        for start in range(0, 30, batch):
            await conv.append(says(*ids[start : start + batch]))
            assert [(await conv.message(id)).seq for id in ids[: start + batch]] == [*range(1, 31)][: start + batch]
        assert await seqs(conv, ids) == [*range(1, 31)]
        assert indexed(tmp_path / "et.db") >= 30 - 8


async def test_a_revision_is_found_after_its_message_was_indexed(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(says(*numbered(0, 20)))
        (receipt,) = await conv.append([{"role": "user", "content": "said otherwise", "id": "m3"}])
        assert receipt.revision == 2
        assert (await conv.message("m3")).text == "said otherwise"
        assert await seqs(conv, ["m4"]) == [5]


async def test_of_a_short_log_all_ids_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "_MOST_IDS_OF_A_LOG", 100)
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for number in range(30):
            await conv.append(says(f"m{number}"))
        assert indexed(tmp_path / "et.db") == 24
        with closing(sqlite3.connect(tmp_path / "et.db")) as connection, connection:
            connection.execute("DELETE FROM entry_ids")
        assert await seqs(conv, numbered(0, 30)) == [*range(1, 31)]


async def test_of_a_long_log_new_ids_are_seldom_looked_for_once_the_filter_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_index, "_FILTER_STEP", 5)
    looked: list[int] = []
    find = id_index._indexed_seqs

    def noted(connection: sqlite3.Connection, number: int, hashes: Sequence[int]) -> Iterator[int]:
        looked.append(len(hashes))
        return find(connection, number, hashes)

    monkeypatch.setattr(id_index, "_indexed_seqs", noted)
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(says(*numbered(0, 20)))
        for number in range(20, 40):
            await conv.append(says(f"m{number}"))
        assert looked[:3] == [1, 1, 1]
        assert looked[-10:] == [0] * 10
        looked.clear()
        assert await seqs(conv, numbered(0, 40)) == [*range(1, 41)]
        assert looked[0] >= 32
        monkeypatch.setattr(id_index, "_MOST_IDS", 0)
        other = await et.conversations.create()
        for number in range(3):  # where another log is written to, the filter is forgotten
            await other.append(says(f"other {number}"))
        looked.clear()
        await conv.append(says("one more"))
        assert looked == [1]


async def test_what_was_rolled_back_is_not_remembered(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(says(*numbered(0, 4)))
        engine = Engine.of(tmp_path / "et.db")
        try:
            with pytest.raises(Conflict):
                await engine.write(lambda c: _write_and_fail(c, engine, conv))
        finally:
            engine.release()
        receipts = await conv.append(says(*numbered(4, 12)))
        assert [(receipt.seq, receipt.new) for receipt in receipts] == [(seq, True) for seq in range(5, 13)]
        assert await seqs(conv, numbered(0, 12)) == [*range(1, 13)]


def _write_and_fail(connection: sqlite3.Connection, engine: Engine, conv: Conversation) -> None:
    """As a write that fails after its entries stood there, and after the pending ids were written with them."""
    prepared = ingest.prepare_all(says(*numbered(4, 12)))
    log.write(connection, Ref(conv.owner, conv.id), intents.Append(messages=prepared), 1, engine.id_index)
    raise Conflict("on purpose")


async def test_what_another_process_writes_and_files_is_known(tmp_path: Path) -> None:
    path = tmp_path / "et.db"
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        conv = await et.conversations.create(id="shared")
        await conv.append(says(*numbered(0, 3)))
        await _in_another_process(path, 3, 6)
        assert await seqs(conv, numbered(0, 6)) == [*range(1, 7)]
        await _in_another_process(path, 6, 30)
        assert await seqs(conv, numbered(0, 30)) == [*range(1, 31)]
        await conv.append(says(*numbered(30, 60)))
        await _in_another_process(path, 0, 60)
        assert len([message async for message in conv.messages()]) == 60


async def _in_another_process(path: Path, first: int, last: int) -> None:
    script = f"""
import asyncio, everthread
from everthread.adapters.stores.sqlite import id_index, log
id_index.MOST_PENDING, id_index._MOST_PENDING_WHEN_COLD, id_index._MOST_IDS_OF_A_LOG = 8, 5, 10
async def main():
    async with everthread.open("sqlite:///{path}", worker=False) as et:
        conv = await et.conversations.get("shared")
        for number in range({first}, {last}):
            await conv.append([{{"role": "user", "content": f"said as m{{number}}", "id": f"m{{number}}"}}])
asyncio.run(main())
"""
    done = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await done.wait() == 0


async def test_ids_with_one_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "_hash", lambda id: 7)
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(says(*numbered(0, 20)))
        assert [receipt.new for receipt in await conv.append(says("m3", "new", "m19"))] == [False, True, False]
        assert (await conv.message("m7")).seq == 8


async def test_logs_beyond_what_is_remembered_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_index, "_MOST_IDS", 6)
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        talks = [await et.conversations.create() for _ in range(4)]
        for number in range(12):
            for conv in talks:
                await conv.append(says(f"m{number}"))
        for conv in talks:
            assert await seqs(conv, numbered(0, 12)) == [*range(1, 13)]

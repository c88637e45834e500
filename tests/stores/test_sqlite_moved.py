"""A database whose file loses its name, or is migrated, while it is open: nothing is acknowledged that is lost."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import everthread
from everthread import Conversation
from everthread.core.errors import StoreError

ADDED = {"role": "user", "content": "hello"}


def remove(file: Path) -> None:
    for name in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        name.unlink()


def move(file: Path) -> None:
    file.rename(file.with_name("elsewhere.db"))


def replace(file: Path) -> None:
    file.with_name("copy.db").write_bytes(file.read_bytes())
    os.replace(file.with_name("copy.db"), file)


def remove_log(file: Path) -> None:
    Path(f"{file}-wal").unlink()


async def refused(conv: Conversation) -> str:
    """What is said once it has been noticed."""
    async with asyncio.timeout(20):
        while True:
            try:
                await conv.append(ADDED)
            except StoreError as problem:
                return str(problem)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("lose", [remove, move, replace, remove_log], ids=lambda lose: lose.__name__)
async def test_nothing_is_acknowledged_once_the_file_has_lost_its_name(
    lose: Callable[[Path], None], tmp_path: Path
) -> None:
    file = tmp_path / "t.db"
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(ADDED)
        lose(file)
        assert "moved, removed or replaced" in await refused(conv)
        with pytest.raises(StoreError, match="moved, removed or replaced"):
            await et.conversations.get(conv.id)


async def test_a_file_that_is_put_back_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        conv = await et.conversations.create()
        move(file)
        await refused(conv)
        file.with_name("elsewhere.db").rename(file)
        (receipt,) = await conv.append(ADDED)
        assert (await et.verify()).ok
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        assert (await (await et.conversations.get(conv.id)).message(receipt.id)).text == "hello"


async def test_a_process_that_is_older_than_the_tables_by_now_writes_no_more(tmp_path: Path) -> None:
    """As when the package is upgraded beside a running server, and a command opens the database."""
    file = tmp_path / "t.db"
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(ADDED)
        with closing(sqlite3.connect(file)) as newer:
            newer.execute("UPDATE schema_version SET version = version + 1")
            newer.commit()
        assert "upgrade everthread" in await refused(conv)

"""On SQLite the tools that messages call are counted when the index reaches them: each once, whatever happens to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import everthread
from everthread.adapters.stores.schema import index_anew

CALLING = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "find", "args": {"what": "a"}}]}


async def _habits(path: Path) -> list[tuple[str, int]]:
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        return [(one.name, one.uses) for one in await et.memories.habits("local")]


async def _append(path: Path, conversation: str) -> None:
    async with everthread.open(f"sqlite:///{path}", worker=False) as et:
        await (await et.conversations.ensure(conversation)).append([CALLING])


async def test_an_index_made_anew_counts_no_use_twice(tmp_path: Path) -> None:
    path = tmp_path / "et.db"
    await _append(path, "counted")
    assert await _habits(path) == [("find", 1)]
    await _append(path, "counted")
    await _append(path, "waiting")
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in index_anew():
            connection.execute(statement)
    assert await _habits(path) == [("find", 3)], "one of before, and the two that waited"

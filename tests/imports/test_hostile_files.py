"""Files as crashes, editors and other programs leave them: each costs at most what is broken in it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

import everthread
from everthread import Everthread
from everthread.core.imports import NOT_IN_FILE
from everthread.core.nouns import Ref
from everthread.imports import line_file
from everthread.imports.importer import Importer
from everthread.imports.write import ImportCounts
from tests.imports.agent_files import claude_file, codex_file
from tests.imports.more_agent_files import GOOSE_DATABASE, LINE_FILES, ZED, AgentFile

LINES = tuple(one for one in LINE_FILES if one.agent != "aider")
every_line_format = pytest.mark.parametrize("put", [claude_file, codex_file, *(one.put for one in LINES)])
Put = Callable[[Path], Path]


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The store plays no part in what is read."""
    async with everthread.open("memory://", worker=False) as et:
        yield et


async def imported(et: Everthread, path: Path) -> ImportCounts:
    return await Importer(et, "local").import_path(path)


async def ids(et: Everthread) -> set[tuple[str, str]]:
    return {
        (found.id, entry.id)
        for found in await et.conversations.list(limit=100)
        for entry in await et.store.log.scan(Ref("local", found.id), after=0, limit=10_000)
    }


async def on_disk(et: Everthread) -> bytes:
    lines = [
        line
        for found in await et.conversations.list(limit=100)
        for line in await et.store.imports.lines(Ref("local", found.id), after=0, limit=10_000)
        if line.first_byte != NOT_IN_FILE
    ]
    return b"".join(line.line for line in sorted(lines, key=lambda line: line.first_byte))


def rewritten(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    later = os.stat(path).st_mtime_ns + 10_000_000  # the next one is later also where clocks are coarse
    os.utime(path, ns=(later, later))


async def reads_again_as_nothing(et: Everthread, path: Path) -> bool:
    rewritten(path, await asyncio.to_thread(path.read_bytes))
    again = await imported(et, path)
    return (again.messages, again.revised, again.removed) == (0, 0, 0)


@every_line_format
@pytest.mark.parametrize("is_known", [False, True])
async def test_a_byte_order_mark_changes_no_message(put: Put, is_known: bool, et: Everthread, tmp_path: Path) -> None:
    path = put(tmp_path)
    whole = path.read_bytes()
    async with everthread.open("memory://", worker=False) as other:
        await imported(other, path)
        expected = await ids(other)
    if is_known:
        await imported(et, path)
    rewritten(path, b"\xef\xbb\xbf" + whole)
    counts = await imported(et, path)
    assert (counts.removed, counts.problems) == (0, [])
    assert await ids(et) == expected
    assert await on_disk(et) == path.read_bytes()


@every_line_format
@pytest.mark.parametrize("torn", [b'{"type": "user", "message": {"con', b"\x00" * 4096], ids=["half a line", "NULs"])
async def test_what_is_written_behind_half_a_line_is_read(
    torn: bytes, put: Put, et: Everthread, tmp_path: Path
) -> None:
    """The program was killed while it wrote, or the power went; started again, it goes on right behind that."""
    path = put(tmp_path)
    whole = path.read_bytes()
    async with everthread.open("memory://", worker=False) as other:
        await imported(other, path)
        expected = await ids(other)
    place = whole.index(b"\n", len(whole) // 2) + 1
    for content in (whole[:place], whole[:place] + torn, whole[:place] + torn + whole[place:]):
        rewritten(path, content)
        counts = await imported(et, path)
    assert await ids(et) == expected
    assert counts.problem_count == 1
    assert await on_disk(et) == path.read_bytes()
    assert await reads_again_as_nothing(et, path)


async def test_two_objects_on_one_line_are_two_messages_however_they_came(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    lines = path.read_bytes().splitlines()
    rewritten(path, b"\n".join(lines[:-1]))
    await imported(et, path)
    rewritten(path, b"\n".join(lines[:-1]) + lines[-1] + b"\n")
    await imported(et, path)
    assert await on_disk(et) == path.read_bytes()
    assert await reads_again_as_nothing(et, path)
    async with everthread.open("memory://", worker=False) as other:
        counts = await imported(other, path)
        assert await ids(other) == await ids(et)
        assert counts.problems == []


@every_line_format
@pytest.mark.parametrize("type_", [[], {}, ["user"]], ids=["list", "object", "list of one"])
async def test_a_type_that_is_no_text_costs_its_line(type_: object, put: Put, et: Everthread, tmp_path: Path) -> None:
    path = put(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    for place, line in enumerate(lines[1:], start=1):  # by the first one some formats are told
        value = json.loads(line)
        broken = json.dumps({**value, "type": type_, "role": type_}).encode() + b"\n"
        rewritten(path, b"".join([*lines[:place], broken, *lines[place + 1 :]]))
        await imported(et, path)
    rewritten(path, b"".join(lines))
    await imported(et, path)
    async with everthread.open("memory://", worker=False) as other:
        await imported(other, path)
        assert await ids(other) <= await ids(et)


@pytest.mark.parametrize(
    ("one", "change"),
    [
        (ZED, "UPDATE threads SET data_type = 'json', data = 1000000000000000"),
        (ZED, "ALTER TABLE threads RENAME COLUMN id TO name"),
        (GOOSE_DATABASE, "ALTER TABLE sessions RENAME COLUMN id TO handle"),
        (GOOSE_DATABASE, "UPDATE messages SET content_json = '[{\"type\": []}]'"),
    ],
)
async def test_a_database_of_another_shape_is_named_and_read_once_it_is_whole(
    one: AgentFile, change: str, et: Everthread, tmp_path: Path
) -> None:
    path = one.put(tmp_path)
    whole = path.read_bytes()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    counts = await imported(et, path)
    assert counts.problem_count or counts.messages
    backup = tmp_path / "backup.db"
    rewritten(backup, whole)
    backup.replace(path)
    await imported(et, path)
    found = [item async for conv in _all(et) async for item in conv.messages()]
    assert [(item.role, item.text) for item in found if not item.payload.get("is_meta")] == list(one.said)


async def _all(et: Everthread) -> AsyncIterator[everthread.Conversation]:
    for conversation in await et.conversations.list(limit=100):
        yield conversation


async def test_a_line_too_long_to_be_read_costs_no_other(
    et: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_file, "MAX_LINE_BYTES", 3000)
    monkeypatch.setattr(line_file, "_CHUNK", 1000)
    path = claude_file(tmp_path)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + b'{"type":"user","message":{"content":"' + b"x" * 9000)
    first = await imported(et, path)
    assert [problem.partition(": ")[2] for problem in first.problems] == ["is longer than 3,000 bytes; left out"]
    rewritten(path, path.read_bytes() + b'x"}}\n' + b"".join(lines[4:]))
    again = await imported(et, path)
    assert again.removed == 0
    path.write_bytes(whole)
    async with everthread.open("memory://", worker=False) as other:
        assert first.messages + again.messages == (await imported(other, path)).messages
        assert await ids(et) == await ids(other)

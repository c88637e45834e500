"""Sessions without lines, of documents and databases, that go back to an older state and forward again."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everthread
from everthread import Everthread, Message
from everthread.core.entries import Flag, Kind, Mark
from everthread.core.nouns import Ref
from everthread.imports.importer import Importer
from everthread.imports.watch import Watcher, agent_folders
from everthread.imports.write import ImportCounts
from tests.imports.more_agent_files import MILLIS

State = Mapping[str, str]
"""The texts of a session's messages by their ids, in order."""
BEFORE: State = {"m1": "Rename it.", "m2": "Renamed to alpha."}
AFTER: State = {"m1": "Rename it.", "m2": "Renamed to beta.", "m3": "Thanks."}


def _gemini(home: Path, said: State, _changed_at: int) -> Path:
    messages = [
        {"id": id, "type": "gemini" if id == "m2" else "user", "content": text, "timestamp": "2026-03-01T10:00:00Z"}
        for id, text in said.items()
    ]
    path = home / ".gemini" / "tmp" / "p" / "chats" / "session-1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"sessionId": "s", "startTime": "2026-03-01T10:00:00Z", "messages": messages}))
    return path


def _cline(home: Path, said: State, _changed_at: int) -> Path:
    messages = [
        {"id": id, "role": "assistant" if id == "m2" else "user", "content": text, "ts": MILLIS}
        for id, text in said.items()
    ]
    path = home / ".cline" / "data" / "sessions" / "s" / "s.messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"version": 1, "agent": "lead", "sessionId": "s", "messages": messages}))
    return path


def _database(path: Path, tables: str, rows: list[tuple[str, tuple[Any, ...]]]) -> Path:
    """A database as a restored backup gives it: another file in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(tables)
        for statement, values in rows:
            connection.execute(statement, values)
        connection.commit()
    return path


def _opencode(home: Path, said: State, changed_at: int) -> Path:
    rows: list[tuple[str, tuple[Any, ...]]] = [
        ("INSERT INTO session VALUES ('s', '/srv', 'Names', ?, ?)", (MILLIS, MILLIS + changed_at)),
        ("INSERT INTO session VALUES ('other', '/srv', 'Later', ?, ?)", (MILLIS, MILLIS + 10**9)),
    ]
    for number, (id, text) in enumerate(said.items()):
        role = "assistant" if id == "m2" else "user"
        rows.append(("INSERT INTO message VALUES (?, 's', ?, ?)", (id, MILLIS + number, json.dumps({"role": role}))))
        rows.append(("INSERT INTO part VALUES (?, ?, ?)", (f"p{id}", id, json.dumps({"type": "text", "text": text}))))
    tables = """
        CREATE TABLE session (id TEXT PRIMARY KEY, directory TEXT, title TEXT, time_created INTEGER,
            time_updated INTEGER);
        CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
    """
    return _database(home / ".local" / "share" / "opencode" / "opencode.db", tables, rows)


def _goose(home: Path, said: State, changed_at: int) -> Path:
    rows: list[tuple[str, tuple[Any, ...]]] = [
        ("INSERT INTO sessions VALUES ('s', '/srv', 'Names', '2026-03-01', ?)", (MILLIS + changed_at,)),
        ("INSERT INTO sessions VALUES ('other', '/srv', 'Later', '2026-03-01', ?)", (MILLIS + 10**9,)),
    ]
    for id, text in said.items():
        role = "assistant" if id == "m2" else "user"
        content = json.dumps([{"type": "text", "text": text}])
        values = (id, role, content, MILLIS // 1000)
        rows.append(("INSERT INTO messages VALUES (NULL, ?, 's', ?, ?, ?, NULL)", values))
    tables = """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, working_dir TEXT, description TEXT, created_at TEXT,
            updated_at INTEGER);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT,
            created_timestamp INTEGER, metadata_json TEXT);
    """
    return _database(home / ".local" / "share" / "goose" / "sessions" / "sessions.db", tables, rows)


Put = Callable[[Path, State, int], Path]
every_agent = pytest.mark.parametrize(
    ("put", "id"),
    [(_gemini, "gemini-cli:s"), (_cline, "cline:s"), (_opencode, "opencode:s"), (_goose, "goose:s")],
    ids=["gemini-cli", "cline", "opencode", "goose"],
)


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The store plays no part in what is read."""
    async with everthread.open("memory://", worker=False) as et:
        yield et


def watcher(et: Everthread, home: Path) -> Watcher:
    return Watcher(et, "local", agent_folders(home, {}))


async def swept(one: Watcher, path: Path) -> tuple[int, int, int]:
    """How many messages were new, revised and removed since it last looked, after the file was written again."""
    counts, before = one.counts, _numbers(one.counts)
    changed_at = os.stat(path).st_mtime_ns + 10_000_000
    os.utime(path, ns=(changed_at, changed_at))
    async for _ in one.sweep():
        pass
    assert counts.problems == []
    new, revised, removed = (after - was for after, was in zip(_numbers(counts), before, strict=True))
    return new, revised, removed


def _numbers(counts: ImportCounts) -> tuple[int, int, int]:
    return counts.messages, counts.revised, counts.removed


async def shown(et: Everthread, id: str) -> list[Message]:
    conversation = await et.conversations.get(id)
    return [message async for message in conversation.messages()]


async def texts(et: Everthread, id: str) -> list[str]:
    return [message.text for message in await shown(et, id)]


async def removed_ids(et: Everthread, id: str) -> set[str]:
    entries = await et.store.log.scan(Ref("local", id), after=0, limit=1000)
    return {entry.id for entry in entries if entry.flags & Flag.REMOVED}


@every_agent
async def test_a_file_that_goes_back_and_forward_loses_and_doubles_nothing(
    put: Put, id: str, et: Everthread, tmp_path: Path
) -> None:
    one = watcher(et, tmp_path)
    await swept(one, put(tmp_path, BEFORE, 0))
    assert await swept(one, put(tmp_path, AFTER, 1000)) == (1, 1, 0)
    assert await texts(et, id) == list(AFTER.values())
    assert await swept(one, put(tmp_path, BEFORE, 0)) == (0, 1, 1)
    assert await texts(et, id) == ["Rename it.", "Renamed to alpha.", "Thanks."]
    assert await removed_ids(et, id) == {"m3"}
    assert await swept(one, put(tmp_path, AFTER, 1000)) == (0, 1, 0)
    assert await texts(et, id) == list(AFTER.values())
    assert await removed_ids(et, id) == set()
    entries = await et.store.log.scan(Ref("local", id), after=0, limit=1000)
    marks = [entry.change_kind for entry in entries if entry.kind == Kind.MARK]
    assert marks == [Mark.REMOVED, Mark.RETURNED]
    assert await swept(watcher(et, tmp_path), put(tmp_path, AFTER, 1000)) == (0, 0, 0)
    assert (await et.verify()).ok


@every_agent
async def test_a_backup_that_was_restored_while_nobody_watched_is_seen(
    put: Put, id: str, et: Everthread, tmp_path: Path
) -> None:
    await swept(watcher(et, tmp_path), put(tmp_path, AFTER, 1000))
    assert await swept(watcher(et, tmp_path), put(tmp_path, BEFORE, 0)) == (0, 1, 1)
    assert (await texts(et, id))[1] == "Renamed to alpha."


@every_agent
async def test_what_was_removed_is_on_its_branch_where_the_session_went_on_without_it(
    put: Put, id: str, et: Everthread, tmp_path: Path
) -> None:
    one = watcher(et, tmp_path)
    await swept(one, put(tmp_path, BEFORE, 0))
    await swept(one, put(tmp_path, {"m1": "Rename it."}, 1000))
    assert [message.is_removed for message in await shown(et, id)] == [False, True]
    await swept(one, put(tmp_path, {"m1": "Rename it.", "m3": "To gamma."}, 2000))
    assert await texts(et, id) == ["Rename it.", "To gamma."]
    conversation = await et.conversations.get(id)
    (other,) = [branch async for branch in conversation.branches() if not branch.is_active]
    assert [message.is_removed async for message in conversation.messages(branch=other)] == [False, True]


@every_agent
async def test_a_session_that_goes_back_to_another_branch_is_shown_as_it_is_now(
    put: Put, id: str, et: Everthread, tmp_path: Path
) -> None:
    older = {"m1": "Rename it.", "m2": "Renamed to alpha."}
    newer = {"m1": "Rename it.", "m3": "To gamma.", "m4": "Why?"}
    one, changed_at = watcher(et, tmp_path), 0
    for said in (older, {"m1": "Rename it."}, newer, {"m1": "Rename it."}, older, newer):
        changed_at += 1000
        await swept(one, put(tmp_path, said, changed_at))
        if len(said) > 1:
            assert await texts(et, id) == list(said.values())
    entries = await et.store.log.scan(Ref("local", id), after=0, limit=1000)
    assert len([entry for entry in entries if entry.kind == Kind.MESSAGE]) == 4
    assert (await et.verify()).ok


async def test_an_older_export_beside_a_newer_one_changes_nothing(et: Everthread, tmp_path: Path) -> None:
    newer, older = _cline(tmp_path / "a", AFTER, 0), _cline(tmp_path / "b", BEFORE, 0)
    for path in (newer, older):
        counts = await Importer(et, "local").import_path(path)
    assert (counts.messages, counts.removed) == (0, 0)
    assert (await texts(et, "cline:s"))[2] == "Thanks."
    assert await removed_ids(et, "cline:s") == set()


async def test_a_message_that_cannot_be_read_is_not_taken_for_removed(et: Everthread, tmp_path: Path) -> None:
    one = watcher(et, tmp_path)
    path = _opencode(tmp_path, AFTER, 0)
    await swept(one, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE message SET data = '{' WHERE id = 'm3'")
        connection.commit()
    os.utime(path)
    async for _ in one.sweep():
        pass
    assert one.counts.problem_count == 1
    assert await removed_ids(et, "opencode:s") == set()


async def test_an_answer_that_opencode_goes_on_writing_is_read_to_its_end(et: Everthread, tmp_path: Path) -> None:
    """The row of its session does not change meanwhile, and another session has changed since."""
    one = watcher(et, tmp_path)
    path = _opencode(tmp_path, {"m1": "Count.", "m2": "One"}, 0)
    await swept(one, path)
    with closing(sqlite3.connect(path)) as connection:
        part = json.dumps({"type": "text", "text": "One, two"})
        connection.execute("UPDATE part SET data = ? WHERE message_id = 'm2'", (part,))
        connection.commit()
    assert await swept(one, path) == (0, 1, 0)
    assert await texts(et, "opencode:s") == ["Count.", "One, two"]


async def test_a_session_of_the_future_hides_none_of_today(et: Everthread, tmp_path: Path) -> None:
    """A clock that was wrong once."""
    one = watcher(et, tmp_path)
    await swept(one, _goose(tmp_path, BEFORE, 10**12))
    assert await swept(one, _goose(tmp_path, AFTER, 1000)) == (1, 1, 0)


_STATES = st.dictionaries(st.sampled_from(["m1", "m2", "m3", "m4"]), st.sampled_from("abc"), min_size=1)


@every_agent
@settings(max_examples=20)
@given(states=st.lists(_STATES, min_size=1, max_size=6))
def test_the_log_has_all_that_ever_was_and_shows_what_is(
    put: Put, id: str, states: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def play() -> None:
        home, ever = tmp_path_factory.mktemp("home"), set()
        async with everthread.open("memory://", worker=False) as et:
            one = watcher(et, home)
            for number, state in enumerate(states):
                said = dict(sorted(state.items()))
                ever |= set(said.items())
                await swept(one, path := put(home, said, number))
                assert await swept(one, path) == (0, 0, 0)
                newest, kept = {}, set()
                for entry in await et.store.log.scan(Ref("local", id), after=0, limit=1000):
                    payload = json.loads(entry.raw or b"{}")
                    if "content" in payload:
                        text = everthread.core.payloads.text(payload)
                        newest[entry.id] = text
                        kept.add((entry.id, text))
                assert ever == kept
                assert {name: newest[name] for name in said} == said
                assert await removed_ids(et, id) == newest.keys() - said.keys()

    asyncio.run(play())

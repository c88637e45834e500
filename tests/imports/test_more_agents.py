"""Every agent's sessions come in from where the agent keeps them, whole, once, and without a touch of its files."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everthread
from everthread import Everthread, Message
from everthread.core import payloads
from everthread.core.imports import NOT_IN_FILE, ImportLine
from everthread.core.nouns import Ref
from everthread.imports.follow import Follower
from everthread.imports.importer import Importer
from everthread.imports.line_file import READERS
from everthread.imports.session import BrokenEntry
from everthread.imports.watch import Watcher, agent_folders
from everthread.imports.write import ImportCounts
from tests.imports.agent_files import CWD, as_lines, claude_session
from tests.imports.more_agent_files import AGENT_FILES, AIDER, DEEPSEEK_PACKED, GROK, KIMI, LINE_FILES, ZED, AgentFile


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The store plays no part in what is read."""
    async with everthread.open("memory://", worker=False) as et:
        yield et


def name_of(one: AgentFile) -> str:
    return Path(one.path).name if one.agent in ("deepseek", "goose") else f"{one.agent} {Path(one.path).suffix}"


every_agent = pytest.mark.parametrize("one", AGENT_FILES, ids=name_of)
every_file_of_lines = pytest.mark.parametrize("one", LINE_FILES, ids=name_of)


async def sweep(et: Everthread, home: Path) -> Watcher:
    watcher = Watcher(et, "local", agent_folders(home, {}))
    async for _ in watcher.sweep():
        pass
    return watcher


async def session(et: Everthread, one: AgentFile) -> everthread.Conversation:
    (found,) = [it for it in await et.conversations.list(limit=100) if it.id.startswith(one.id)]
    return found


def said(messages: list[Message]) -> list[tuple[str, str]]:
    return [(it.role, payloads.text(it.payload)) for it in messages if not it.payload.get("is_meta")]


@every_agent
async def test_a_session_is_found_and_said_by_those_who_said_it(one: AgentFile, et: Everthread, tmp_path: Path) -> None:
    one.put(tmp_path)
    watcher = await sweep(et, tmp_path)
    assert watcher.counts.problems == []
    found = await session(et, one)
    messages = [it async for it in found.messages()]
    assert said(messages) == list(one.said)
    assert one.title in ("", found.title)
    assert found.info.metadata["agent"] == one.agent
    assert all(it.said_at is not None and it.said_at.year == 2026 for it in messages)
    if one.agent not in ("hermes", "aider"):  # Hermes knows no folder, and aider's is where its file is
        assert found.info.metadata["cwd"] == CWD
    calls = [json.dumps(call) for it in messages for call in it.payload.get("tool_calls") or ()]
    assert len(calls) == len(one.calls)
    assert all(text in call for text, call in zip(one.calls, calls, strict=True))
    blocks = [block for it in messages if isinstance(it.payload["content"], list) for block in it.payload["content"]]
    thoughts = [block["thinking"] for block in blocks if block.get("type") == "thinking"]
    assert thoughts == ([] if one.thought is None else [one.thought])
    assert one.model in (None, *(it.payload.get("model") for it in messages))
    spent = [it.payload["usage"] for it in messages if it.payload.get("usage")]
    assert sum(usage["input_tokens"] + usage["output_tokens"] for usage in spent) == (one.tokens or 0)


@every_agent
async def test_a_second_look_writes_nothing_and_the_agents_files_are_untouched(
    one: AgentFile, et: Everthread, tmp_path: Path
) -> None:
    one.put(tmp_path)

    def looks() -> dict[str, tuple[str, int]]:
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        return {str(it): (hashlib.sha256(it.read_bytes()).hexdigest(), it.stat().st_mtime_ns) for it in files}

    before = looks()
    first = await sweep(et, tmp_path)
    assert first.counts.messages >= len(one.said)
    for path in before:
        os.utime(path)
    again = await sweep(et, tmp_path)
    counts = again.counts
    assert (counts.messages, counts.revised, counts.removed, counts.problems) == (0, 0, 0, [])
    assert {name: digest for name, (digest, _) in looks().items()} == {name: one for name, (one, _) in before.items()}


class CountingExecutor(ThreadPoolExecutor):
    """What is asked of threads."""

    asked = 0

    def submit(self, *given: Any, **named: Any) -> Future[Any]:
        self.asked += 1
        return super().submit(*given, **named)


async def test_a_look_at_files_that_did_not_change_opens_none_and_is_one_step(et: Everthread, tmp_path: Path) -> None:
    files = 50
    for number in range(files):
        path = tmp_path / ".claude" / "projects" / "p" / f"s{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_lines([{**line, "sessionId": f"s{number}"} for line in claude_session()]))
    watcher = await sweep(et, tmp_path)
    assert watcher.counts.files == files
    asyncio.get_running_loop().set_default_executor(executor := CountingExecutor())
    opened: list[str] = []
    is_looking = True

    def note(event: str, given: tuple[object, ...]) -> None:
        if is_looking and event in ("open", "sqlite3.connect") and str(given[0]).startswith(str(tmp_path)):
            opened.append(str(given[0]))

    sys.addaudithook(note)
    try:
        assert [change async for change in watcher.sweep()] == []
        assert (opened, executor.asked < files // 10) == ([], True)
        with path.open("ab") as file:
            file.write(b"\n")
        opened.clear()
        assert [change async for change in watcher.sweep()] == []
        assert set(opened) == {str(path)}
    finally:
        is_looking = False


@every_agent
async def test_the_format_is_told_by_what_is_in_the_file(one: AgentFile, et: Everthread, tmp_path: Path) -> None:
    path = one.put(tmp_path)
    counts = await Importer(et, "local").import_path(path)
    assert counts.problems == []
    assert (await session(et, one)).info.metadata["agent"] == one.agent


@every_file_of_lines
async def test_the_lines_of_a_file_are_kept_byte_for_byte(one: AgentFile, et: Everthread, tmp_path: Path) -> None:
    path = one.put(tmp_path)
    await sweep(et, tmp_path)
    assert await on_disk(et) == path.read_bytes()


@pytest.mark.parametrize("one", [KIMI, GROK, AIDER], ids=name_of)
async def test_a_message_that_grows_while_it_is_watched_is_one_message(
    one: AgentFile, et: Everthread, tmp_path: Path
) -> None:
    path = one.put(tmp_path)
    whole = path.read_bytes()
    follower = Follower(et, "local", ImportCounts())
    for end in [*range(0, len(whole), 61), len(whole)]:
        path.write_bytes(whole[:end])
        await follower.catch_up(path, one.agent)
    assert said([it async for it in (await session(et, one)).messages()]) == list(one.said)
    assert await on_disk(et) == whole
    assert follower.counts.problem_count == 0


async def test_a_session_of_aider_stays_the_same_in_a_folder_with_another_name(et: Everthread, tmp_path: Path) -> None:
    path = AIDER.put(tmp_path)
    await sweep(et, tmp_path)
    path.parent.rename(tmp_path / "code" / "renamed")
    moved = await sweep(et, tmp_path)
    assert (moved.counts.messages, len(list(await et.conversations.list()))) == (0, 2)
    titles = {it.title for it in await et.conversations.list()}
    assert titles == {"Make the parser faster, please.", "还有吗?"} or "Make the parser" in titles


async def test_a_thread_that_cannot_be_unpacked_costs_no_other(et: Everthread, tmp_path: Path) -> None:
    path = ZED.put(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO threads SELECT 'z0', summary, updated_at, data_type, x'28b52ffd00', "
                           "folder_paths, created_at FROM threads")  # fmt: skip
        connection.commit()
    watcher = await sweep(et, tmp_path)
    assert len(watcher.counts.problems) == 1
    assert "z0" in watcher.counts.problems[0]
    assert said([it async for it in (await session(et, ZED)).messages()]) == list(ZED.said)


async def test_a_torn_frame_waits_until_it_is_whole(et: Everthread, tmp_path: Path) -> None:
    path = DEEPSEEK_PACKED.put(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    first = await sweep(et, tmp_path)
    path.write_bytes(whole)
    await sweep(et, tmp_path)
    assert 0 < first.counts.messages < len(DEEPSEEK_PACKED.said)
    assert said([it async for it in (await session(et, DEEPSEEK_PACKED)).messages()]) == list(DEEPSEEK_PACKED.said)


@pytest.mark.parametrize("format", sorted(set(READERS) - {"aider"}))
@pytest.mark.parametrize("line", [b"{", b"[1]", b'"x"', b"\xff\xfe{}", b"null"])
def test_a_broken_line_is_named_by_every_reader(format: str, line: bytes) -> None:
    with pytest.raises(BrokenEntry):
        READERS[format](Path("a/b/c/d/session.jsonl")).read(line)


def test_what_aider_counts_beyond_all_numbers_is_no_count() -> None:
    reader = READERS["aider"](Path("/w/.aider.chat.history.md"))
    lines = ["# aider chat started at 2026-01-01 10:00:00", "#### Why?", f"> Tokens: {'9' * 400} sent, 2.3k received."]
    said = [message for line in lines for message in reader.read(line.encode() + b"\n")]
    assert said[-1].payload["usage"] == {"input_tokens": 0, "output_tokens": 2300}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("one", LINE_FILES, ids=name_of)
@settings(max_examples=60)
@given(data=st.data())
def test_a_line_of_any_shape_costs_at_most_itself(one: AgentFile, data: st.DataObject) -> None:
    """One value somewhere in a file is another: a reader reads the rest, and whatever it gives can be stored."""
    if one.agent == "aider":
        return
    values = [json.loads(line) for line in one.content.splitlines()]
    at = data.draw(st.integers(0, len(values) - 1))
    _change(values[at], data)
    reader = READERS[one.agent](Path("a/b/c/d/session.jsonl"))
    for value in values:
        try:
            messages = reader.read(json.dumps(value).encode())
        except BrokenEntry:
            continue
        for message in messages:
            assert isinstance(message.payload["id"], str)
            assert isinstance(message.payload["role"], str)


def _change(value: Any, data: st.DataObject) -> None:
    """Put anything in the place of one value within this one."""
    while isinstance(value, dict | list) and value:
        key = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            value[key] = data.draw(JSON)
            return
        value = inner


async def on_disk(et: Everthread) -> bytes:
    """All files as the lines that are kept say they are."""
    lines: list[ImportLine] = []
    for found in await et.conversations.list(limit=100):
        lines += await et.store.imports.lines(Ref("local", found.id), after=0, limit=10_000)
    there = [line for line in lines if line.first_byte != NOT_IN_FILE]
    return b"".join(line.line for line in sorted(there, key=lambda line: line.first_byte))


def _damaged(whole: bytes, kind: int, number: int) -> bytes:
    lines = whole.splitlines(keepends=True)
    place = number % max(len(lines), 1)
    if kind == 0:
        return whole[: number % (len(whole) + 1)]
    if kind == 1:
        return b"".join(lines[:place] + lines[place + 1 :])
    if kind == 2:
        return whole + b"".join(lines[place : place + 1])
    return b"".join([*lines[:place], b"\xff not a line\n", *lines[place:]])


def whole_messages(content: bytes, agent: str, path: Path) -> set[tuple[str, str, str]]:
    """Session, id and line of every message in the whole lines of a file. One that grows has many lines."""
    reader, found = READERS[agent](path), set()
    for line in content.splitlines(keepends=True):
        if line.endswith(b"\n"):
            with suppress(BrokenEntry):
                found |= {(it.session.id, it.payload["id"], it.payload.get("line", "")) for it in reader.read(line)}
    return found


@every_file_of_lines
@settings(max_examples=15)
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5_000)), max_size=5))
def test_every_message_that_was_ever_whole_is_kept_whatever_happens_to_the_file(
    one: AgentFile, steps: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def play() -> None:
        async with everthread.open("memory://", worker=False) as et:
            path = one.put(tmp_path_factory.mktemp("damage"))
            ever: set[tuple[str, str, str]] = set()
            for kind, number in [(0, 10**6 * (len(path.read_bytes()) + 1)), (2, 10**6), *steps]:
                path.write_bytes(_damaged(path.read_bytes(), kind, number))
                await Follower(et, "local", ImportCounts()).catch_up(path, one.agent)
                ever |= whole_messages(path.read_bytes(), one.agent, path)
            kept = set()
            for found in await et.conversations.list(limit=100):
                for entry in await et.store.log.scan(Ref("local", found.id), after=0, limit=10_000):
                    kept.add((found.id, entry.id, json.loads(entry.raw or b"{}").get("line", "")))
            assert ever <= kept
            os.utime(path)
            counts = ImportCounts()
            await Follower(et, "local", counts).catch_up(path, one.agent)
            assert (counts.messages, counts.revised, counts.removed) == (0, 0, 0)
            assert (await et.verify()).ok

    asyncio.run(play())


async def test_a_transcript_without_times_was_said_when_it_was_last_written_to(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / ".cursor" / "projects" / "p" / "agent-transcripts" / "old.jsonl"
    path.parent.mkdir(parents=True)
    lines = as_lines([
        {"role": role, "message": {"content": [{"type": "text", "text": text}]}}
        for role, text in (("user", "Which door?"), ("assistant", "The left one."), ("user", "Sure?"))
    ])  # fmt: skip
    first, second = (lines[: lines.rindex(b'{"role"')], lines)
    path.write_bytes(first)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    counts = ImportCounts()
    await Follower(et, "local", counts).catch_up(path, "cursor-cli")
    path.write_bytes(second.replace(b"\n", b" \n", 1))  # a rewritten file is read again
    os.utime(path, (1_700_000_060, 1_700_000_060))
    await Follower(et, "local", counts).catch_up(path, "cursor-cli")
    assert (counts.messages, counts.revised) == (3, 0)
    conversation = await et.conversations.get("cursor-cli:old")
    times = [message.said_at async for message in conversation.messages()]
    assert [time.timestamp() for time in times if time is not None] == [1_700_000_000, 1_700_000_000, 1_700_000_060]
    assert conversation.info.created_at.timestamp() == 1_700_000_000

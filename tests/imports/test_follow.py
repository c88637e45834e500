"""Files that are followed: everything that was ever whole on disk is in the log, once, whatever happens to the file."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everthread
from everthread import Everthread
from everthread.core.entries import Mark
from everthread.core.imports import NOT_IN_FILE
from everthread.core.nouns import Ref
from everthread.imports.follow import Follower
from everthread.imports.write import ImportCounts
from tests.forkserver import ForkServer
from tests.imports.agent_files import (
    SESSION,
    as_lines,
    claude_compacted,
    claude_file,
    claude_line,
    claude_session,
    claude_subagent_file,
    codex_file,
    named,
)

ID = f"claude-code:{SESSION}"
REF = Ref("local", ID)


def follower(et: Everthread) -> Follower:
    return Follower(et, "local", ImportCounts())


async def ids(et: Everthread, id: str = ID) -> list[str]:
    """Every message of every branch."""
    conversation = await et.conversations.get(id)
    found = {}
    async for branch in conversation.branches():
        async for message in conversation.messages(branch=branch):
            found[message.seq] = message.id
    return [found[seq] for seq in sorted(found)]


async def on_disk(et: Everthread, *conversations: str) -> bytes:
    """The file as the lines that are kept say it is."""
    lines = [
        line
        for id in conversations or [ID]
        for line in await et.store.imports.lines(Ref("local", id), after=0, limit=10_000)
    ]
    return b"".join(
        line.line for line in sorted(lines, key=lambda line: line.first_byte) if line.first_byte != NOT_IN_FILE
    )


async def test_a_session_is_read_once_and_its_bytes_are_kept(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path, claude_compacted())
    first = follower(et)
    assert await first.catch_up(path, "claude-code")
    assert first.counts.messages == 14
    assert await on_disk(et) == path.read_bytes()
    again = follower(et)
    assert not await again.catch_up(path, "claude-code")
    os.utime(path)
    await again.catch_up(path, "claude-code")
    assert (again.counts.messages, again.counts.revised, again.counts.removed) == (0, 0, 0)
    info = (await et.conversations.get(ID)).info
    assert (info.title, info.metadata["cwd"]) == ("Why does the login test fail?", "/srv/ada/project")


async def test_a_file_that_grows_byte_by_byte_gives_each_message_once(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(b"")
    one = follower(et)
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        await one.catch_up(path, "claude-code")
    path.write_bytes(whole)
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 11
    assert one.counts.messages == 11
    assert one.counts.problem_count == 0
    assert await on_disk(et) == whole


async def test_a_file_that_grew_without_a_later_time_is_read_on(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    whole = path.read_bytes()
    for end in (whole.index(b"Then fix it.") - 400, len(whole)):
        path.write_bytes(whole[: whole.index(b"\n", end - 1) + 1])
        os.utime(path, (1_700_000_000, 1_700_000_000))  # as on a disk that knows times to two seconds
        await follower(et).catch_up(path, "claude-code")
    assert len(await ids(et)) == 11
    os.utime(path, (1_600_000_000, 1_600_000_000))
    path.write_bytes(whole + as_lines([claude_line("u9", "a6", "user", "The clock went back.", 1)]))
    os.utime(path, (1_600_000_000, 1_600_000_000))
    await follower(et).catch_up(path, "claude-code")
    assert len(await ids(et)) == 12


async def test_a_last_line_without_its_end_waits_until_it_is_whole(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    whole = path.read_bytes()
    cut = whole.index(b"Then fix it.")
    path.write_bytes(whole[:cut])
    one = follower(et)
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 7
    path.write_bytes(whole)
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 11


async def test_what_a_rewrite_removes_stays_with_a_mark(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    before = await ids(et)
    kept = [value for value in claude_session() if value.get("uuid") not in (named("u1"), named("a1"))]
    path.write_bytes(as_lines(kept))
    await one.catch_up(path, "claude-code")
    assert await ids(et) == before
    assert one.counts.removed == 2
    marks = [entry for entry in await et.store.log.framework_entries(REF) if entry.change_kind == Mark.REMOVED]
    assert {entry.id for entry in marks} == {named("u1"), named("a1")}
    assert await on_disk(et) == path.read_bytes()
    os.utime(path)
    await follower(et).catch_up(path, "claude-code")
    assert len(await et.store.log.framework_entries(REF)) == 2


async def test_a_file_that_is_cut_short_loses_nothing_here(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    path.write_bytes(as_lines(claude_session()[:4]))
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 11
    assert one.counts.removed == 8
    path.write_bytes(as_lines([*claude_session()[:4], claude_line("n", "a2", "user", "A new end.", 40)]))
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 12


async def test_a_line_that_changed_in_place_is_a_revision(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Then fix it.", b"Then fix me."))
    await one.catch_up(path, "claude-code")
    message = await (await et.conversations.get(ID)).message(named("u2"))
    assert (message.text, message.revision) == ("Then fix me.", 2)
    assert one.counts.removed == 0
    assert await on_disk(et) == path.read_bytes()
    kept = [line.line for line in await et.store.imports.lines(REF, after=0, limit=100)]
    assert sum(b"Then fix it." in line for line in kept if b'"uuid"' in line) >= 1


async def test_a_change_that_was_taken_back_is_shown_as_taken_back(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    before = path.read_bytes()
    for content in (before.replace(b"Then fix it.", b"Then fix me."), before):
        path.write_bytes(content)
        await one.catch_up(path, "claude-code")
    message = await (await et.conversations.get(ID)).message(named("u2"))
    assert (message.text, message.revision) == ("Then fix it.", 3)
    os.utime(path, (1, 1))
    again = follower(et)
    await again.catch_up(path, "claude-code")
    assert again.counts.revised == 0
    assert (await et.verify()).ok


async def test_a_file_with_two_versions_of_a_message_shows_the_last_however_often_it_is_rewritten(
    et: Everthread, tmp_path: Path
) -> None:
    changed = claude_line("u1", None, "user", "Why does the second login test fail?", 30)
    lines = [*claude_session(), changed]
    one = follower(et)
    path = claude_file(tmp_path, lines)
    await one.catch_up(path, "claude-code")
    for texts in (lines[1:], lines):
        path.write_bytes(as_lines(texts))
        await one.catch_up(path, "claude-code")
    message = await (await et.conversations.get(ID)).message(named("u1"))
    assert (message.text, message.revision) == ("Why does the second login test fail?", 2)
    assert one.counts.revised == 1


async def test_lines_that_come_back_lose_the_mark_and_can_be_removed_again(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)

    async def removed(lines: list[dict[str, Any]]) -> set[str]:
        path.write_bytes(as_lines(lines))
        await one.catch_up(path, "claude-code")
        assert (await et.verify()).ok
        conversation = await et.conversations.get(ID)
        return {message.id async for message in conversation.messages() if message.is_removed}

    whole, short = claude_session(), [one for one in claude_session() if one.get("uuid") != named("u2")]
    assert await removed(whole) == set()
    assert await removed(short) == {named("u2")}
    assert await removed(whole) == set()
    assert await removed(short) == {named("u2")}
    assert await removed(whole[:4]) == {named(name) for name in ("a3", "r1", "r2", "a4", "u2", "a5", "r3", "a6")}
    assert await removed(whole) == set()


async def test_a_deleted_file_is_recorded_and_its_messages_stay(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    path.unlink()
    assert await one.catch_up(path, "claude-code")
    (source,) = await et.store.imports.sources("local")
    assert source.inode is None
    assert len(await ids(et)) == 11
    claude_file(tmp_path)
    await one.catch_up(path, "claude-code")
    assert (len(await ids(et)), one.counts.messages) == (11, 11)


async def test_a_subagent_is_a_child_also_when_its_file_comes_first(et: Everthread, tmp_path: Path) -> None:
    one = follower(et)
    await one.catch_up(claude_subagent_file(tmp_path), "claude-code")
    await one.catch_up(claude_file(tmp_path), "claude-code")
    child = await et.conversations.get(f"{ID}:agent-abc")
    assert child.parent_id == ID
    assert (await et.conversations.get(ID)).title == "Why does the login test fail?"
    assert len(await ids(et)) == 11


async def test_a_rewound_prompt_is_a_branch_and_the_newest_branch_is_active(et: Everthread, tmp_path: Path) -> None:
    lines = [
        *claude_session(),
        claude_line("u9", "a4", "user", "Explain.", 30),
        claude_line("a9", "u9", "assistant", "So.", 31),
    ]
    await follower(et).catch_up(claude_file(tmp_path, lines), "claude-code")
    conversation = await et.conversations.get(ID)
    shown = [message.id async for message in conversation.messages()]
    assert shown[-3:] == [named("a4"), named("u9"), named("a9")]
    assert len(await ids(et)) == 13
    assert len([branch async for branch in conversation.branches()]) == 2


async def test_a_file_that_goes_back_to_before_a_rewind_is_shown_as_it_is_now(et: Everthread, tmp_path: Path) -> None:
    rewound = [claude_line("u9", "a4", "user", "Explain.", 30), claude_line("a9", "u9", "assistant", "So.", 31)]
    one = follower(et)
    for lines, last in (([], "a6"), (rewound, "a9"), ([], "a6"), (rewound, "a9")):
        await one.catch_up(claude_file(tmp_path, [*claude_session(), *lines]), "claude-code")
        conversation = await et.conversations.get(ID)
        assert [message.id async for message in conversation.messages()][-1] == named(last)
    await one.catch_up(claude_file(tmp_path / "backup"), "claude-code")
    assert [message.id async for message in conversation.messages()][-1] == named("a9")
    assert len(await ids(et)) == 13


async def test_a_broken_line_is_named_and_the_rest_goes_on(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(3, b'{"type": "user", \n')
    path.write_bytes(b"".join(lines))
    one = follower(et)
    await one.catch_up(path, "claude-code")
    assert len(await ids(et)) == 11
    assert one.counts.problem_count == 1
    assert f"{path}:4:" in one.counts.problems[0]
    assert await on_disk(et) == path.read_bytes()


async def test_erased_messages_do_not_come_back(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    await follower(et).catch_up(path, "claude-code")
    await et.erase(conversation=ID, message=named("u2"))
    kept = await et.store.imports.lines(REF, after=0, limit=100)
    assert not any(b'"content": "Then fix it."' in line.line for line in kept)
    path.write_bytes(path.read_bytes().replace(b"Fixed.", b"Fixed!"))
    one = follower(et)
    await one.catch_up(path, "claude-code")
    assert named("u2") not in await ids(et)
    assert any("erased" in problem for problem in one.counts.problems)
    await et.erase(conversation=ID)
    os.utime(path)
    await follower(et).catch_up(path, "claude-code")
    assert not list(await et.conversations.list())


async def test_two_followers_of_the_same_file_write_everything_once(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    whole = path.read_bytes()
    one, other = follower(et), follower(et)
    for end in (len(whole) // 3, len(whole) // 2, len(whole)):
        path.write_bytes(whole[:end])
        await asyncio.gather(*(each.catch_up(path, "claude-code") for each in (one, other)))
    assert len(await ids(et)) == 11
    assert one.counts.messages + other.counts.messages == 11
    assert await on_disk(et) == whole


async def test_codex_lines_are_kept_too(et: Everthread, tmp_path: Path) -> None:
    path = codex_file(tmp_path)
    await follower(et).catch_up(path, "codex")
    assert await on_disk(et, "codex:codex-1") == path.read_bytes()


async def test_a_reader_that_is_killed_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, forkserver: ForkServer
) -> None:
    whole = as_lines(claude_compacted())
    path = claude_file(tmp_path)
    program = str(Path(__file__).with_name("dying_reader.py"))
    kills = 0
    for step in range(1, 40):
        url = f"sqlite:///{tmp_path / f'{step}.db'}"
        codes = []
        for end in (len(whole) // 2, len(whole)):
            path.write_bytes(whole[:end])
            ran = forkserver.run_program(program, url, str(path), str(step), folder=tmp_path, env={}, needs=())
            codes.append(ran.code)
        async with everthread.open(url, worker=False) as et:
            await follower(et).catch_up(path, "claude-code")
            assert len(await ids(et)) == 13, step
            assert await on_disk(et) == whole, step
            assert (await et.verify()).ok
        kills += codes.count(-signal.SIGKILL)
        if codes == [0, 0]:
            break
    assert codes == [0, 0]
    assert kills >= 8


def _torn(whole: bytes, choose: Callable[[int], int]) -> bytes:
    return whole[: choose(len(whole))]


def _without_a_line(whole: bytes, choose: Callable[[int], int]) -> bytes:
    lines = whole.splitlines(keepends=True)
    if lines:
        del lines[choose(len(lines) - 1)]
    return b"".join(lines)


def _doubled_line(whole: bytes, choose: Callable[[int], int]) -> bytes:
    lines = whole.splitlines(keepends=True)
    if lines:
        lines.append(lines[choose(len(lines) - 1)])
    return b"".join(lines)


def _changed_line(whole: bytes, choose: Callable[[int], int]) -> bytes:
    lines = whole.splitlines(keepends=True)
    if lines:
        at = choose(len(lines) - 1)
        lines[at] = lines[at].replace(b"test", b"tent")
    return b"".join(lines)


def _grown(whole: bytes, choose: Callable[[int], int]) -> bytes:
    number = choose(10_000)
    end = whole if not whole or whole.endswith(b"\n") else whole + b"\n"
    return end + as_lines([claude_line(f"more{number}", "a6", "user", f"More {number}.", 50)])


DAMAGES = (_torn, _without_a_line, _doubled_line, _changed_line, _grown)


def whole_messages(content: bytes) -> set[tuple[str, str]]:
    """Id and content of every message that a file holds in whole lines: an independent, simple reading of it."""
    found = set()
    for line in content.splitlines():
        try:
            value: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("message"), dict) and not value.get("isCompactSummary"):
            found.add((value["uuid"], json.dumps(value["message"], sort_keys=True)))
    return found


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@given(steps=st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, 10_000), st.booleans()), max_size=8))
def test_everything_that_was_ever_whole_on_disk_is_in_the_log(
    store: str, steps: list[tuple[Any, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    url = "memory://" if store == "memory" else f"sqlite:///{folder / 'et.db'}"

    async def play() -> None:
        async with everthread.open(url, worker=False) as et:
            path = claude_file(folder)
            one = follower(et)
            ever: set[tuple[str, str]] = set()
            for damage, number, starts_again in [(lambda whole, _: whole, 0, False), *steps]:
                path.write_bytes(damage(path.read_bytes(), lambda most, number=number: number % (most + 1)))
                one = follower(et) if starts_again else one
                await one.catch_up(path, "claude-code")
                ever |= whole_messages(path.read_bytes())
            entries = [entry async for entry in _entries(et)]
            raws = {(entry.id.partition(":")[0]) for entry in entries}
            assert {id for id, _ in ever} <= raws
            lines = await et.store.imports.lines(REF, after=0, limit=10_000)
            held = whole_messages(b"\n".join(line.line for line in lines))
            assert ever <= held, steps
            if path.read_bytes().endswith(b"\n") and whole_messages(path.read_bytes()):
                assert await on_disk(et) == path.read_bytes()
            before = len(entries)
            os.utime(path)
            await follower(et).catch_up(path, "claude-code")
            assert len([entry async for entry in _entries(et)]) == before
            assert (await et.verify()).ok

    async def _entries(et: Everthread) -> Any:
        for entry in await et.store.log.scan(REF, after=0, limit=10_000):
            yield entry

    asyncio.run(play())


async def test_a_summary_of_an_agent_is_listed_with_its_agent_and_what_it_covers(
    et: Everthread, tmp_path: Path
) -> None:
    await follower(et).catch_up(claude_file(tmp_path, claude_compacted()), "claude-code")
    (one,) = [one async for one in (await et.conversations.get(ID)).compactions()]
    assert (one.strategy, one.first_seq, one.last_seq, one.original_count) == ("claude-code", 1, 11, 11)

"""A SQLite file that was copied while it was written to, or that lost its write-ahead log: what it still has verifies,
and what it lacks shows against heads that were kept elsewhere. Nothing is ever half there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import everthread
from everthread import Everthread, StoreError
from tests.crash.test_full_disk import story
from tests.forkserver import ForkServer


async def filled(et: Everthread, conversations: int, messages: int) -> None:
    for number in range(conversations):
        conv = await et.conversations.create(id=f"c{number}", title=f"title {number}")
        for start in range(messages):
            await conv.append([{"role": "user", "content": f"message {start} of {number} " + "words " * 200}])


@pytest.mark.parametrize("suffixes", [[""], ["", "-wal"], ["", "-wal", "-shm"], ["", "-shm"]])
async def test_a_live_file_that_was_copied_verifies_and_what_it_lacks_shows(
    tmp_path: Path, suffixes: list[str]
) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    async with everthread.open(f"sqlite:///{live}", worker=False) as et:
        await filled(et, 3, 20)
        heads = await et.heads()
        for suffix in suffixes:
            source = live.with_name(live.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
    try:
        async with everthread.open(f"sqlite:///{copy}", worker=False) as et:
            report, compared = await et.verify(), await et.verify(against=heads)
            lacking = {problem.kind for problem in compared.problems}
            have = {head.conversation_id: head.count for head in await et.heads()}
    except StoreError:  # of a copy that is no database any more, which is said at once
        assert "-wal" not in suffixes
        return
    assert report.ok
    assert lacking <= {"missing", "cut"}
    if "-wal" in suffixes:
        assert not lacking
        assert have == {"c0": 20, "c1": 20, "c2": 20}


async def test_a_file_whose_log_ahead_was_deleted_after_a_crash_says_what_it_lacks(tmp_path: Path) -> None:
    live, left = tmp_path / "live.db", tmp_path / "left.db"
    async with everthread.open(f"sqlite:///{live}", worker=False) as et:
        await filled(et, 1, 5)
    async with everthread.open(f"sqlite:///{live}", worker=False) as et:
        conv = await et.conversations.get("c0")
        await conv.append([{"role": "user", "content": "the newest"}])
        await conv.update(title="another")
        heads = await et.heads()
        shutil.copyfile(live, left)  # as a crash leaves it, with the -wal deleted
    async with everthread.open(f"sqlite:///{left}", worker=False) as et:
        assert (await et.verify()).ok
        assert {problem.kind for problem in (await et.verify(against=heads)).problems} == {"cut"}
        conv = await et.conversations.get("c0")
        await conv.append([{"role": "user", "content": "goes on"}])
        assert (await et.verify()).ok


def test_a_file_that_may_only_be_read_is_refused_in_so_many_words_and_left_alone(
    forkserver: ForkServer, tmp_path: Path
) -> None:
    told = story(forkserver, "tests.crash.read_only:work_and_lose_the_right_to_write", tmp_path)
    assert "cannot be written" in told["refused"]
    assert "nothing was stored" in told["refused"]
    assert told["is unchanged"]
    assert (told["texts"], told["is sound"]) == (["hello"], True)

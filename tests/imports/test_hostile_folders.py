"""What lies in an agent's folder and is no file of a session is passed over: it is not waited for, and has no end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import everthread
from everthread.imports.watch import Watcher, agent_folders

LINE = {
    "type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w",
    "message": {"role": "user", "content": "hello"},
}  # fmt: skip


async def test_pipes_devices_loops_and_folders_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.jsonl")
    (folder / "b.jsonl").symlink_to("/dev/zero")
    (folder / "c.jsonl").symlink_to(folder / "c.jsonl")
    (folder / "d.jsonl").mkdir()
    (folder / "e.jsonl").symlink_to(tmp_path / "nowhere")
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "z.jsonl").write_text(json.dumps(LINE) + "\n")
    async with everthread.open("memory://", worker=False) as et, asyncio.timeout(30):
        watcher = Watcher(et, "local", agent_folders(tmp_path, {}))
        found = [change.path.name async for change in watcher.sweep()]
        assert found == ["z.jsonl"]
        (conv,) = await et.conversations.list()
        assert [message.text async for message in conv.messages()] == ["hello"]


async def test_a_folder_behind_a_link_is_read_once_and_none_that_leads_upwards(tmp_path: Path) -> None:
    projects, disk = tmp_path / ".claude" / "projects", tmp_path / "disk"
    for folder, name in ((projects / "p", "s1"), (disk / "q", "s2"), (tmp_path / "unrelated", "s3")):
        folder.mkdir(parents=True)
        (folder / f"{name}.jsonl").write_text(json.dumps({**LINE, "sessionId": name}) + "\n")
    (projects / "q").symlink_to(disk / "q", target_is_directory=True)
    (projects / "again").symlink_to(disk / "q", target_is_directory=True)
    (projects / "up").symlink_to(tmp_path, target_is_directory=True)
    (disk / "q" / "back").symlink_to(projects, target_is_directory=True)
    async with everthread.open("memory://", worker=False) as et:
        watcher = Watcher(et, "local", agent_folders(tmp_path, {}))
        assert sorted([change.path.name async for change in watcher.sweep()]) == ["s1.jsonl", "s2.jsonl"]
        assert watcher.counts.problems == []


async def test_a_session_in_no_known_form_is_named_and_an_empty_one_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini" / "tmp" / "p" / "chats"
    folder.mkdir(parents=True)
    (folder / "session-a.json").write_text('{"something": "else entirely"}\n{"and": "more"}\n')
    (folder / "session-b.json").write_text("")
    async with everthread.open("memory://", worker=False) as et:
        watcher = Watcher(et, "local", agent_folders(tmp_path, {}))
        assert [(one.path.name, one.messages) async for one in watcher.sweep()] == [("session-a.json", 0)]
        (problem,) = watcher.counts.problems
        assert problem.endswith("session-a.json: unrecognised format")

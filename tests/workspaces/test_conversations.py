"""Workspaces through an open database: of a conversation, by its last activity, gone with an erase."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

import everthread
from everthread import Everthread, Invalid, NotFound
from everthread.bootstrap import workspaces_of
from everthread.core.nouns import Ref
from everthread.core.workspaces import Workspace
from everthread.settings import Settings
from everthread.testing import Reply, ScriptedModel
from everthread.turn import begin_turn
from everthread.workspaces import FolderWorkspaces

TEXT = b"a text that an erase must reach"


def holding(root: Path) -> list[Path]:
    """The files under the root that hold the text."""
    return [path for path in root.rglob("*") if path.is_file() and TEXT in path.read_bytes()]


def made_idle(workspace: Workspace, days: float) -> None:
    """Close it, and let its last use be so long ago."""
    workspace.close()
    lease = workspace.path.parent / "lease"
    then = lease.stat().st_mtime - timedelta(days=days).total_seconds()
    os.utime(lease, (then, then))


async def test_i26_each_conversation_has_a_folder_of_its_own(et: Everthread) -> None:
    one, other = await et.conversations.create(), await et.conversations.create(owner="other", id="../../x")
    here, there = await et.workspaces.open(one), await et.workspaces.open(other)
    here.write("a", b"one")
    assert there.files() == []
    assert {here.path.is_relative_to(et.workspaces.root), there.path.is_relative_to(et.workspaces.root)} == {True}
    here.close()
    there.close()


async def test_i22_erase_reaches_the_files_of_a_workspace(url: str, tmp_path: Path) -> None:
    async with everthread.open(url, worker=False, workspaces=tmp_path / "ws") as et:
        parent = await et.conversations.create()
        child = await et.conversations.create(parent_id=parent.id)
        kept = await et.conversations.create()
        for conv in (parent, child, kept):
            workspace = await et.workspaces.open(conv)
            workspace.upload("a.txt", TEXT)
            workspace.close()
        report = await et.erase(conversation=parent.id)
        assert report.reached["workspace_files"] == 2
        assert len(holding(tmp_path / "ws")) == 1
        report = await et.erase(owner="local")
        assert report.reached["workspace_files"] == 1
        assert [path for path in (tmp_path / "ws").rglob("*") if path.is_file()] == []


async def test_i21_an_erased_conversation_gets_no_new_files(et: Everthread) -> None:
    conv = await et.conversations.create()
    workspace = await et.workspaces.open(conv)
    await et.erase(conversation=conv.id)
    with pytest.raises(NotFound):
        workspace.write("late", TEXT)
    with pytest.raises(NotFound):
        await et.workspaces.open(conv)
    assert holding(et.workspaces.root) == []
    workspace.close()


async def test_only_what_was_idle_for_long_is_cleaned(url: str, tmp_path: Path) -> None:
    async with everthread.open(url, worker=False, workspaces=tmp_path / "ws") as et:
        idle, recent, in_use = [await et.conversations.create(id=name) for name in ("idle", "recent", "in-use")]
        opened = [await et.workspaces.open(conv) for conv in (idle, recent, in_use)]
        for workspace in opened:
            workspace.write("a", b"abc")
        made_idle(opened[0], days=8)
        opened[1].close()
        # The conversation itself was written to just now, which counts as use.
        assert (await et.workspaces.clean()).removed == ()
        dry = await et.workspaces.clean(idle_days=0, dry_run=True)
        assert {one.ref.id for one in dry.removed} == {"idle", "recent"}
        assert (dry.size_bytes, dry.in_use) == (6, 1)
        assert opened[0].path.is_dir()
        done = await et.workspaces.clean(idle_days=0)
        assert ({one.ref.id for one in done.removed}, done.in_use) == ({"idle", "recent"}, 1)
        assert opened[2].read("a") == b"abc"
        assert not opened[0].path.exists()
        opened[2].close()


async def test_a_conversation_that_is_written_to_keeps_its_files(url: str, tmp_path: Path) -> None:
    async with everthread.open(url, worker=False, workspaces=tmp_path / "ws") as et:
        conv = await et.conversations.create()
        workspace = await et.workspaces.open(conv)
        made_idle(workspace, days=30)
        await conv.append([{"role": "user", "content": "still here"}])
        report = await et.workspaces.clean(idle_days=7)
        assert (report.removed, report.recent) == ((), 1)


@pytest.mark.parametrize("days", [-1, "7", True, float("nan")])
async def test_days_that_are_no_number_are_refused(days: float, tmp_path: Path) -> None:
    async with everthread.open("memory://", worker=False) as et:
        with pytest.raises(Invalid, match="idle_days"):
            await et.workspaces.clean(idle_days=days)


async def test_what_is_off_the_record_leaves_no_file(durable_url: str, tmp_path: Path) -> None:
    async with everthread.open(durable_url, worker=False, workspaces=tmp_path / "ws") as et:
        conv = await et.conversations.create(off_record=True)
        workspace = await et.workspaces.open(conv)
        workspace.write("a", TEXT)
        workspace.close()
    assert holding(tmp_path / "ws") == []


async def test_opening_a_database_makes_no_folder(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        assert et.workspaces.root == tmp_path / "et.db.workspaces"
        assert not et.workspaces.root.exists()


def test_two_databases_of_one_machine_share_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two PostgreSQL databases may both have the owner `local` and a conversation `1`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    addresses = [
        f"postgresql://me@{place}" for place in ("db/x", "db/y", "db:5433/x", "/x?host=/run/a", "/x?host=/run/b")
    ]
    roots = [workspaces_of(one, None).root for one in addresses]
    assert len(set(roots)) == len(addresses)
    assert {root.parent for root in roots} == {tmp_path / "everthread" / "workspaces"}
    assert workspaces_of("postgresql://me:secret@db/x", None).root == workspaces_of("postgresql://you@db/x", None).root


async def test_the_settings_say_where_and_how_much(tmp_path: Path) -> None:
    settings = Settings.load(workspaces_dir=tmp_path / "ws", workspace_max_bytes=3)
    async with everthread.open("memory://", settings=settings, worker=False) as et:
        workspace = await et.workspaces.open(await et.conversations.create())
        with pytest.raises(everthread.Conflict, match="3 bytes"):
            workspace.write("a", b"four")
        assert workspace.path.is_relative_to(tmp_path / "ws")
        workspace.close()


async def test_a_workspace_whose_turn_runs_is_left_alone(url: str, tmp_path: Path) -> None:
    async with everthread.open(url, worker=False, workspaces=tmp_path / "ws") as et:
        conv = await et.conversations.create()
        (await et.workspaces.open(conv)).close()
        agent = everthread.agent(et)
        asleep = ScriptedModel([Reply(text="late", delay_seconds=60)])
        live = await begin_turn(conv, "hello", agent=agent, model=asleep)
        assert (await et.workspaces.clean(idle_days=0)).removed == ()
        live.stop()
        await live.wait()
        assert len((await et.workspaces.clean(idle_days=0)).removed) == 1


async def test_what_another_database_has_there_is_left_alone(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/one.db", worker=False, workspaces=tmp_path / "ws") as one:
        workspace = await one.workspaces.open(await one.conversations.create(id="theirs"))
        made_idle(workspace, days=30)
    async with everthread.open(f"sqlite:///{tmp_path}/other.db", worker=False, workspaces=tmp_path / "ws") as other:
        report = await other.workspaces.clean(idle_days=0)
        assert (report.removed, report.recent) == ((), 1)


async def test_what_a_crash_left_off_the_record_is_cleaned_at_once(tmp_path: Path) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        left = FolderWorkspaces(et.workspaces.root).open(Ref("local", "gone"), off_record=True)
        left.write("a", TEXT)
        left.close()
        assert len((await et.workspaces.clean()).removed) == 1
        assert holding(et.workspaces.root) == []

"""What a program leaves in a workspace may stop no start, no listing and no erase.

Root may read everything, so each test runs as a user who may not, in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import everthread
from everthread.core.nouns import Ref
from everthread.http.app import create_app
from everthread.settings import Settings
from everthread.workspaces.destroy import destroy
from everthread.workspaces.folders import FolderWorkspaces

NOBODY = 65_534
HERE = Ref("local", "trip")


def unreadable(files: Path) -> None:
    (files / "x" / "y").mkdir(parents=True)
    (files / "x" / "y" / "secret").write_text("hunter22")
    os.chmod(files / "x" / "y", 0o000)
    os.chmod(files / "x", 0o000)


def unreadable_itself(files: Path) -> None:
    (files / "secret").write_text("hunter22")
    os.chmod(files, 0o000)


def read_only(files: Path) -> None:
    (files / "x").mkdir()
    (files / "x" / "secret").write_text("hunter22")
    os.chmod(files / "x", 0o500)
    os.chmod(files, 0o500)


def deep(files: Path) -> None:
    place = os.open(files, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    with open(os.open("secret", os.O_WRONLY | os.O_CREAT, dir_fd=place), "w") as file:
        file.write("hunter22")
    os.close(place)


def no_text(files: Path) -> None:
    (files / os.fsdecode(b"\xff\xfe")).write_text("hunter22")
    (files / os.fsdecode(b"folder \xff")).mkdir()
    os.mkfifo(files / "pipe")
    os.symlink("/", files / "root")


HOSTILE = [unreadable, unreadable_itself, read_only, deep, no_text]


def as_nobody(work: Callable[[], None]) -> None:
    """Run it in a child without root's rights; what it raises fails the test."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
        except BaseException:  # noqa: BLE001 - the edge of the child: whatever it was, the parent fails
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that anybody may reach and write to, which no other does: pytest's own is for this user only."""
    place = Path(tempfile.mkdtemp(prefix="everthread-hostile-"))
    os.chmod(place, 0o777)
    yield place
    destroy(place)


@pytest.mark.parametrize("make", HOSTILE)
def test_it_is_listed_measured_opened_again_and_erased(folder: Path, make: Callable[[Path], None]) -> None:
    def work() -> None:
        place = FolderWorkspaces(folder / "w")
        with place.open(HERE) as opened:
            opened.write("plan.md", b"# Plan")
            make(opened.path)
        with place.open(HERE) as opened:
            opened.write("b.md", b"")
            assert {"plan.md", "b.md"} <= {file.path for file in opened.files()}
        assert [info.ref for info in place.everything()] == [HERE]
        assert place.erase(*HERE) >= 2
        assert is_gone(folder / "w")

    as_nobody(work)


async def use_database(folder: Path, make: Callable[[Path], None]) -> None:
    url = f"sqlite:///{folder / 'et.db'}"
    async with everthread.open(url, worker=False, embedder=None) as et:
        conv = await et.conversations.create(id="trip")
        await conv.append({"role": "user", "content": "hello"})
        workspace = await et.workspaces.open(conv)
        make(workspace.path)
        workspace.close()
    async with everthread.open(url, worker=False, embedder=None) as et:
        app = create_app(et, Settings(database=url))
        async with app.router.lifespan_context(app):
            assert await et.workspaces.clean(idle_days=0)
        conv = await et.conversations.get("trip")
        workspace = await et.workspaces.open(conv)
        make(workspace.path)
        workspace.close()
        report = await et.erase(conversation="trip")
        assert report.conversations == 1
        assert not any("workspace" in one for one in report.cannot_reach)
    assert is_gone(folder / "et.db.workspaces")


def is_gone(workspaces: Path) -> bool:
    return list(workspaces.rglob("*trip*")) == []


@pytest.mark.parametrize("make", HOSTILE)
def test_it_stops_no_start_and_no_erase_of_a_database(
    folder: Path, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    asyncio.run(use_database(tmp_path, lambda _: None))  # imports what nobody may be unable to read
    as_nobody(lambda: asyncio.run(use_database(folder, make)))

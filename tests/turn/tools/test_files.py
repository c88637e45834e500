"""Files as a model reads and writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everthread import Everthread
from everthread.turn.tools import Desk
from tests.turn.tools.conftest import Hands


async def test_a_file_is_written_read_listed_and_searched(hands: Hands) -> None:
    assert await hands("write_file", path="notes/plan.md", text="# Plan\n第一步\n") == "notes/plan.md: 17 bytes."
    assert await hands("write_file", path="notes/plan.md", text="Second\n", append=True) == "notes/plan.md: 24 bytes."
    assert await hands("read_file", path="notes/plan.md") == "# Plan\n第一步\nSecond"
    assert await hands("list_files") == "notes/plan.md  24 bytes"
    assert await hands("search_files", text="第一") == "notes/plan.md:2: 第一步"
    assert await hands("search_files", text="SECOND", names="*.md") == "notes/plan.md:3: Second"
    assert await hands("search_files", text="Second", names="*.txt") == "No line has 'Second'."


async def test_a_long_file_is_read_by_parts(hands: Hands) -> None:
    await hands("write_file", path="long.txt", text="\n".join(f"line {at}" for at in range(1, 1001)))
    first = await hands("read_file", path="long.txt", lines=2)
    assert first == "line 1\nline 2\n[998 more lines; read_file(path='long.txt', first_line=3) goes on]"
    assert await hands("read_file", path="long.txt", first_line=1000) == "line 1000"
    assert "1,000 lines" in await hands.refused("read_file", path="long.txt", first_line=1001)
    await hands("write_file", path="wide.txt", text="x" * 10_000)
    assert len(await hands("read_file", path="wide.txt")) < 3_000


async def test_what_is_no_text_is_told_by_its_size(hands: Hands) -> None:
    (await hands.desk.files.workspace()).write("photo.png", b"\x89PNG\xff")
    assert "no text: 5 bytes" in await hands.refused("read_file", path="photo.png")
    assert await hands("search_files", text="PNG") == "No line has 'PNG'."


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b", "C:\\x", "a\x00b", "NUL", "~/.ssh/id"])
async def test_i26_no_tool_reads_or_writes_outside(hands: Hands, path: str) -> None:
    for name, more in (("read_file", {}), ("write_file", {"text": "x"})):
        assert "path:" in await hands.refused(name, path=path, **more)
    assert "path:" in await hands.refused("list_files", folder=path)
    assert "path:" in await hands.refused("search_files", text="x", folder=path)


async def test_i26_no_tool_follows_a_link(hands: Hands, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not read me")
    folder = (await hands.desk.files.workspace()).path
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path, target_is_directory=True)
    assert "link" in await hands.refused("read_file", path="file")
    assert "link" in await hands.refused("read_file", path="folder/secret")
    assert await hands("search_files", text="do not read") == "No line has 'do not read'."
    assert await hands("list_files") == "There are no files."


async def test_a_workspace_that_vanished_is_made_anew_and_told_once(hands: Hands) -> None:
    await hands("write_file", path="a.txt", text="x")
    shutil.rmtree((await hands.desk.files.workspace()).path)
    told = await hands("list_files")
    assert told.startswith("[The workspace had vanished")
    assert told.endswith("There are no files.")
    assert "vanished" not in await hands("write_file", path="a.txt", text="again")


async def test_an_erased_conversation_gets_no_file_from_a_late_tool(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    desk = Desk.of(memory_et, conv)
    await Hands(desk)("write_file", path="a.txt", text="x")
    await memory_et.erase(conversation=conv.id)
    await Hands(desk).refused("write_file", path="b.txt", text="late")
    assert [path for path in memory_et.workspaces.root.rglob("*.txt")] == []
    desk.close()


async def test_a_subagent_works_in_the_files_of_whom_it_works_for(memory_et: Everthread) -> None:
    parent = await memory_et.conversations.create()
    child = await memory_et.conversations.create(parent_id=parent.id)
    grandchild = await memory_et.conversations.create(parent_id=child.id)
    desks = [Desk.of(memory_et, conversation) for conversation in (parent, grandchild)]
    await Hands(desks[0])("write_file", path="task.md", text="read me")
    assert await Hands(desks[1])("read_file", path="task.md") == "read me"
    for desk in desks:
        desk.close()

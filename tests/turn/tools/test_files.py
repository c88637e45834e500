"""Files as a model reads and writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from everthread import Everthread
from everthread.turn.tools import ToolContext
from tests.turn.tools.conftest import ToolCaller


async def test_a_file_is_written_read_listed_and_searched(toolbox: ToolCaller) -> None:
    assert await toolbox("write_file", path="notes/plan.md", text="# Plan\n第一步\n") == "notes/plan.md: 17 bytes."
    assert await toolbox("write_file", path="notes/plan.md", text="Second\n", append=True) == "notes/plan.md: 24 bytes."
    assert await toolbox("read_file", path="notes/plan.md") == "# Plan\n第一步\nSecond"
    assert await toolbox("list_files") == "notes/plan.md  24 bytes"
    assert await toolbox("search_files", text="第一") == "notes/plan.md:2: 第一步"
    assert await toolbox("search_files", text="SECOND", names="*.md") == "notes/plan.md:3: Second"
    assert await toolbox("search_files", text="Second", names="*.txt") == "No line has 'Second'."


async def test_a_long_file_is_read_by_parts(toolbox: ToolCaller) -> None:
    await toolbox("write_file", path="long.txt", text="\n".join(f"line {at}" for at in range(1, 1001)))
    first = await toolbox("read_file", path="long.txt", lines=2)
    assert first == "line 1\nline 2\n[998 more lines; read_file(path='long.txt', first_line=3) goes on]"
    assert await toolbox("read_file", path="long.txt", first_line=1000) == "line 1000"
    assert "1,000 lines" in await toolbox.refused("read_file", path="long.txt", first_line=1001)
    await toolbox("write_file", path="wide.txt", text="x" * 10_000)
    assert len(await toolbox("read_file", path="wide.txt")) < 3_000


async def test_what_is_no_text_is_told_by_its_size(toolbox: ToolCaller) -> None:
    (await toolbox.context.files.workspace()).write("photo.png", b"\x89PNG\xff")
    assert "not a text file: 5 bytes" in await toolbox.refused("read_file", path="photo.png")
    assert await toolbox("search_files", text="PNG") == "No line has 'PNG'."


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b", "C:\\x", "a\x00b", "NUL", "~/.ssh/id"])
async def test_i26_no_tool_reads_or_writes_outside(toolbox: ToolCaller, path: str) -> None:
    for name, more in (("read_file", {}), ("write_file", {"text": "x"})):
        assert "path:" in await toolbox.refused(name, path=path, **more)
    assert "path:" in await toolbox.refused("list_files", folder=path)
    assert "path:" in await toolbox.refused("search_files", text="x", folder=path)


async def test_i26_no_tool_follows_a_link(toolbox: ToolCaller, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not read me")
    folder = (await toolbox.context.files.workspace()).path
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path, target_is_directory=True)
    assert "link" in await toolbox.refused("read_file", path="file")
    assert "link" in await toolbox.refused("read_file", path="folder/secret")
    assert await toolbox("search_files", text="do not read") == "No line has 'do not read'."
    assert await toolbox("list_files") == "There are no files."


async def test_a_workspace_that_vanished_is_made_anew_and_told_once(toolbox: ToolCaller) -> None:
    await toolbox("write_file", path="a.txt", text="x")
    shutil.rmtree((await toolbox.context.files.workspace()).path)
    told = await toolbox("list_files")
    assert told.startswith("[The workspace was missing")
    assert told.endswith("There are no files.")
    assert "vanished" not in await toolbox("write_file", path="a.txt", text="again")


async def test_an_erased_conversation_gets_no_file_from_a_late_tool(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    context = ToolContext.create(memory_et, conv)
    await ToolCaller(context)("write_file", path="a.txt", text="x")
    await memory_et.erase(conversation=conv.id)
    await ToolCaller(context).refused("write_file", path="b.txt", text="late")
    assert [path for path in memory_et.workspaces.root.rglob("*.txt")] == []
    context.close()


async def test_a_subagent_works_in_the_files_of_whom_it_works_for(memory_et: Everthread) -> None:
    parent = await memory_et.conversations.create()
    child = await memory_et.conversations.create(parent_id=parent.id)
    grandchild = await memory_et.conversations.create(parent_id=child.id)
    contexts = [ToolContext.create(memory_et, conversation) for conversation in (parent, grandchild)]
    await ToolCaller(contexts[0])("write_file", path="task.md", text="read me")
    assert await ToolCaller(contexts[1])("read_file", path="task.md") == "read me"
    for context in contexts:
        context.close()

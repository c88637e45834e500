"""Files of the conversation's workspace, as a model reads and writes them. No path leaves it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread.core.errors import Invalid, NotFound
from everthread.core.workspaces import FileInfo, Workspace
from everthread.turn.tools.tool_context import ToolContext
from everthread.turn.tools.wrap import as_tool

MAX_LINES = 2_000
MAX_READ_BYTES = 20_000_000
MAX_LISTED = 500
MAX_FOUND = 100
_LINE_CHARACTERS = 2_000
_FOUND_CHARACTERS = 300

Path = Annotated[str, Field(description="relative to the workspace, such as notes/plan.md")]


def tools(tool_context: ToolContext) -> Sequence[BaseTool]:
    return [
        as_tool(function, tool_context=tool_context) for function in (read_file, write_file, list_files, search_files)
    ]


async def read_file(
    tool_context: ToolContext,
    path: Path,
    first_line: Annotated[int, Field(ge=1, description="the first line to read")] = 1,
    lines: Annotated[int, Field(ge=1, le=MAX_LINES, description="number of lines")] = 400,
) -> str:
    """Read a text file of the workspace, by its lines."""
    size, body = await tool_context.files.run(lambda workspace: _read(workspace, path))
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not a text file: {size:,} bytes", field="path") from None
    every = text.splitlines()
    shown = every[first_line - 1 : first_line - 1 + lines]
    if not shown and first_line > 1:
        raise Invalid(f"{path} has {len(every):,} lines", field="first_line")
    last = first_line + len(shown) - 1
    more = len(every) - last
    note = f"\n[{more:,} more lines; read_file(path={path!r}, first_line={last + 1}) goes on]" if more > 0 else ""
    return "\n".join(map(_cut, shown)) + note if shown else f"{path} is empty."


def _read(workspace: Workspace, path: str) -> tuple[int, bytes]:
    size = workspace.size(path)
    if size > MAX_READ_BYTES:
        raise Invalid(f"{path} has {size:,} bytes; at most {MAX_READ_BYTES:,} are read", field="path")
    return size, workspace.read(path)


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}… [{len(line):,} characters]"


async def write_file(
    tool_context: ToolContext,
    path: Path,
    text: Annotated[str, Field(description="the content of the file")],
    append: Annotated[bool, Field(description="add to the end instead of replacing the file")] = False,
) -> str:
    """Write a text file into the workspace, folders included."""

    def write(workspace: Workspace) -> FileInfo:
        before = _before(workspace, path) if append else b""
        return workspace.write(path, before + text.encode(errors="backslashreplace"))

    written = await tool_context.files.run(write)
    return f"{written.path}: {written.size_bytes:,} bytes."


def _before(workspace: Workspace, path: str) -> bytes:
    try:
        return _read(workspace, path)[1]
    except NotFound:
        return b""


async def list_files(
    tool_context: ToolContext, folder: Annotated[str, Field(description="empty means all")] = ""
) -> str:
    """The files of the workspace, with their sizes; uploads are in the folder uploads."""
    found = await tool_context.files.run(lambda workspace: workspace.files(folder))
    lines = [f"{file.path}  {file.size_bytes:,} bytes" for file in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        lines.append(f"[{len(found) - MAX_LISTED:,} more; name a folder]")
    return "\n".join(lines) or "There are no files."


async def search_files(
    tool_context: ToolContext,
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1_000,
            description="the exact words to look for; upper and lower case do not matter",
        ),
    ],
    names: Annotated[str, Field(description="only in files whose path matches this pattern, such as *.md")] = "*",
    folder: Annotated[str, Field(description="empty means all")] = "",
) -> str:
    """Find lines in the workspace's text files."""
    found = await tool_context.files.run(lambda workspace: list(_lines(workspace, text.casefold(), names, folder)))
    note = [f"[the first {MAX_FOUND}; use longer words]"] if len(found) >= MAX_FOUND else []
    return "\n".join([*found, *note]) or f"No line has {text!r}."


def _lines(workspace: Workspace, wanted: str, names: str, folder: str) -> Iterator[str]:
    left = MAX_FOUND
    for file in workspace.files(folder):
        if not fnmatchcase(file.path, names) or file.size_bytes > MAX_READ_BYTES:
            continue
        for number, line in enumerate(_text_of(workspace, file).splitlines(), start=1):
            if wanted in line.casefold():
                yield f"{file.path}:{number}: {line.strip()[:_FOUND_CHARACTERS]}"
                left -= 1
                if not left:
                    return


def _text_of(workspace: Workspace, file: FileInfo) -> str:
    """Nothing of what is no text, or vanished, or may not be read."""
    try:
        return workspace.read(file.path).decode()
    except (UnicodeDecodeError, NotFound, Invalid):
        return ""

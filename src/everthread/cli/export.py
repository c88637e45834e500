"""Export conversations."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import for_terminal
from everthread.core.errors import Conflict, Invalid
from everthread.imports.find import find_conversation

if TYPE_CHECKING:
    from everthread.history.export import Parts
    from everthread.instance import Everthread


@command(app)
async def export(
    cli: Invocation,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="Its id; without it, all of the owner's.")
    ] = None,
    format: Annotated[
        Literal["md", "html", "pdf", "json", "jsonl", "archive"],
        typer.Option("--format", "-f", help="`archive` keeps everything, and `import` reads it."),
    ] = "archive",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; stdout by default.")
    ] = None,
    no_thinking: Annotated[bool, typer.Option("--no-thinking", help="Leave out thinking (md, html, pdf).")] = False,
    no_tools: Annotated[
        bool, typer.Option("--no-tools", help="Leave out tool calls and results (md, html, pdf).")
    ] = False,
) -> None:
    """Export a conversation as Markdown, HTML, PDF, JSON or an archive."""
    from everthread.history.export import Parts, check_parts  # noqa: PLC0415 - startup

    parts = Parts(not no_thinking, not no_tools)
    check_parts(format, parts)
    if conversation is None and format != "archive":
        raise Invalid("several conversations can only be exported as an archive; name one", field="format")
    if output is not None and output.exists():
        raise Conflict(f"{output} already exists; nothing was written")
    if output is None and format in ("archive", "pdf") and sys.stdout.isatty():
        raise Invalid("is binary; name a file with --output", field="format")
    async with cli.open() as et:
        with nullcontext() if output is None else cli.out.busy(f"writing {output.name}"):
            size = await _write(output, _pieces(cli, et, conversation, format, parts))
    if cli.out.json and output is not None:
        cli.out.document({"path": str(output), "format": format, "bytes": size})
    else:
        cli.out.note(f"{size:,} bytes")


async def _pieces(
    cli: Invocation, et: Everthread, conversation: str | None, format: str, parts: Parts
) -> AsyncIterator[bytes]:
    if format == "archive" or conversation is None:
        named = None if conversation is None else [(await find_conversation(et, cli.owner, conversation)).id]
        async for piece in et.export_archive(owner=cli.owner, conversations=named):
            yield piece
        return
    found = await find_conversation(et, cli.owner, conversation)
    if format == "pdf":
        from everthread.adapters.pdf_export import render_pdf  # noqa: PLC0415 - startup

        yield await render_pdf(found.info, found.messages(), cli.settings.models_dir, parts)
        return
    written = found.export(format, thinking=parts.thinking, tools=parts.tools)  # type: ignore[arg-type]  # checked above
    async for piece in written:
        yield piece


async def _write(output: Path | None, pieces: AsyncIterator[bytes]) -> int:
    """Write the pieces and return the number of bytes. An incomplete file is not left behind."""
    size = 0
    if output is None:
        async for piece in pieces:
            sys.stdout.buffer.write(for_terminal(piece))
            size += len(piece)
        return size
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("wb") as file:
            async for piece in pieces:
                file.write(piece)
                size += len(piece)
        part.replace(output)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return size

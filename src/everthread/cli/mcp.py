"""`everthread mcp`: history for MCP clients."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.core.errors import MissingExtra


@command(app)
async def mcp(
    cli: Invocation,
    project: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Answer from the sessions in this folder; the current one.")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Answer from all sessions of the owner.")] = False,
    show_secrets: Annotated[
        bool, typer.Option("--show-secrets", help="Let the model ask for what looks like a credential.")
    ] = False,
) -> None:
    """Serve history to an MCP client on stdin and stdout: search, read, recall, remember. Over HTTP, `everthread serve`
    does that at /mcp."""
    if find_spec("mcp") is None:
        raise MissingExtra("an MCP server needs an extra: pip install 'everthread[mcp]'")
    from everthread.mcp.server import History, mcp_server  # noqa: PLC0415 - an extra

    folder = None if everywhere else str((project or Path.cwd()).resolve())
    if sys.stdin.isatty():
        cli.out.note("waiting for an MCP client on stdin; for Claude Code: claude mcp add everthread -- everthread mcp")
    # The package closes the stream that it writes to; ours is still flushed at the end.
    with redirect_stdout(os.fdopen(os.dup(sys.stdout.fileno()), "w")):
        async with cli.open(create=True) as et:
            history = History(et, cli.owner, folder)
            await mcp_server(lambda _: history, may_show_secrets=show_secrets).run_stdio_async()

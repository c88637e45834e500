"""`everthread blame`: which sessions touched a file."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import format_time
from everthread.text.secrets import redact_secrets

_SHOWN_CHARACTERS = 100


@command(app)
async def blame(
    cli: Invocation,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A path, the end of one, or a symbol.")],
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="The maximum number.")] = 50,
) -> None:
    """List the tool calls of all sessions that named a file, newest first."""
    from everthread.imports.blame import blame as find_touches  # noqa: PLC0415 - startup

    async with cli.open() as et:
        touches, is_cut = await find_touches(et, cli.owner, file, limit=limit)
    if cli.out.json:
        for touch in touches:
            cli.out.document({**asdict(touch), "argument": redact_secrets(touch.argument)})
        return
    rows = [
        (
            format_time(touch.said_at),
            touch.conversation_id,
            touch.seq,
            touch.tool,
            redact_secrets(touch.argument)[:_SHOWN_CHARACTERS],
            touch.title or "",
        )
        for touch in touches
    ]
    if not rows:
        cli.out.note(
            f"no tool call of any session names {file!r}; for what was said: everthread search {shlex.quote(file)}"
        )
        return
    cli.out.table(("said at", "conversation", ">seq", "tool", "argument", "title"), rows)
    if is_cut:
        cli.out.note("many messages name it, and only the newest were looked at; give more of the path")

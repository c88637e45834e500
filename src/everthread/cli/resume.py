"""`everthread resume`: a session as a file that an agent can open."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from everthread.cli.app import app, command
from everthread.cli.conversations import message_id_of
from everthread.cli.invocation import Invocation
from everthread.core.errors import Invalid


@command(app)
async def resume(
    cli: Invocation,
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Its conversation, or the agent's own id of it.")],
    before_compaction: Annotated[
        int | None, typer.Option("--before-compaction", metavar="N", min=1, help="As it was before its Nth compaction.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="MESSAGE", help="Up to this message (its id or seq).")
    ] = None,
    target: Annotated[
        Literal["claude", "codex"] | None, typer.Option("--as", help="For this agent, instead of the one it is of.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; `-` for stdout.")
    ] = None,
) -> None:
    """Write a session file that Claude Code or Codex opens, from any point of it."""
    from everthread.imports.resume import find_session, native_session, write_file  # noqa: PLC0415 - startup

    if at is not None and before_compaction is not None:
        raise Invalid("cannot be combined with --before-compaction", field="--at")
    async with cli.open() as et:
        conversation = await find_session(et, cli.owner, session)
        message = None
        if at is not None:
            message = await conversation.message(await message_id_of(et, conversation, at))
        made = await native_session(
            et, conversation, home=_homes(), target=target, at=message, before_compaction=before_compaction
        )
    if str(output) == "-":
        sys.stdout.buffer.write(made.content)
        return
    path = made.path if output is None else output
    is_new = write_file(made, path)
    if cli.out.json:
        cli.out.document(
            {"path": str(path), "session_id": made.session_id, "agent": made.agent, "bytes": len(made.content),
             "written": is_new, "original": made.is_original, "command": made.command}
        )  # fmt: skip
        return
    cli.out.text(f"{path} {'was written' if is_new else 'is there already, with the same content'}")
    cli.out.text(f"to continue: {made.command}")


def _homes() -> dict[str, Path]:
    def named(variable: str, default: str) -> Path:
        return Path(os.environ.get(variable) or Path.home() / default)

    return {"claude-code": named("CLAUDE_CONFIG_DIR", ".claude"), "codex": named("CODEX_HOME", ".codex")}

"""`everthread resume`: a session as a file that an agent can open."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everthread.cli.app import app, command
from everthread.cli.conversations import message_id_of
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted, for_terminal
from everthread.core.errors import Invalid
from everthread.imports.find import find_conversation

if TYPE_CHECKING:
    from everthread.imports.resume import NativeSession


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
    cwd: Annotated[
        Path | None,
        typer.Option("--cwd", metavar="FOLDER", help="Go on in this folder, instead of the one it ran in."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; `-` for stdout.")
    ] = None,
) -> None:
    """Write a session file that Claude Code or Codex opens, from any point of it."""
    from everthread.imports.resume import (  # noqa: PLC0415 - startup
        native_session,
        note_written,
        write_file,
    )

    if at is not None and before_compaction is not None:
        raise Invalid("cannot be combined with --before-compaction", field="--at")
    async with cli.open() as et:
        conversation = await find_conversation(et, cli.owner, session)
        message = None
        if at is not None:
            message = await conversation.message(await message_id_of(et, conversation, at))
        folder = _folder(cli, cwd, conversation.info.metadata.get("cwd"))
        made = await native_session(
            et, conversation, home=_homes(), target=target, at=message, before_compaction=before_compaction, cwd=folder
        )
        if made.left_out:
            cli.out.note(f"{made.left_out} images or files are not in it: only text and tool calls are written")
        _note_damage(cli, made)
        if str(output) == "-":
            sys.stdout.buffer.write(for_terminal(made.content))
            return
        await note_written(et, cli.owner, made)
    path = made.path if output is None else output
    is_new = write_file(made, path)
    is_found = path.absolute() == made.path.absolute()
    if cli.out.json:
        cli.out.document(
            {"path": str(path), "session_id": made.session_id, "agent": made.agent, "bytes": len(made.content),
             "written": is_new, "original": made.is_original,
             "command": made.command if is_found else None, "left_out": made.left_out,
             "restored": made.restored, "unreadable": made.unreadable}
        )  # fmt: skip
        return
    cli.out.text(f"{path} {'was written' if is_new else 'is there already, with the same content'}")
    if is_found:
        cli.out.text(f"to continue: {made.command}")
    else:
        cli.out.text(f"to continue, move it to {made.path}, then: {made.command}")


def _note_damage(cli: Invocation, made: NativeSession) -> None:
    """Say in what the file is not what the agent's own file was when it was last read."""
    if made.restored:
        cli.out.note(f"the file on disk had lost {counted(made.restored, 'message')}: what it lost is in this one")
    if made.unreadable:
        cli.out.note(
            f"{counted(made.unreadable, 'line')} of the file could not be read: not in this one, only in the log"
        )
    if made.has_gaps:
        cli.out.note("a part of the file is not here any more: it was erased, or never read")


def _folder(cli: Invocation, given: Path | None, known: object) -> str | None:
    """The folder to continue in; None for the one that the session names."""
    if given is not None:
        return str(given.absolute())
    if known:
        return None
    cli.out.note(f"the session does not say which folder it ran in; it goes on in {Path.cwd()} (--cwd names another)")
    return str(Path.cwd())


def _homes() -> dict[str, Path]:
    def named(variable: str, default: str) -> Path:
        return Path(os.environ.get(variable) or Path.home() / default)

    return {"claude-code": named("CLAUDE_CONFIG_DIR", ".claude"), "codex": named("CODEX_HOME", ".codex")}

"""`everthread chat`."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation
from everthread.cli.models import fetch_local
from everthread.core.errors import Invalid, MissingExtra

if TYPE_CHECKING:
    from pathlib import Path


_HISTORY = "chat_history"


@command(app)
async def chat(
    cli: Invocation,
    message: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE]", help="Say this, show the answer, and leave.")
    ] = None,
    last: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")] = False,
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Go on with this one.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who answers: openai:gpt-5-mini, gguf:/path, scripted:echo …")
    ] = None,
) -> None:
    """Talk with a model; every word is kept. In a pipe: the message from stdin, the answer to stdout."""
    if last and conversation is not None:
        raise typer.BadParameter("--continue and --conversation name two different ones: leave one out")
    try:
        from everthread.cli.chat import loop  # noqa: PLC0415 - an extra
        from everthread.cli.chat.screen import JsonScreen, PlainScreen, TerminalScreen  # noqa: PLC0415
        from everthread.cli.chat.session import open_session  # noqa: PLC0415
    except ModuleNotFoundError as problem:
        raise MissingExtra(f"the chat needs {problem.name}; install it: pip install 'everthread[agent]'") from problem
    is_terminal = message is None and sys.stdin.isatty() and sys.stdout.isatty() and not cli.out.json
    said = "" if is_terminal else await _said(message)
    async with cli.open(create=True, worker=True) as et, open_session(cli, et, model) as session:
        if session.model is None:
            await asyncio.to_thread(fetch_local, cli)
        if last or conversation is not None:
            await session.resume(conversation)
        _, notice = await session.model_name()
        if is_terminal:
            screen = TerminalScreen(loop.terminal())
            screen.note("\n".join(filter(None, [loop.GREETING, notice])))
            await et.workspaces.clean()
            await loop.chat(session, loop.PromptReader(_history_of(cli)), screen)
        else:
            plain = JsonScreen(cli.out) if cli.out.json else PlainScreen(cli.out)
            plain.note(notice or "")
            if not await loop.answer(session, said, plain):
                raise typer.Exit(ExitCode.ERROR)


async def _said(message: str | None) -> str:
    """The argument, or all of stdin."""
    text = message if message is not None else await asyncio.to_thread(sys.stdin.read)
    if not text.strip():
        raise Invalid("is empty; write something: echo hello | everthread chat", field="message")
    return text.removesuffix("\n")


def _history_of(cli: Invocation) -> Path | None:
    from everthread.settings import data_folder  # noqa: PLC0415 - startup

    return data_folder() / _HISTORY

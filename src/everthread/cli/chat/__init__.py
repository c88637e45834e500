"""`everthread chat`: the command itself. What it imports when it runs is beside it: `session` (conversation, agent and
model), `screen` (how a turn is shown), `slash_commands`, and `loop` (the prompt).
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation
from everthread.cli.models import fetch_local_model
from everthread.core.errors import Invalid, MissingExtra


@command(app)
async def chat(
    cli: Invocation,
    message: Annotated[
        str | None, typer.Argument(metavar="[MESSAGE]", help="Send this, print the answer, and exit.")
    ] = None,
    last: Annotated[bool, typer.Option("--continue", "-c", help="Continue the most recent conversation.")] = False,
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="Continue this conversation.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model: openai:gpt-5-mini, gguf:/path, scripted:echo …")
    ] = None,
) -> None:
    """Chat with a model; every word is kept. In a pipe, read the message from stdin and print the answer to stdout."""
    if last and conversation is not None:
        raise typer.BadParameter("use either --continue or --conversation, not both")
    try:
        from everthread.cli.chat import loop, slash_commands  # noqa: PLC0415 - an extra
        from everthread.cli.chat.screen import JsonScreen, PlainScreen, TerminalScreen  # noqa: PLC0415
        from everthread.cli.chat.session import open_session  # noqa: PLC0415
        from everthread.settings import data_folder  # noqa: PLC0415
    except ModuleNotFoundError as problem:
        raise MissingExtra(f"the chat needs {problem.name}; install it: pip install 'everthread[agent]'") from problem
    is_terminal = message is None and sys.stdin.isatty() and sys.stdout.isatty() and not cli.out.json
    text = "" if is_terminal else await _read_message(message)
    async with cli.open(create=True, worker=True) as et, open_session(cli, et, model) as session:
        if session.model is None:
            await asyncio.to_thread(fetch_local_model, cli)
        if last or conversation is not None:
            await session.resume(conversation)
        _, notice = await session.model_name()
        if is_terminal:
            screen = TerminalScreen(loop.terminal())
            screen.note("\n".join(filter(None, [loop.GREETING, notice])))
            if session.conversation is not None:
                screen.say(await slash_commands.recap(session.conversation))
            await et.workspaces.clean()
            await loop.chat(session, loop.PromptReader(data_folder() / "chat_history"), screen)
        else:
            plain = JsonScreen(cli.out) if cli.out.json else PlainScreen(cli.out)
            plain.note(notice or "")
            if not await loop.answer(session, text, plain):
                raise typer.Exit(ExitCode.ERROR)


async def _read_message(message: str | None) -> str:
    """The argument, or all of stdin."""
    text = message if message is not None else await asyncio.to_thread(sys.stdin.read)
    if not text.strip():
        raise Invalid("must not be empty; for example: echo hello | everthread chat", field="message")
    return text.removesuffix("\n")

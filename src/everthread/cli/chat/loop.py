"""The prompt loop: each input is a slash command, or a turn that is shown as it goes and that Ctrl-C stops."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from rich.console import Console as Terminal

from everthread.cli.chat import slash_commands
from everthread.core.errors import EverthreadError
from everthread.core.turn_events import Done, Failed

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from everthread.cli.chat.screen import Screen, TerminalScreen
    from everthread.cli.chat.session import ChatSession
    from everthread.runs.engine import LiveTurn

PROMPT = "› "
GREETING = "Ask anything. /help shows the commands, Ctrl-C stops an answer, Ctrl-D leaves."


class InputReader(Protocol):
    """Where input lines come from."""

    async def line(self) -> str | None:
        """The next line; None at the end of the input."""


class PromptReader:
    """A prompt with a history and completion of slash commands."""

    def __init__(self, history: Path | None) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(history), completer=WordCompleter(list(slash_commands.COMMANDS), sentence=True)
        )

    async def line(self) -> str | None:
        while True:
            try:
                return await self._session.prompt_async(PROMPT)
            except KeyboardInterrupt:  # discards what was typed
                continue
            except EOFError:
                return None


def _history(file: Path | None) -> History:
    if file is None:
        return InMemoryHistory()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


async def chat(session: ChatSession, reader: InputReader, screen: TerminalScreen) -> None:
    """Run until the end of the input."""
    console = slash_commands.ChatConsole(session=session, details=screen.details)
    while not console.is_over and (line := await reader.line()) is not None:
        if not line.strip():
            continue
        try:
            if line.lstrip().startswith("/"):
                console.details = screen.details
                if text := await slash_commands.run(console, line):
                    screen.say(text)
            else:
                screen.begin()
                try:
                    await answer(session, line, screen)
                finally:
                    screen.stop_waiting()
        except EverthreadError as problem:
            screen.note(str(problem))


async def answer(session: ChatSession, text: str, screen: Screen) -> bool:
    """Run one turn and show it; returns whether it was answered completely."""
    live = await session.ask(text)
    is_answered = False
    with stopped_by_ctrl_c(live), without_echo():
        async for event in live.event_log.listen():
            screen.show(event)
            if isinstance(event, Done | Failed):
                is_answered = isinstance(event, Done) and event.state == "complete"
    await live.wait()
    return is_answered


@contextmanager
def stopped_by_ctrl_c(live: LiveTurn) -> Iterator[None]:
    """Ctrl-C stops the turn, not the program: what was said so far is kept."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, live.stop)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


@contextmanager
def without_echo() -> Iterator[None]:
    """While an answer is drawn the terminal shows no keys, a ^C least of all: they would stand where it is redrawn.
    What is typed meanwhile stands in the next prompt."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def terminal() -> Terminal:
    return Terminal(file=sys.stdout, highlight=False, markup=False, emoji=False)

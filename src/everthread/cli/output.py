"""What a command prints: text and tables for people, JSON for programs.

Messages hold anything: what a terminal would obey rather than show (escape sequences, NUL, half surrogate pairs,
marks that turn the direction of text) is shown escaped. Colours are for terminals only, and not where `NO_COLOR`
is set. Where stdout cannot encode a character, its escape is printed instead.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

Styled = tuple[str, str]
"""A piece of text and its style, such as "bold"; "" for none."""

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNBOUNDED = 100_000
"""Columns of what is no terminal: there a row is never cut or folded."""


def printable(text: str) -> str:
    """The text with what a terminal would obey shown escaped; lines and tabs stay."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same on a single line."""
    return " ".join(printable(text).split("\n")).replace("\t", " ")


def moment(at: datetime | None) -> str:
    """A time as people read it, in UTC."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def size(count: int) -> str:
    """Bytes as people read them."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def prepare_streams() -> None:
    """Never fail on a character, whatever the locale. (A test's own streams need no care.)"""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def let_go_of_stdout() -> None:
    """After a broken pipe: what is still buffered goes nowhere, so that leaving raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Output:
    """Where a command's results go. With `json`, stdout holds JSON and nothing else."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def document(self, value: object) -> None:
        """One JSON value on a line of its own; ASCII, so that it survives any locale."""
        sys.stdout.write(json.dumps(value, default=_plain) + "\n")

    def text(self, text: str) -> None:
        """A line for people."""
        sys.stdout.write(printable(text) + "\n")

    def flush(self) -> None:
        """Let whoever waits for it read what was printed, while the command goes on."""
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """A line beside the result, which a pipe does not carry on."""
        if not self.json:
            sys.stdout.flush()
            print(one_line(text), file=sys.stderr)

    def pieces(self, pieces: Iterable[Styled]) -> None:
        """Text with styles. Without colours it is only written: 100,000 messages pass here."""
        if _has_colours():
            from rich.text import Text  # noqa: PLC0415 - startup

            self.drawn(lambda console: console.print(Text.assemble(*pieces), end="", soft_wrap=True))
        else:
            sys.stdout.write("".join(text for text, _ in pieces))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows under their columns; a column named ">…" is aligned to the right."""
        from rich.table import Table  # noqa: PLC0415 - startup
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
        for name in columns:
            table.add_column(
                name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold"
            )
        for row in rows:
            table.add_row(*(Text(one_line(str(cell))) for cell in row))
        self.drawn(lambda console: console.print(table))

    def drawn(self, draw: Callable[[Console], None]) -> None:
        """What rich draws. It is written by us, because rich ends the program at a broken pipe."""
        console = _console()
        with console.capture() as captured:
            draw(console)
        sys.stdout.write("".join(line.rstrip(" ") + "\n" for line in captured.get().removesuffix("\n").split("\n")))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A bar on stderr while the block runs, if there is a terminal to show it; call with each step's size."""
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console  # noqa: PLC0415 - startup
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda step: bar.advance(task, step)


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - startup

    width = None if sys.stdout.isatty() else _UNBOUNDED
    return Console(
        file=sys.stdout, width=width, highlight=False, markup=False, emoji=False,
        color_system="auto" if _has_colours() else None,
    )  # fmt: skip


def _plain(value: Any) -> object:
    """What JSON has no word for."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)

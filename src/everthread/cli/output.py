"""What a command prints: text and tables for people, JSON for programs.

Messages may contain anything: what a terminal would obey rather than display (escape sequences, NUL, lone surrogates,
marks that change the direction of text) is printed escaped. Colours are for terminals only, and never if `NO_COLOR` is
set. A character that stdout cannot encode is printed as its escape.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from everthread.text.printable import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

Styled = tuple[str, str]
"""Text and its rich style, such as "bold"; "" for none."""

_UNBOUNDED = 100_000
"""The width if stdout is not a terminal: a row is never cut or folded there."""


def cut(text: str, most: int) -> str:
    """At most so many characters, the last one "…" where there were more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def format_time(at: datetime | None) -> str:
    """A time for people, in UTC."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M:%S")


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number with its noun: `1 message`, `1,200 entries`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def format_age(seconds: float) -> str:
    """How long something lasts, for people."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def format_bytes(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def prepare_streams() -> None:
    """Never fail on a character, whatever the locale. (A test's own streams are left alone.)"""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_stdout() -> None:
    """After a broken pipe: send what is still buffered nowhere, so that the exit does not raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def for_terminal(content: bytes) -> bytes:
    """A file's content as stdout gets it: as it is, but for what a terminal would obey."""
    return printable(content.decode(errors="replace")).encode() if sys.stdout.isatty() else content


class Output:
    """Where a command's results go. With `json`, stdout carries JSON and nothing else."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def document(self, value: object) -> None:
        """One JSON value on a line of its own, in ASCII so that it survives any locale."""
        sys.stdout.write(json.dumps(value, default=_jsonable) + "\n")

    def text(self, text: str) -> None:
        """A line for people."""
        sys.stdout.write(printable(text) + "\n")

    def flush(self) -> None:
        """Pass on what was printed while the command continues."""
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """A line on stderr for people, beside the result."""
        if not self.json:
            sys.stdout.flush()
            print(one_line(text), file=sys.stderr)

    def pieces(self, pieces: Iterable[Styled]) -> None:
        """Styled text. Without colours rich is bypassed: `show` may print 100,000 messages."""
        pieces = ((printable(text), style) for text, style in pieces)
        if _has_colours():
            from rich.text import Text  # noqa: PLC0415 - startup

            self.draw(lambda console: console.print(Text.assemble(*pieces), end="", soft_wrap=True))
        else:
            sys.stdout.write("".join(text for text, _ in pieces))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; marks before a column's name say what gives way in a narrow terminal (`everthread.cli.table`)."""
        from everthread.cli.table import build  # noqa: PLC0415 - startup

        names = [one_line(column) for column in columns]  # a query may name them as it likes
        cells = [[one_line(str(cell)) for cell in row] for row in rows]
        self.draw(
            lambda console: console.print(
                build(names, cells, console.width if sys.stdout.isatty() else None, _has_colours())
            )
        )

    def draw(self, paint: Callable[[Console], None]) -> None:
        """Print with rich. We write what it captured, because rich exits the program on a broken pipe."""
        console = _console()
        with console.capture() as captured:
            paint(console)
        sys.stdout.write("".join(line.rstrip(" ") + "\n" for line in captured.get().removesuffix("\n").split("\n")))

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar on stderr if that is a terminal. Yields a function to call with the size of each step."""
        if not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.console import Console  # noqa: PLC0415 - startup
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda step: bar.advance(task, step)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """A sign on stderr, if that is a terminal, that something of unknown length is going on."""
        if not sys.stderr.isatty():
            yield
            return
        from rich.console import Console  # noqa: PLC0415 - startup

        with Console(stderr=True).status(what):
            yield


def _has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - startup

    width = None if sys.stdout.isatty() else _UNBOUNDED
    return Console(
        file=sys.stdout, width=width, highlight=False, markup=False, emoji=False,
        color_system="auto" if _has_colours() else None,
    )  # fmt: skip


def _jsonable(value: Any) -> object:
    """Values that JSON has no type for."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return str(value)

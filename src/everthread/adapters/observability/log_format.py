"""How log records look on stderr, ours and those of libraries: for the command line, which owns the process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Literal, TextIO

from everthread.text.printable import one_line, printable

if TYPE_CHECKING:
    from structlog.typing import EventDict, ExcInfo, Processor

Style = Literal["console", "json"]


class LineFormatter(logging.Formatter):
    """One record, one line, rendered by structlog: text for people, or JSON. It is imported for the first record."""

    def __init__(self, style: Style, clean: Callable[[str], str] = str) -> None:
        super().__init__()
        self._wanted_style = style
        self._clean = clean
        """Applied last, to remove passwords."""

    def format(self, record: logging.LogRecord) -> str:
        return self._clean(self._formatter.format(record))

    @cached_property
    def _formatter(self) -> logging.Formatter:
        from structlog import dev, processors, stdlib  # noqa: PLC0415 - startup

        shared: list[Processor] = [
            stdlib.add_log_level,
            stdlib.add_logger_name,
            stdlib.ExtraAdder(),
            processors.TimeStamper(fmt="iso", utc=True),
        ]
        renderer: list[Processor] = (
            [processors.format_exc_info, processors.JSONRenderer(sort_keys=True)]
            if self._wanted_style == "json"
            else [_clean_texts, dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_write_traceback)]
        )
        return stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[stdlib.ProcessorFormatter.remove_processors_meta, *renderer]
        )


def _clean_texts(_logger: object, _method: str, said: EventDict) -> EventDict:
    """What is logged may quote a message, or what another program answered: it must not move the cursor, write to the
    clipboard, or look like a line of its own. JSON escapes all that by itself."""
    return {name: one_line(value) if isinstance(value, str) else value for name, value in said.items()}


def _write_traceback(into: TextIO, raised: ExcInfo) -> None:
    from structlog import dev  # noqa: PLC0415 - startup

    traced = StringIO()
    dev.plain_traceback(traced, raised)
    into.write("\n".join(f"  {line}" for line in printable(traced.getvalue()).split("\n")))


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the present `sys.stderr`, not to the one that was there when logging was set up."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # a variable there
        return sys.stderr

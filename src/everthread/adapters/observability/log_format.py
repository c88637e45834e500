"""How log records look on stderr, ours and those of libraries: for the command line, which owns the process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from structlog.typing import Processor

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
            else [dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=dev.plain_traceback)]
        )
        return stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[stdlib.ProcessorFormatter.remove_processors_meta, *renderer]
        )


class StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the present `sys.stderr`, not to the one that was there when logging was set up."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # a variable there
        return sys.stderr

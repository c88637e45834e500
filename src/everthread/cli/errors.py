"""Exit codes, and how an error is printed: one line on stderr, never a traceback, never a password."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING

from everthread.adapters.observability.log_format import LineFormatter, StderrHandler
from everthread.core import errors
from everthread.core.errors import EverthreadError
from everthread.text.printable import one_line

if TYPE_CHECKING:
    from everthread.settings import Settings


class ExitCode(IntEnum):
    """What the shell sees."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    INTEGRITY = 5
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """The reader of our output went away, as `head` does: 128 + SIGPIPE, like other programs."""


EXIT_CODES: Mapping[type[EverthreadError], ExitCode] = {
    EverthreadError: ExitCode.ERROR,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.Conflict: ExitCode.CONFLICT,
    errors.HeadMoved: ExitCode.CONFLICT,
    errors.TurnRunning: ExitCode.CONFLICT,
    errors.TurnLost: ExitCode.CONFLICT,
    errors.Held: ExitCode.CONFLICT,
    errors.Erased: ExitCode.CONFLICT,
    errors.Invalid: ExitCode.USAGE,
    errors.KeyReused: ExitCode.CONFLICT,
    errors.ContextOverflow: ExitCode.ERROR,
    errors.ModelError: ExitCode.ERROR,
    errors.ModelKeyMissing: ExitCode.ERROR,
    errors.ModelRefused: ExitCode.ERROR,
    errors.ModelOverflow: ExitCode.ERROR,
    errors.ModelBusy: ExitCode.ERROR,
    errors.ModelTimeout: ExitCode.ERROR,
    errors.ModelUnreachable: ExitCode.ERROR,
    errors.GraphFailed: ExitCode.ERROR,
    errors.MissingExtra: ExitCode.ERROR,
    errors.StoreError: ExitCode.ERROR,
    errors.StoreBusy: ExitCode.ERROR,
    errors.StoreFull: ExitCode.ERROR,
    errors.StoreGone: ExitCode.ERROR,
    errors.StoreDamaged: ExitCode.INTEGRITY,
}
"""Every error class; a test fails if one is missing."""


def exit_code(problem: EverthreadError) -> ExitCode:
    """The code of the error's class or of its nearest listed base class."""
    return next(EXIT_CODES[kind] for kind in type(problem).__mro__ if kind in EXIT_CODES)


_LOGGER = logging.getLogger("everthread")
_HANDLER = StderrHandler()
_urls: list[str] = []
"""URLs of the databases this process knows of; their passwords are removed from everything printed here."""


def print_error(message: str, *, code: str, retryable: bool = False, as_json: bool) -> None:
    """Print what failed."""
    line = one_line(_without_passwords(message))
    if as_json:
        line = json.dumps({"error": {"code": code, "message": line, "retryable": retryable}})
    else:
        line = f"everthread: {line}"
    print(line, file=sys.stderr)


def report_crash(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    """Our `sys.excepthook`: even a bug of ours is one line, and its traceback appears at log level debug only."""
    if _LOGGER.isEnabledFor(logging.DEBUG):
        text = "".join(traceback.format_exception(kind, problem, trace))
        print(_without_passwords(text), file=sys.stderr, end="")
    message = (
        f"internal error: {kind.__name__}: {problem}; please report it; EVERTHREAD_LOG_LEVEL=debug shows the traceback"
    )
    print_error(message, code="defect", as_json="--json" in sys.argv)


def configure_logging(settings: Settings) -> None:
    """Log to stderr at the level of the settings (libraries: warnings only), and keep the database's password out."""
    _urls.append(settings.database)
    _HANDLER.setFormatter(LineFormatter(settings.log_format.value, clean=_without_passwords))
    logging.getLogger().addHandler(_HANDLER)  # adding it twice has no effect
    _LOGGER.setLevel(settings.log_level.upper())


def _without_passwords(text: str) -> str:
    """Before the settings are read, any argument may be a URL, even a mistyped one."""
    from everthread.settings import PREFIX, without_passwords  # noqa: PLC0415 - startup

    suspects = [argument for argument in sys.argv[1:] if "@" in argument or "password" in argument]
    values = [suspect.partition("=")[2] if suspect.startswith("--") else suspect for suspect in suspects]
    variable = os.environ.get(f"{PREFIX}DATABASE", "")
    return without_passwords(text, [known for known in (*_urls, *values, variable) if known])

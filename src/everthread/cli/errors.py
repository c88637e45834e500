"""Exit codes, and how an error is told: one line on stderr, never a traceback, never a password."""

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

from everthread.adapters.observability.formatting import LineFormatter, StderrHandler
from everthread.cli.output import one_line
from everthread.core import errors
from everthread.core.errors import EverthreadError

if TYPE_CHECKING:
    from everthread.settings import Settings


class ExitCode(IntEnum):
    """What a command leaves behind for the shell."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    INTEGRITY = 5
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """Whoever read our output went away, as `head` does; what other programs leave in that case."""


EXIT_CODES: Mapping[type[EverthreadError], ExitCode] = {
    EverthreadError: ExitCode.ERROR,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.Conflict: ExitCode.CONFLICT,
    errors.HeadMoved: ExitCode.CONFLICT,
    errors.TurnRunning: ExitCode.CONFLICT,
    errors.TurnLost: ExitCode.CONFLICT,
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
    errors.MissingExtra: ExitCode.ERROR,
    errors.StoreError: ExitCode.ERROR,
    errors.StoreBusy: ExitCode.ERROR,
    errors.StoreFull: ExitCode.ERROR,
    errors.StoreGone: ExitCode.ERROR,
    errors.StoreDamaged: ExitCode.INTEGRITY,
}
"""Each error by name; a test fails when one is missing."""


def exit_code(problem: EverthreadError) -> ExitCode:
    """The code of the error, or of the nearest one above it."""
    return next(EXIT_CODES[kind] for kind in type(problem).__mro__ if kind in EXIT_CODES)


_LOGGER = logging.getLogger("everthread")
_HANDLER = StderrHandler()
_addresses: list[str] = []
"""Of the databases this process was told of; their passwords are left out of all that is said here."""


def tell(message: str, *, code: str, retryable: bool = False, as_json: bool) -> None:
    """Say what failed."""
    said = one_line(_without_passwords(message))
    if as_json:
        said = json.dumps({"error": {"code": code, "message": said, "retryable": retryable}})
    else:
        said = f"everthread: {said}"
    print(said, file=sys.stderr)


def tell_defect(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    """What `sys.excepthook` becomes: even a defect of ours is one line, and shows its place only when asked."""
    if _LOGGER.isEnabledFor(logging.DEBUG):
        text = "".join(traceback.format_exception(kind, problem, trace))
        print(_without_passwords(text), file=sys.stderr, end="")
    message = f"a defect: {kind.__name__}: {problem}; set EVERTHREAD_LOG_LEVEL=debug to see where, and report it"
    tell(message, code="defect", as_json="--json" in sys.argv)


def listen(settings: Settings) -> None:
    """Log to stderr what the settings ask for (libraries speak up only to warn), and know what is not to be said."""
    _addresses.append(settings.database)
    _HANDLER.setFormatter(LineFormatter(settings.log_format.value, clean=_without_passwords))
    logging.getLogger().addHandler(_HANDLER)  # once: it is known the second time
    _LOGGER.setLevel(settings.log_level.upper())


def _without_passwords(text: str) -> str:
    """Before the settings are read, any argument may be an address, also a mistyped one."""
    from everthread.settings import PREFIX, without_passwords  # noqa: PLC0415 - startup

    suspects = [argument for argument in sys.argv[1:] if "@" in argument or "password" in argument]
    values = [suspect.partition("=")[2] if suspect.startswith("--") else suspect for suspect in suspects]
    variable = os.environ.get(f"{PREFIX}DATABASE", "")
    return without_passwords(text, [known for known in (*_addresses, *values, variable) if known])

"""The command line: `everthread`, or `python -m everthread`.

app.py         the typer application: options every command takes, how a command runs, where its errors end
commands.py    the list of command modules; each module is named after its command, or after what its commands act on
invocation.py  what a command function receives: settings, database, output
options.py     arguments and options that several commands share
output.py      text for people, JSON for programs
errors.py      exit codes and how an error is printed

Importing all of this is cheap: what a command needs beyond typer is imported when it runs.
"""

from __future__ import annotations

import atexit
import gc
import sys

_GC_THRESHOLD = 100_000
"""Allocations between two garbage collections. Imported modules stay alive anyway; with Python's default of 700,
scanning them again and again took a tenth of the start of `serve`."""


def leave_quickly() -> None:
    """At the end of this process, leave what it holds to the system: looking through all that was imported for cycles,
    several times, took a seventh of the CPU time of `serve` from its start to its end without a request."""
    atexit.register(gc.freeze)


def main() -> None:
    """The entry point of the installed command."""
    gc.set_threshold(_GC_THRESHOLD)
    leave_quickly()
    try:
        from everthread.cli.commands import run  # noqa: PLC0415 - startup
        from everthread.cli.errors import report_crash  # noqa: PLC0415

        sys.excepthook = report_crash
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # during the imports; once a command runs, `run` handles it
        sys.exit(130)
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("typer", "rich"):
            raise
        sys.exit("everthread: the command line needs an extra: pip install 'everthread[cli]'")

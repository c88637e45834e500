"""The command line: `everthread`, or `python -m everthread`.

app.py       options that every command takes, how a command runs, where errors end
door.py      what a command is handed: the settings, the database, the output
output.py    text for people, JSON for programs
errors.py    exit codes
commands.py  every command: a file for each family

Importing all of this is cheap; what a command works with is imported when it runs.
"""

from __future__ import annotations

import gc
import sys

_GARBAGE = 100_000
"""How many objects are made between two looks for garbage. What is imported stays; with Python's 700, looking through
it again and again was a tenth of the start of `serve`."""


def main() -> None:
    """The entry point of the installed command."""
    gc.set_threshold(_GARBAGE)
    try:
        from everthread.cli.commands import run  # noqa: PLC0415 - startup
        from everthread.cli.errors import tell_defect  # noqa: PLC0415

        sys.excepthook = tell_defect
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # while importing; a command that runs ends in `run`
        sys.exit(130)

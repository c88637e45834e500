"""All commands, in groups, as the help lists them. A command's module is imported when it is called; the help needs
none of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

from typer.main import get_command

from everthread.cli.app import GROUPS, app, run_command

__all__ = ["COMMANDS", "GROUPS", "app", "build_command", "run"]

_MODULES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ls", "show", "search", "append", "fork", "copy", "pin", "delete"), "conversations"),
    **dict.fromkeys(("compact", "compactions", "diff"), "compaction"),
    **dict.fromkeys(("heads", "verify"), "verify"),
    **dict.fromkeys(("spread", "quarantine"), "trust"),
    **dict.fromkeys(("erase", "erasures"), "erase"),
    **dict.fromkeys(("stats", "migrate", "backup", "restore"), "database"),
    **dict.fromkeys(("clean", "sweep"), "clean"),
    **dict.fromkeys(("worker", "jobs", "reindex"), "jobs"),
    **dict.fromkeys(("serve", "key"), "serve"),
    "import": "import_history",
}
"""The modules of `everthread.cli` that are not called as their command is."""
COMMANDS: Final[Mapping[str, str]] = {
    name: _MODULES.get(name, name) for commands in GROUPS.values() for name in commands
}
"""Each command's module."""
_WITH_VALUE: Final = frozenset({"--database", "--owner", "--config"})
_COMPLETE: Final = "_EVERTHREAD_COMPLETE"
"""Set by the shell's completion (`everthread completion`)."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    if _COMPLETE in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415 - only here

        completion_init()
        words = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or "").split()[1:]
        return run_command(_build_for(_called(words)), arguments)
    called = _called(arguments)
    is_mistyped = called is not None and called not in COMMANDS  # then the nearest name is suggested
    return run_command(build_command() if is_mistyped else _build_for(called), arguments)


@cache
def build_command() -> Any:
    """The click command with every command below it."""
    for module in dict.fromkeys(COMMANDS.values()):
        import_module(f"everthread.cli.{module}")
    return get_command(app)


@cache
def _build_for(name: str | None) -> Any:
    """The click command with at least this command below it. Building all of them takes 40 ms, so a process that runs
    several command lines, as tests do, builds each once."""
    if name is not None and name in COMMANDS:
        import_module(f"everthread.cli.{COMMANDS[name]}")
    return get_command(app)


def _called(arguments: Sequence[str]) -> str | None:
    """The command's name on a command line, if any."""
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None

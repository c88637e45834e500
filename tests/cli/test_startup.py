"""The help appears at once: nothing is imported that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from everthread.cli.commands import COMMANDS, GROUPS, build_command

HEAVY = set("asyncpg detect_secrets langchain langchain_core langgraph rich rs_bpe sqlite3".split())
LOOK = """
import sys
from everthread.cli.commands import run
run(sys.argv[1:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["show", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", LOOK, *arguments], capture_output=True, text=True, check=True)
    assert HEAVY & set(ran.stderr.split()) == set()


def test_the_module_is_the_command() -> None:
    ran = subprocess.run([sys.executable, "-m", "everthread", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("everthread ")


def test_the_help_lists_every_command_in_its_group_and_no_other() -> None:
    assert set(build_command().commands) == set(COMMANDS)
    ran = subprocess.run([sys.executable, "-m", "everthread", "--help"], capture_output=True, text=True, check=True)
    for title, commands in GROUPS.items():
        listed = ran.stdout.partition(f"{title}:\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == list(commands)
        assert [" ".join(line.split()[1:]) for line in listed] == list(commands.values())  # none is cut short


def test_importing_the_library_imports_nothing_before_it_is_used() -> None:
    look = "import sys, everthread; print(*[name for name in sys.modules if name.startswith('everthread.')])"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


@pytest.mark.parametrize(
    ("line", "offered"), [("everthread compact", {"compact", "compactions"}), ("everthread ls --del", {"--deleted"})]
)
def test_a_shell_is_offered_commands_and_options(line: str, offered: set[str]) -> None:
    asking = {"_EVERTHREAD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    command = [sys.executable, "-c", "from everthread.cli import main; main()"]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **asking})
    assert set(ran.stdout.split()) == offered

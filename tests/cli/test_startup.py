"""The help appears at once: nothing is imported that it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = set("asyncpg detect_secrets langchain langchain_core langgraph rich sqlite3".split())
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

"""The lowest versions that pyproject.toml allows: whoever already has them must get what others get.

`make lowest` installs them into `.venv-lowest`; this runs with `make test-long`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.packaging.test_wheel import FIRST_PROGRAM, ROOT, run

PYTHON = ROOT / ".venv-lowest" / "bin" / "python"
SUITES = ("tests/checkpoints", "tests/langgraph", "tests/langchain", "tests/stores", "tests/turn")

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not PYTHON.exists(), reason="needs the lowest versions: make lowest"),
]


def test_the_readmes_first_program_runs_at_the_lowest_versions(tmp_path: Path) -> None:
    shown = FIRST_PROGRAM.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None
    assert run(PYTHON, "-c", shown["program"], folder=tmp_path) == shown["output"]


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_passes_at_the_lowest_versions(suite: str) -> None:
    command: list[str | Path] = [PYTHON, "-m", "pytest", suite, "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:]

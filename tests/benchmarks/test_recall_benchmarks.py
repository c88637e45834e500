"""The recall benchmark needs data from outside, and says where it is expected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_without(shared: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.recall"],
        cwd=ROOT,
        env={**os.environ, "EVERTHREAD_SHARED": str(shared)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_its_harness_it_says_where_it_looked_and_what_to_set(tmp_path: Path) -> None:
    done = run_without(tmp_path)
    assert done.returncode == 1
    assert str(tmp_path / "bench" / "recall") in done.stderr
    assert "EVERTHREAD_SHARED" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_any_conversation_it_names_each_file_it_expects(tmp_path: Path) -> None:
    harness = tmp_path / "bench" / "recall" / "recallbench"
    harness.mkdir(parents=True)
    for name in ("__init__", "lexical", "datasets", "retrievers", "runner", "types"):
        (harness / f"{name}.py").touch()
    done = run_without(tmp_path)
    assert done.returncode == 1
    for path in ("locomo/dev.json", "beam", "recall/zh-dev.json", "recall/tools-dev.json"):
        assert str(tmp_path / "data" / path) in done.stderr
    assert "EVERTHREAD_SHARED" in done.stderr
    assert "Traceback" not in done.stderr

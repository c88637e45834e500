"""Recorded agent runs beside the project: real calls, real results, in OpenAI's shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "trajectories"

Run = list[dict[str, Any]]


def tau_bench_runs() -> list[Run]:
    """200 airline conversations, 1,164 tool calls."""
    path = FOLDER / "tau-bench-airline.json"
    if not path.exists():
        pytest.skip("the recorded trajectories are not beside the project")
    return [run["traj"] for run in json.loads(path.read_text())]


def swe_agent_runs() -> list[Run]:
    """Coding runs; their results name no call id, only a list of ids."""
    if not (FOLDER / "swe-agent").exists():
        pytest.skip("the recorded trajectories are not beside the project")
    return [json.loads(path.read_text())["history"] for path in sorted((FOLDER / "swe-agent").glob("*.traj"))]

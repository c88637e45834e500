"""Recorded agent runs beside the project: real calls, real results, in OpenAI's shape."""

from __future__ import annotations

import json
from typing import Any

from tests.shared_data import shared_folder

Run = list[dict[str, Any]]


def tau_bench_runs() -> list[Run]:
    """200 airline conversations, 1,164 tool calls."""
    path = shared_folder("data/trajectories/tau-bench-airline.json")
    return [run["traj"] for run in json.loads(path.read_text())]


def swe_agent_runs() -> list[Run]:
    """Coding runs; their results name no call id, only a list of ids."""
    folder = shared_folder("data/trajectories/swe-agent")
    return [json.loads(path.read_text())["history"] for path in sorted(folder.glob("*.traj"))]

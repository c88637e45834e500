"""The benchmarks of turns run, at sizes that prove nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs everthread[adopt]")

from benchmarks import __main__ as program
from benchmarks import turns


def test_the_cost_of_a_turn_is_told_beside_a_bare_graph(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    monkeypatch.setattr(turns, "LONG_TOKENS", 300)
    monkeypatch.setattr(turns, "TURNS", 3)
    tiny = ("--rounds", "2", "--turn-lengths", "8", "--turns-before", "2", "--turns-measured", "3", "--out", str(out))
    monkeypatch.setattr(sys, "argv", ["benchmarks", "turn", *tiny])
    program.main()
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert "one node on SqliteSaver" in {row["system"] for row in results["turns"]}
    assert all(row["least CPU ms"] > 0 for row in results["turns"])
    assert results["streaming"][0]["events taken"] == 300
    assert {row["system"] for row in results["savings"]} == {"everthread", "newest 40", "full history"}
    assert results["turn_storage"][0]["what"] == "the file"

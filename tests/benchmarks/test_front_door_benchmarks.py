"""The benchmark of the front door runs, at sizes that prove nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as program
from benchmarks import front_door
from benchmarks.seeded_talk import Talk

TINY = ("--front-lengths", "10", "--front-rounds", "1", "--front-history", "50", "--front-seconds", "0.2")


def results(monkeypatch: pytest.MonkeyPatch, folder: Path, scenario: str) -> Any:
    out = folder / "figures.json"
    monkeypatch.setattr(front_door, "_TURNS", 2)
    monkeypatch.setattr(front_door, "_FEW_TURNS", 1)
    monkeypatch.setattr(sys, "argv", ["benchmarks", scenario, *TINY, "--out", str(out)])
    program.main()
    return json.loads(out.read_text(encoding="utf-8"))["results"][scenario]


def test_every_turn_is_measured_archived_only_and_in_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = results(monkeypatch, tmp_path, "front_door")
    assert [row["system"].rsplit(", ", 1)[0] for row in rows[::2]] == [*front_door.SHAPES]
    assert all(row["plain ms"] > 0 and row["calls ms"] > 0 for row in rows)
    assert all(row["CPU ms"] >= row["calls ms"] for row in rows)


def test_the_loop_is_measured_with_an_idle_worker_and_with_one_at_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = results(monkeypatch, tmp_path, "front_door_lag")
    assert [row["system"] for row in rows] == ["the worker idle", "the worker at full work"]
    assert all(row["append p99 ms"] > 0 for row in rows)


def test_turns_have_the_sizes_they_are_called_by_and_no_two_are_alike() -> None:
    talk = Talk(1)
    sizes = {name: [len(one["content"]) for one in shape(talk)] for name, shape in front_door.SHAPES.items()}
    assert [len(each) for each in sizes.values()] == [2, 5, 5, 5]
    assert all(150 <= size <= 200 for size in sizes["2 messages of 200 B"])
    assert all(1_500 <= size <= 2_100 for size in sizes["5 of 2 KB"])
    assert 95_000 <= max(sizes["with a 100 KB result"]) <= 100_000
    assert talk.turn(5, 400) != talk.turn(5, 400)
    assert Talk(7).turn(5, 400) == Talk(7).turn(5, 400)

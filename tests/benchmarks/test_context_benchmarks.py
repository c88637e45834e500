"""The benchmarks of contexts run, at sizes that prove nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as program

TINY = ("--rounds", "1", "--context-lengths", "40,80", "--histories", "3", "--talks", "1")


def results(monkeypatch: pytest.MonkeyPatch, folder: Path, *scenarios: str) -> Any:
    out = folder / "figures.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks", *scenarios, *TINY, "--out", str(out)])
    program.main()
    return json.loads(out.read_text(encoding="utf-8"))["results"]


def test_the_cost_of_a_context_is_told_by_length_compacted_and_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = results(monkeypatch, tmp_path, "context_cost")["context_cost"]
    assert {(row["system"], row["messages"]) for row in rows} == {
        (how, length) for how in ("compacted", "not compacted") for length in (40, 80)
    }
    assert all(row["least CPU ms"] > 0 and row["peak KB"] > 0 for row in rows)
    assert all((row["compactions"] > 0) == (row["system"] == "compacted") for row in rows)


def test_no_request_of_a_few_random_histories_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = results(monkeypatch, tmp_path, "invalid_requests")["invalid_requests"]
    assert {row["refused %"] for row in rows if row["system"] == "everthread"} == {0}


def test_a_group_names_its_scenarios_and_none_is_in_two() -> None:
    assert program._chosen(["context"]) == [*program.CONTEXT]
    assert not program.LOG.keys() & program.CONTEXT.keys()


@pytest.mark.long
def test_tokens_and_money_are_told_for_every_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared: Path) -> None:
    rows = results(monkeypatch, tmp_path, "tokens")["tokens"]
    assert {row["data"] for row in rows} == {"LoCoMo", "BEAM"}
    assert {row["too long"] for row in rows if row["system"].startswith("everthread")} == {0}

"""The benchmarks of the service run, at sizes that prove nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs everthread[server]")

from benchmarks import service

TINY = service.Sizes(streams=2, tokens=20, many_streams=2, many_tokens=10, begun=2, rounds=1, messages=200, pages=3)


@pytest.mark.parametrize(
    "scenarios", [("first",), pytest.param(("first", "gaps", "pages"), marks=pytest.mark.long)], ids="+".join
)
def test_each_scenario_asks_a_server_of_its_own(
    scenarios: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "figures.json"
    monkeypatch.setattr(service, "SMALL", TINY)
    monkeypatch.setattr(sys, "argv", ["benchmarks.service", *scenarios, "--small", "--out", str(out)])
    service.main()
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    told = {"first": "p95 ms", "gaps": "p99 gap ms", "pages": "p95 ms"}
    assert all(results[scenario][0][told[scenario]] > 0 for scenario in scenarios)


def test_a_token_is_measured_beside_the_floor() -> None:
    rows = {str(row["system"]): row for row in service._token_rows(TINY, 0.0, "at once")}
    assert list(rows) == ["everthread, at once", "bare ASGI, at once"]
    assert all(row["events an answer"] == TINY.tokens for row in rows.values())

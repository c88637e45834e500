"""The benchmarks of many conversations and of two servers run, at sizes that prove nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs everthread[server]")

from benchmarks import load, servers

TINY = load.Sizes(conversations=(1, 3), tokens=20, turns=3, rounds=1, processes=(1,), at_processes=2)


def test_many_conversations_are_measured_beside_an_app_that_keeps_nothing() -> None:
    rows = load.conversations(TINY)
    measured = [(row["at a time"], row["system"]) for row in rows]
    assert measured == [(count, system) for count in (1, 3) for system in ("everthread", "sse-starlette")]
    assert all(row["turns/s"] > 0 and row["first p99 ms"] > 0 for row in rows)


def test_syncs_are_read_from_the_table_of_strace() -> None:
    table = """% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.006213          25       240           fdatasync
 10.00    0.000613          25         3         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.006213          25       243         1 total
"""
    assert load._calls(table) == 243


@pytest.mark.long
def test_processes_on_postgres_are_measured_with_their_database() -> None:
    assert all(row["database CPU ms a turn"] >= 0 and row["turns/s"] > 0 for row in load.processes(TINY))


@pytest.mark.long
def test_two_servers_are_measured_both_ways(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["benchmarks.servers", "--small", "--out", str(out)])
    servers.main()
    results = json.loads(out.read_text(encoding="utf-8"))["results"]
    assert results.keys() == servers.SAMPLES.keys()
    assert all(row["samples"] >= servers.SMALL.samples for name in results if name != "death" for row in results[name])

"""An invariant is done when tests of its name run on every store it concerns, not when someone says so.

`docs/invariants.toml` holds the claims. A test counts for invariant N when its function is named
`test_i<N>_…`, and for a store when that store's name stands in its parameters: `[sqlite]`, `[sqlite-kill]`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

STORES = ("memory", "sqlite", "postgres")
NAMED_TEST = re.compile(r"::test_i(?P<number>\d+)_\w*(?:\[(?P<parameters>.*)\])?$")
NAMED_FUNCTION = re.compile(r"def test_i\d+_")

Claims = Mapping[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def claims(root: Path) -> Claims:
    return tomllib.loads((root / "docs" / "invariants.toml").read_text(encoding="utf-8"))


def collected_by(session: pytest.Session, root: Path) -> list[str]:
    """The ids of all tests that `make test` runs in files that speak of invariants: as it has found them itself, or,
    where only a part of the tests is run, as a run of its own finds them."""
    found = [item.nodeid for item in session.items]
    files = {id.partition("::")[0] for id in found}
    is_whole = not session.config.option.keyword and files.issuperset(_files_with_invariants(root))
    return found if is_whole else collected_in(root)


def collected_in(root: Path) -> list[str]:
    """The same, by another pytest."""
    # A worker of pytest-xdist marks its environment; a run of its own must not take itself for that worker.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
    run = subprocess.run(
        (*command, *_files_with_invariants(root)),
        cwd=root,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    nothing_collected = 5
    assert run.returncode in {0, nothing_collected}, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if "::" in line]


def _files_with_invariants(root: Path) -> list[str]:
    files = sorted((root / "tests").rglob("test_*.py"))
    named = [path for path in files if NAMED_FUNCTION.search(path.read_text(encoding="utf-8"))]
    return [str(path.relative_to(root)) for path in named]


def missing(claims: Claims, test_ids: Iterable[str]) -> list[str]:
    """What a claim of "done" still lacks, a line each."""
    named = [match for match in map(NAMED_TEST.search, test_ids) if match]
    parameters: dict[str, list[str]] = {}
    for match in named:
        parameters.setdefault(f"I{match['number']}", []).append(match["parameters"] or "")
    gaps = []
    for name, claim in claims.items():
        if claim["status"] != "done":
            continue
        if name not in parameters:
            gaps.append(f"{name} has no test")
        elif absent := [s for s in claim["stores"] if not any(s in given for given in parameters[name])]:
            gaps.append(f"{name} has no test on {', '.join(absent)}")
    return gaps


def test_all_forty_invariants_are_listed(claims: Claims) -> None:
    assert list(claims) == [f"I{number}" for number in range(1, 41)]


def test_every_claim_is_well_formed(claims: Claims) -> None:
    for name, claim in claims.items():
        assert set(claim) == {"title", "status", "stores"}, name
        assert claim["title"], name
        assert claim["status"] in {"done", "open"}, name
        assert set(claim["stores"]) <= set(STORES), name


def test_a_done_invariant_has_a_test_by_its_name_on_each_store(
    claims: Claims, root: Path, request: pytest.FixtureRequest
) -> None:
    assert missing(claims, collected_by(request.session, root)) == []


@pytest.mark.parametrize(
    ("test_ids", "gaps"),
    [
        ([], ["I2 has no test"]),
        (["tests/a.py::test_i22_x[sqlite]", "tests/a.py::test_i22_x[memory]"], ["I2 has no test"]),
        (["tests/a.py::test_i2_x[sqlite-kill]"], ["I2 has no test on memory"]),
        (["tests/a.py::test_i2_x[sqlite]", "tests/b.py::TestB::test_i2_y[3-memory]"], []),
    ],
)
def test_a_claim_without_its_tests_is_found(test_ids: list[str], gaps: list[str]) -> None:
    claims = {
        "I1": {"title": "open ones may wait", "status": "open", "stores": ["postgres"]},
        "I2": {"title": "done ones may not", "status": "done", "stores": ["sqlite", "memory"]},
    }
    assert missing(claims, test_ids) == gaps

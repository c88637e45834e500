"""Every method of LangGraph's client for JavaScript, in both of its versions, beside LangGraph's own server. Writes the
table of its steps in docs/reference/langgraph-protocol.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.http.protocol.outside_suites import write_table
from tests.http.protocol.rig import serving
from tests.http.protocol.sdk_surface import findings, shape
from tests.http.protocol.test_node import CLIENTS, copy_program, install, run
from tests.http.protocol.test_reference_server import REFERENCE, reference

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference server: make peers"),
]

MARK = "steps of the clients for JavaScript: written by tests/http/protocol/test_javascript_steps.py"
DECLARED: Mapping[str, str] = {
    "runs.stream": "the metadata of a thread are not in those of its messages",
    "threads.search": "there a question stays listed when the state was changed since",
}
"""Steps that differ, and why."""


async def test_every_step_comes_to_what_it_comes_to_on_langgraphs_own_server(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs Node and npm")
    results: dict[str, dict[str, str]] = {}
    async with reference(tmp_path) as theirs, serving("memory://") as ours:
        for version in CLIENTS:
            folder = tmp_path / version
            copy_program("steps.mjs", version, folder)
            await install(npm, folder)
            expected = _shapes(json.loads(await run(folder, "node", "steps.mjs", theirs)))
            seen = _shapes(json.loads(await run(folder, "node", "steps.mjs", ours.address)))
            results[version] = _verdicts(expected, seen)
    titles = list(dict.fromkeys(title for verdicts in results.values() for title in verdicts))
    rows = [f"| {title} | {' | '.join(results[version][title] for version in CLIENTS)} |" for title in titles]
    write_table(MARK, ["step", *CLIENTS], rows)
    other = {
        (version, title): verdict
        for version, verdicts in results.items()
        for title, verdict in verdicts.items()
        if verdict not in (*_EXPECTED, DECLARED.get(title))
    }
    assert other == {}


_SAME, _REFUSED, _ONLY_HERE, _NOT_IN_CLIENT = "the same", "refused by both", "only here", "–"
_EXPECTED = (_SAME, _REFUSED, _ONLY_HERE, _NOT_IN_CLIENT)


def _shapes(results: Mapping[str, Any]) -> dict[str, Any]:
    """Errors stay as they are."""
    return {title: value if _is_error(value) else shape(value) for title, value in results.items()}


def _is_error(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"raised", "status"}


def _verdicts(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, str]:
    found = findings(expected, seen)
    return {title: _verdict(title, there, seen[title], found.get(title)) for title, there in expected.items()}


def _verdict(title: str, there: Any, here: Any, differing: list[str] | None) -> str:
    if differing:
        return DECLARED.get(title) or "; ".join(differing)
    if not _is_error(there):
        return _SAME
    if there["raised"] == "TypeError":  # a method that this version does not have
        return _NOT_IN_CLIENT
    return _REFUSED if _is_error(here) else _ONLY_HERE

"""The whole of LangGraph's Python clients, beside LangGraph's own server: nothing fails here that works there, and
nothing is missing from what comes back, but what docs/reference/langgraph-protocol.md declares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.http.protocol.rig import serving
from tests.http.protocol.sdk_surface import findings, play, uncalled
from tests.http.protocol.test_reference_server import REFERENCE, reference

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference server: make peers"),
]

DECLARED: Mapping[str, str] = {
    "start later": "after_seconds",
    "which waits": "after_seconds",
    "join the later one": "after_seconds",
    "wait later": "after_seconds",
    "stream later": "after_seconds",
    "part of its state": "select is obeyed here, and ignored there",
    "a part at a checkpoint": "select is obeyed here, and ignored there",
    "part of its history": "select is obeyed here, and ignored there",
    "the copy": "no config until it has a run of its own",
    "search threads": "another order without sort_by",
    "stream with feedback": "where that server cannot ask for feedback, an error there",
}
"""Calls whose answers differ, and why."""


def test_every_method_and_every_argument_is_tried() -> None:
    async def called() -> list[str]:
        async with serving("memory://") as ours:
            return uncalled([await play(ours.address, sync=False)])

    assert asyncio.run(called()) == []


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
async def test_what_langgraphs_own_server_answers_is_answered_here(tmp_path: Path, sync: bool) -> None:
    async with reference(tmp_path) as theirs, serving("memory://") as ours:
        expected, seen = await play(theirs, sync=sync), await play(ours.address, sync=sync)
    found = findings(expected.seen, seen.seen)
    assert {title: differing for title, differing in found.items() if title not in DECLARED} == {}

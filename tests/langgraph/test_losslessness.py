"""The table of what is kept is measured, and it is the one that the documentation shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.losslessness import measure, table
from benchmarks.scenarios import SCENES

ROOT = Path(__file__).parents[2]
PAGES = ("docs/how-to/keep-full-history.md", "docs/zh/keep-full-history.md")

IN_READMES = {
    "LangChain summaries over many turns",
    "update_state with RemoveMessage",
    'durability="exit" with summaries',
    "deepagents with subagents",
    "deepagents, tool result of 180 kB",
}


@pytest.mark.parametrize("scene", SCENES)
async def test_everthread_has_all_that_was_said_and_the_pages_say_so(scene: str) -> None:
    row = await measure(scene, SCENES[scene])
    assert row.in_everthread == row.said
    assert row.is_in_order
    line = table([row]).splitlines()[-1]
    if scene in IN_READMES:
        figures = line.partition("|")[2].partition("|")[2]
        assert all(figures in (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "README.zh-CN.md"))
    for page in PAGES:
        assert line in (ROOT / page).read_text(encoding="utf-8"), page

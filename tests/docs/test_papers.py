"""The page with the papers' names: what it says is there, is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import everthread
from everthread.compaction.policy import CompactionPolicy
from everthread.http.app import create_app
from everthread.settings import Settings
from everthread.turn.graph import NODES
from everthread.turn.result import RESULT_FIELDS
from everthread.turn.state import AppState

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    (DOCS / page).read_text(encoding="utf-8") for page in ("explanation/from-the-papers.md", "zh/from-the-papers.md")
]


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_every_field_and_node_has_its_place(page: str) -> None:
    named = set(re.findall(r"`([a-z_]+)`", page))
    policy = {"enabled", "threshold", "keep_recent", "summary_max_tokens", "summary_model", "summary_timeout_seconds"}
    assert policy <= set(CompactionPolicy.__dataclass_fields__)
    assert {*AppState.__annotations__, *NODES, *RESULT_FIELDS, *policy} <= named


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
async def test_every_route_that_is_named_exists(page: str) -> None:
    async with everthread.open("memory://") as et:
        paths = create_app(et, Settings(database="memory://")).openapi()["paths"]
    known = {(method.upper(), re.sub(r"\{\w+\}", "{}", path)) for path, verbs in paths.items() for method in verbs}
    for method, path in re.findall(r"`(GET|POST|PUT) (/[^`?]+)[^`]*`", page):
        plain = re.sub(r"\{\w+\}", "{}", path).replace("/assistants/everthread/", "/assistants/{}/")
        assert {(method, plain), (method, f"/api/v1{plain}")} & known, f"{method} {path}"

"""The guide can be followed: its program prints what it shows, and its table names every event there is."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

from everthread.core import turn_events
from everthread.core.turn_events import KINDS
from tests.forkserver import SERVING, ForkServer

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-turn.md"


def test_the_program_prints_what_the_page_shows(forkserver: ForkServer, tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    program, shown = re.findall(r"^```(?:python)?\n(.*?)^```$", text, re.M | re.S)[:2]
    run = forkserver.run_program("-c", program, folder=tmp_path, env=os.environ, needs=SERVING)
    assert (run.out, run.err) == (shown, "")


def test_every_event_is_documented_with_its_fields() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M))
    assert set(rows) == set(KINDS)
    kinds = {getattr(kind, "kind", ""): kind for kind in vars(turn_events).values() if isinstance(kind, type)}
    for name, row in rows.items():
        described = re.sub(r"\(.*?\)", "", row)
        assert {word.strip() for word in described.split(",")} == {one.name for one in fields(kinds[name])} - {"number"}

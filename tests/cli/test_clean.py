"""`everthread clean`: what it would remove, and what it removes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import everthread
from tests.cli.conftest import Quick


async def used(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        workspace = await et.workspaces.open(await et.conversations.create(id="trip"))
        workspace.write("a", b"abc")
        workspace.close()


def test_a_dry_run_removes_nothing(quick: Quick, tmp_path: Path) -> None:
    asyncio.run(used(f"sqlite:///{tmp_path / 'et.db'}"))
    assert (
        quick("clean", "--dry-run").out == "0 workspaces would be removed (0 B); 0 are in use, 1 were used recently\n"
    )
    dry = quick("clean", "--dry-run", "--days", "0", "--json").json
    assert (dry["dry_run"], [(one["conversation_id"], one["bytes"]) for one in dry["removed"]]) == (True, [("trip", 3)])
    assert Path(dry["removed"][0]["path"]).is_dir()
    done = quick("clean", "--days", "0")
    assert "1 workspace removed (3 B)" in done.out
    assert not Path(dry["removed"][0]["path"]).exists()
    assert quick("show", "trip").code == 0


def test_days_below_nought_are_refused(quick: Quick) -> None:
    assert quick("clean", "--days", "-1").code == 2

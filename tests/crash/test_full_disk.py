"""A full disk fails an append cleanly: typed, nothing of it stored, all before it safe; and then work goes on."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from everthread.adapters.stores.sqlite.erase import NOT_REWRITTEN
from tests.crash.fill_disk import ATTEMPTS, BATCH
from tests.crash.small_disk import UNAVAILABLE
from tests.forkserver import ForkServer

MEGABYTE = 1 << 20


def story(forkserver: ForkServer, call: str, folder: Path, **arguments: Any) -> dict[str, Any]:
    """What a child tells of a disk that filled up under it."""
    report = folder / "report"
    with tempfile.TemporaryDirectory() as disk:
        os.chmod(disk, 0o755)  # PostgreSQL's user must get there
        child = forkserver.start(call, folder=disk, report=str(report), **arguments)
        status = child.wait()
    if status == UNAVAILABLE:
        pytest.skip(child.said().strip())
    assert status == 0, child.said()
    told: dict[str, Any] = json.loads(report.read_text())
    return told


def assert_clean(told: dict[str, Any], errors: set[str]) -> None:
    """Twice full: each time typed errors, all that was acknowledged and nothing else; between them work went on."""
    for acknowledged, problems, seen in (
        (told["acknowledged"], told["problems"], told["seen"]),
        (told["acknowledged again"], told["problems again"], told["seen again"]),
    ):
        assert len(problems) == ATTEMPTS
        assert set(problems) <= errors
        assert seen == {"messages": acknowledged * BATCH, "entries": acknowledged * BATCH, "ok": True}
    assert told["with room"] == [True] * BATCH
    assert told["acknowledged again"] > told["acknowledged"] > 5


def assert_erase_is_clean(told: dict[str, Any], errors: set[str]) -> None:
    """An erase that found no room has happened, or it has not; and the database can be opened."""
    erase, opened = told["erase"], told["after opening"]
    assert erase["outcome"] in {"done", *errors}
    assert opened["ok"]
    assert opened["entries"] == told["acknowledged again"] * BATCH
    assert opened["messages"] == opened["entries"] - (not erase["is readable"])


ERRORS = {"tmpfs": {"StoreFull"}, "file limit": {"StoreError"}}
"""SQLite tells a file that may not grow from no other failed write."""


@pytest.mark.parametrize("way", ERRORS)
@pytest.mark.parametrize("store", ["sqlite"])
def test_i29_a_full_disk_fails_cleanly(store: str, way: str, forkserver: ForkServer, tmp_path: Path) -> None:
    sizes = {"size_bytes": 6 * MEGABYTE, "ballast_bytes": 3 * MEGABYTE}
    told = story(forkserver, "tests.crash.fill_disk:fill_sqlite", tmp_path, way=way, **sizes)
    assert_clean(told, ERRORS[way])
    assert_erase_is_clean(told, ERRORS[way])


@pytest.mark.parametrize(
    ("left_bytes", "error"),
    [(2 * MEGABYTE, "StoreFull"), (12 * MEGABYTE, "StoreGone")],
    ids=["no room for rows", "no room for the server's log"],
)
@pytest.mark.parametrize("store", ["postgres"])
def test_i29_a_full_disk_under_the_server_fails_cleanly(
    store: str, left_bytes: int, error: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    """Either the rows find no room and are refused, or a new file of the server's log does not, and it stops."""
    sizes = {"size_bytes": 200 * MEGABYTE, "left_bytes": left_bytes}
    told = story(forkserver, "tests.crash.fill_disk:fill_postgres", tmp_path, **sizes)
    acknowledged = told["acknowledged"] * BATCH
    assert set(told["problems"]) == {error}
    assert told["server survived"] == (error == "StoreFull")
    assert told["seen"] == {"messages": acknowledged, "entries": acknowledged, "ok": True}
    assert told["with room"] == [True] * BATCH
    assert told["seen again"] == {"messages": acknowledged + BATCH, "entries": acknowledged + BATCH, "ok": True}


def test_i29_an_erase_that_finds_no_room_to_rewrite_the_file_is_finished_later(
    forkserver: ForkServer, tmp_path: Path
) -> None:
    """On SQLite. The text is unreadable at once, the database opens as ever, and with room its bytes go."""
    sizes = {"size_bytes": 12 * MEGABYTE, "left_bytes": MEGABYTE}
    told = story(forkserver, "tests.crash.fill_disk:erase_without_room", tmp_path, **sizes)
    assert any(left.startswith(NOT_REWRITTEN) for left in told["cannot reach"])
    assert told["seen"]["ok"]
    assert told["seen"]["messages"] == told["seen"]["entries"] - 1
    assert told["opened"] == told["opened with room"] == told["seen"]
    assert told["still in"] == []

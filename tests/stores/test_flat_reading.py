"""What SQLite does for a view is the same with ten compactions and with hundreds, counted in its own steps."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import everthread
from everthread.adapters.stores.sqlite import views
from everthread.adapters.stores.sqlite.files import connect
from everthread.core.nouns import Ref
from tests.contracts.views import tell

NARROW = {"fan_in": 2, "leaf_max_messages": 8}


async def written(file: Path, turns: int) -> None:
    async with everthread.open(f"sqlite:///{file}") as et:
        conv = await et.conversations.create(id="c")
        await tell(conv, turns)
        await conv.compact(compaction=NARROW)


def steps(file: Path) -> float:
    """Steps of SQLite's machine for the inputs of one view, by the summaries it shows."""
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1

    with closing(connect(file)) as connection:
        connection.set_progress_handler(count, 1)
        inputs = views.read_inputs(connection, Ref("local", "c"), None)
    return taken / (len(inputs.summaries) + 1)


async def test_a_view_costs_sqlite_the_same_at_any_length(tmp_path: Path) -> None:
    short, long = tmp_path / "short.db", tmp_path / "long.db"
    await written(short, 12)
    await written(long, 200)
    assert steps(long) <= 1.3 * steps(short)

"""A migration that is killed anywhere is finished by whoever opens the database next."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import everthread
from tests.crash.older import OLD_MESSAGES, make_older
from tests.crash.trial import NewTrial

FROM_EMPTY = {
    "sqlite": (("migrate.begun", 1), ("migrate.before_commit", 1)),
    "postgres": (
        ("migrate.begun", 1),
        ("migrate.step_done", 1),
        ("migrate.step_done", 2),
        ("migrate.before_commit", 1),
    ),
}
"""A new SQLite file is made at once, without steps."""
FROM_OLDER = (("migrate.begun", 1), ("migrate.step_done", 1), ("migrate.before_commit", 1))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_i28_a_migration_from_nothing_killed_midway_resumes(store: str, new_trial: NewTrial) -> None:
    trial = new_trial(1)
    for point, reach in FROM_EMPTY[store]:
        trial.kill_at(point, reach)
    trial.finish()
    trial.check(is_finished=True)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_i28_a_migration_from_an_older_revision_killed_midway_resumes(
    store: str, new_trial: NewTrial, tmp_path: Path
) -> None:
    trial = new_trial(2)
    make_older(trial.url, tmp_path)
    for point, reach in FROM_OLDER:
        trial.kill_at(point, reach)
    asyncio.run(assert_old_messages_are_there(trial.url))
    trial.finish()
    trial.check(is_finished=True)


async def assert_old_messages_are_there(url: str) -> None:
    async with everthread.open(url) as et:
        conv = await et.conversations.get("old")
        assert [message.payload async for message in conv.messages(branch="main")] == OLD_MESSAGES
        assert (await conv.message("old-7")).is_pinned
        assert (await conv.message("old-sibling")).text == "said otherwise"
        assert (await et.verify()).ok

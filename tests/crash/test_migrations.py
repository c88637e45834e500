"""A migration that is killed anywhere is finished by whoever opens the database next."""

from __future__ import annotations

import asyncio

import pytest

import everthread
from everthread.adapters.stores import schema
from everthread.adapters.stores.schema import Database
from tests.crash.trial import NewTrial
from tests.postgres import Server
from tests.stores.older import make_older


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_i28_a_migration_from_nothing_killed_midway_resumes(store: Database, new_trial: NewTrial) -> None:
    trial = new_trial(1)
    middle = len(schema.create(store)) // 2
    for point, reach in (("migrate.begun", 1), ("migrate.step_done", middle), ("migrate.before_commit", 1)):
        trial.kill_at(point, reach)
    trial.finish()
    trial.check(is_finished=True)


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_i28_a_migration_from_an_older_revision_killed_midway_resumes(
    store: Database, new_trial: NewTrial, request: pytest.FixtureRequest
) -> None:
    trial = new_trial(2)
    server: Server | None = request.getfixturevalue("postgres_server") if store == "postgres" else None
    make_older(trial.url, server)
    last = len(schema.MIGRATIONS[0].upgrade(store))
    for place in (1, last // 2, last):
        trial.kill_at("migrate.step_done", place)
    trial.kill_at("migrate.before_commit", 1)
    asyncio.run(assert_old_messages_are_there(trial.url))
    trial.finish()
    trial.check(is_finished=True)


async def assert_old_messages_are_there(url: str) -> None:
    async with everthread.open(url, worker=False, embedder=None) as et:
        conv = await et.conversations.get("trip")
        assert (await conv.message("q7")).is_pinned
        assert (await conv.message("back")).text == "We are back."
        assert (await et.verify()).ok

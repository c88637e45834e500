"""How PostgreSQL's tables come into being: step by step, one process at a time, killed anywhere and resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NoReturn

import pytest

import everthread
from everthread.adapters.stores import schema
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.tables import migrate
from everthread.core import failpoints
from tests.postgres import Server


class _PlugPulled(Exception):
    """Stands for a crash at a fail point."""


@pytest.fixture
def empty(postgres_server: Server) -> Iterator[str]:
    """The address of a database without tables."""
    with postgres_server.database(migrated=False) as url:
        yield url


def _pull_the_plug_at(name: str) -> None:
    def trap(reached: str) -> None:
        if reached == name:
            _pull()

    failpoints.arm(trap)


def _pull() -> NoReturn:
    failpoints.arm(None)
    raise _PlugPulled


@pytest.mark.parametrize("place", ["migrate.begun", "migrate.step_done", "migrate.before_commit"])
async def test_i28_a_migration_that_ends_anywhere_resumes(empty: str, place: str) -> None:
    _pull_the_plug_at(place)
    with pytest.raises(_PlugPulled):
        await migrate(parse(empty))
    async with everthread.open(empty) as et:
        conv = await et.conversations.create()
        assert [receipt.seq for receipt in await conv.append({"role": "user", "content": "hi"})] == [1]


async def test_processes_that_open_an_empty_database_at_once_take_turns(empty: str) -> None:
    ran = await asyncio.gather(*(migrate(parse(empty)) for _ in range(4)))
    assert sorted(map(len, ran))[:3] == [0, 0, 0]
    assert max(ran, key=len)[-1] == schema.VERSION

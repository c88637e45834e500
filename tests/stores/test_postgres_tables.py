"""How PostgreSQL's tables come into being: step by step, one process at a time, killed anywhere and resumed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import NoReturn

import pytest

import everthread
from everthread.adapters.stores.migrating import NEWEST
from everthread.adapters.stores.postgres.address import parse
from everthread.adapters.stores.postgres.tables import migrate
from everthread.core import failpoints
from everthread.core.errors import StoreError
from tests.postgres import Server, name_of


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


async def test_each_step_is_a_transaction_of_its_own(empty: str, postgres_server: Server) -> None:
    steps: list[str] = []

    def trap(reached: str) -> None:
        if reached == "migrate.step_done":
            steps.append(reached)
            if len(steps) == 2:
                _pull()

    failpoints.arm(trap)
    with pytest.raises(_PlugPulled):
        await migrate(parse(empty))
    assert postgres_server.run_sql("SELECT version_num FROM alembic_version", name_of(empty)) == "0001"
    assert (await migrate(parse(empty)))[0] == "0002"


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
    assert max(ran, key=len)[-1] == NEWEST


async def test_tables_of_a_later_everthread_are_left_alone(empty: str, postgres_server: Server) -> None:
    await migrate(parse(empty))
    postgres_server.run_sql("UPDATE alembic_version SET version_num = '9999'", name_of(empty))
    with pytest.raises(StoreError, match="revision 9999"):
        async with everthread.open(empty):
            pass
    assert postgres_server.run_sql("SELECT version_num FROM alembic_version", name_of(empty)) == "9999"


async def test_a_database_that_is_up_to_date_opens_without_sqlalchemy(empty: str) -> None:
    await migrate(parse(empty))
    script = f"""
import asyncio, sys, everthread
async def main():
    async with everthread.open({empty!r}) as et:
        await et.conversations.create()
asyncio.run(main())
sys.exit("sqlalchemy" in sys.modules or "alembic" in sys.modules)
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await process.wait() == 0

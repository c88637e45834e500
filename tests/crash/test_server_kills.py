"""The PostgreSQL server dies under its clients and comes back: their pools survive, and what it acknowledged too."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import everthread
from tests.crash.trial import NewTrial, Trial
from tests.forkserver import ForkServer
from tests.postgres import TEMPLATE, OwnServer, own_server

KILLS = 10
LONG_KILLS = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnServer]:
    with own_server(tmp_path) as started:
        yield started


@pytest.fixture
def new_trial(server: OwnServer, forkserver: ForkServer, tmp_path: Path) -> NewTrial:
    numbers = count(1)

    def new(seed: int, *, migrated: bool = False) -> Trial:
        number = next(numbers)
        server.run_sql(f"CREATE DATABASE trial_{number} TEMPLATE {TEMPLATE if migrated else 'template0'}")
        acks = tmp_path / f"acks-{number}"
        return Trial(forkserver=forkserver, url=server.url(f"trial_{number}"), seed=seed, acks=acks, erases=1)

    return new


def kill_under_clients(server: OwnServer, new_trial: NewTrial, how: str, seed: int, kills: int) -> None:
    """Let a child work, and crash the server again and again until that has happened so often while it worked."""
    dice = random.Random(seed)
    done = 0
    while done < kills:
        trial = new_trial(seed + done % 2)
        child = trial.start(patient=True)
        while not trial.acknowledged() and child.is_at_work():
            time.sleep(0.01)
        while done < kills and child.is_at_work():
            time.sleep(dice.uniform(0, 0.5))
            crash(server, how)
            done += child.is_at_work()
            server.start()
        assert child.wait() == 0, child.said()
        trial.check(is_finished=True)


def crash(server: OwnServer, how: str) -> None:
    if how == "kill":
        server.kill9()
    else:
        server.stop("immediate")


@pytest.mark.parametrize("how", ["kill", "immediate stop"])
@pytest.mark.parametrize("store", ["postgres"])
def test_i1_acknowledged_calls_survive_the_death_of_the_server(
    store: str, how: str, server: OwnServer, new_trial: NewTrial
) -> None:
    kill_under_clients(server, new_trial, how, seed=200, kills=KILLS // 2)


async def test_a_server_that_dies_while_a_database_is_closed_is_no_error(server: OwnServer) -> None:
    loop = asyncio.get_running_loop()

    def crash_after(rounds: int) -> None:
        if rounds:
            loop.call_soon(crash_after, rounds - 1)
        else:
            server.kill9()

    for rounds in range(6):  # in one of them between the last look at the connection and the goodbye that is sent
        async with everthread.open(server.url(TEMPLATE), worker=False) as et:
            await et.conversations.list()
            loop.call_soon(crash_after, rounds)
        await asyncio.sleep(0.1)
        if server.is_running():
            server.kill9()
        server.start()


@pytest.mark.long
@pytest.mark.parametrize("how", ["kill", "immediate stop"])
@pytest.mark.parametrize("store", ["postgres"])
def test_i1_acknowledged_calls_survive_many_deaths_of_the_server(
    store: str, how: str, server: OwnServer, new_trial: NewTrial
) -> None:
    kill_under_clients(server, new_trial, how, seed=2000, kills=LONG_KILLS // 2)

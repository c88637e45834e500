"""Servers die in the middle of many streams: whoever comes back gets exactly the rest, and each run one end.

Everything is seen from outside, over HTTP. `STREAM_KILLS` and `STREAM_SEED` choose how many kills the long tests make
and which ones.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs everthread[server]")

from everthread.runs.engine import LEASE_SECONDS
from tests.crash.conftest import NewUrl
from tests.crash.stream_clients import Clients, clients_of
from tests.crash.stream_judge import Run
from tests.forkserver import ForkServer

KILLS = 4
LONG_KILLS = int(os.environ.get("STREAM_KILLS", "300"))
PAUSES = 3
RESTARTS = 10
"""Of each of two servers."""
READERS = 60
LONG_READERS = 1_000
LONG_PATIENCE_SECONDS = 60.0
"""With many kills: the machine may do other things too, and how long everybody waited is in the report."""
READERS_PATIENCE_SECONDS = 300.0
"""Where nobody dies: how long so many turns take depends on the machine, and is no promise."""
SEED = int(os.environ.get("STREAM_SEED", "1"))
LASTING_ROUNDS = 5
"""So many rounds go on in the same conversations: what an earlier death left in them is there for the next."""
HOPELESS = 30
"""So many clients that wait in vain, and the rest would only take hours to say the same."""

Work = Coroutine[Any, Any, Any]


# -- servers that are killed -------------------------------------------------------------------------------------


async def _die(clients: Clients, kills: int) -> None:
    """Rounds of clients, each with a server that is killed in the middle of them."""
    number = 0
    while clients.servers.kills < kills and clients.tally.violations["waited"] < HOPELESS:
        async with asyncio.TaskGroup() as working:
            for work in _round(clients, number):
                working.create_task(work)
            await _kill_one(clients)
        await clients.judge_all()
        number += 1
    report = await clients.conclude()
    print(report)
    assert not clients.tally.violations, report
    assert clients.servers.kills >= kills
    assert len(clients.tally.in_flight) >= 3 * kills, report


def _round(clients: Clients, number: int) -> list[Work]:
    """Some fifteen streams in a dozen conversations."""
    dice, kills = clients.dice, clients.servers.kills

    def name(slot: str) -> str:
        return f"{slot}-{number // LASTING_ROUNDS}"

    def leaves() -> list[int]:
        return [dice.randrange(1, 25) for _ in range(dice.randrange(1, 4))]

    work = [
        *(_soon(dice, _chat(clients, name(f"plain{slot}"), kills)) for slot in range(3)),
        *(_soon(dice, clients.chat(name(f"leaving{slot}"), leaves=leaves())) for slot in range(2)),
        _busy(clients, name("queue"), "enqueue"),
        _busy(clients, name("interrupt"), "interrupt"),
        _cancelled(clients, name("cancelled"), clients.chat(name("cancelled"))),
        clients.regenerate(name("again")) if clients.begun[name("again")].is_set() else clients.chat(name("again")),
        _soon(dice, clients.wait_for_answer(name("unstreamed"))),
        _soon(dice, clients.run(name("assistant"), "everthread")),
        _soon(dice, clients.run(name("graph"), "slow")),
        _cancelled(clients, name("cancelled-graph"), clients.run(name("cancelled-graph"), "slow")),
        _runs(clients, name("assistants"), "everthread", "enqueue"),
        _runs(clients, name("graphs"), "slow", "interrupt"),
    ]
    return [*work, _watch(clients)]


async def _kill_one(clients: Clients) -> None:
    """At some moment, or just when a client has seen something that must not be forgotten."""
    servers, dice = clients.servers, clients.dice
    if dice.random() < 0.8:  # else some are killed while they are still accepted
        await clients.until_in_flight(8)
    await asyncio.sleep(dice.uniform(0, 0.7))
    what = dice.choice(("any", "any", "accepted", "metadata", "token", "end", "end", "cancelled"))
    if what != "any":
        await servers.until_a_client_sees(what, 0.5)
    server = dice.choice(servers.all)
    clients.count_in_flight(server)
    await servers.kill(server, again_within=dice.uniform(0, 0.8) if dice.random() < 0.25 else None)


async def _soon(dice: random.Random, work: Work) -> None:
    await asyncio.sleep(dice.uniform(0, 0.3))
    await work


async def _chat(clients: Clients, conversation: str, kills_before: int) -> None:
    """Asks, and again and again until the server of this round dies, which may be before it begins."""
    await clients.chat(conversation)
    while clients.servers.kills == kills_before:
        await clients.chat(conversation)


async def _busy(clients: Clients, conversation: str, when_busy: str) -> None:
    """Two who ask, the second while the first is being answered."""
    later = clients.chat(conversation, when_busy=when_busy)
    await asyncio.gather(clients.chat(conversation), _after(clients.dice.uniform(0.1, 0.6), later))


async def _runs(clients: Clients, thread: str, assistant: str, strategy: str) -> None:
    later = clients.run(thread, assistant, multitask_strategy=strategy)
    await asyncio.gather(clients.run(thread, assistant), _after(clients.dice.uniform(0.1, 0.6), later))


async def _cancelled(clients: Clients, conversation: str, work: Work) -> None:
    """One that is stopped by another client."""
    asking = asyncio.create_task(work)
    await asyncio.sleep(clients.dice.uniform(0.1, 0.8))
    running = [run for run in _runs_in(clients, conversation) if not run.is_over]
    await asyncio.gather(asking, *map(clients.cancel, running))


async def _watch(clients: Clients) -> None:
    """Others follow what has begun by now, from its beginning."""
    await asyncio.sleep(clients.dice.uniform(0.1, 0.6))
    begun = [run for run in clients.runs if run.path]
    chosen = clients.dice.sample(begun, min(4, len(begun)))
    await asyncio.gather(*(clients.follow(run) for run in chosen))


async def _after(seconds: float, work: Work) -> None:
    await asyncio.sleep(seconds)
    await work


# -- readers that come and go ------------------------------------------------------------------------------------


async def _come_and_go(clients: Clients, count: int) -> None:
    """So many readers, two of each turn, who leave again and again; no server dies."""
    dice = clients.dice

    async def reader(number: int) -> None:
        await asyncio.sleep(dice.uniform(0, 0.01 * count))
        leaves = [dice.randrange(1, 30) for _ in range(dice.randrange(1, 5))]
        asking = asyncio.create_task(_ask_until_answered(clients, f"reader{number}", leaves))
        begun = asyncio.create_task(clients.begun[f"reader{number}"].wait())
        await asyncio.wait((asking, begun), return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        runs = _runs_in(clients, f"reader{number}")
        await asyncio.gather(asking, *(clients.follow(run, leaves=leaves[::-1]) for run in runs))

    await asyncio.gather(*map(reader, range(count // 2)))
    await clients.judge_all()
    report = await clients.conclude()
    print(report)
    assert not clients.tally.violations, report
    assert clients.tally.runs >= count // 2
    assert clients.tally.resumed > count, report


async def _ask_until_answered(clients: Clients, conversation: str, leaves: list[int]) -> None:
    """On a busy machine a client may be cut off before it has sent its request: then it asks something new."""
    while not clients.begun[conversation].is_set():
        await clients.chat(conversation, leaves=leaves)


def _runs_in(clients: Clients, conversation: str) -> list[Run]:
    return [run for run in clients.runs if run.conversation == conversation]


# -- the promises ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["sqlite"])
async def test_whoever_comes_back_after_a_death_of_the_server_gets_exactly_the_rest(
    store: str, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    async with clients_of(forkserver, new_url(migrated=True), tmp_path, servers=1, seed=SEED) as clients:
        await _die(clients, KILLS)


@pytest.mark.parametrize("store", ["sqlite"])
async def test_readers_that_come_and_go_get_everything_once(
    store: str, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    async with clients_of(
        forkserver, new_url(migrated=True), tmp_path, servers=1, seed=SEED, patience_seconds=READERS_PATIENCE_SECONDS
    ) as clients:
        await _come_and_go(clients, READERS)


@pytest.mark.long
@pytest.mark.parametrize(("store", "servers"), [("sqlite", 1), ("postgres", 2)])
async def test_whoever_comes_back_after_many_deaths_of_servers_gets_exactly_the_rest(
    store: str, servers: int, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    """On PostgreSQL one of two servers dies each time, a third as often."""
    async with clients_of(
        forkserver, new_url(migrated=True), tmp_path, servers=servers, seed=SEED, patience_seconds=LONG_PATIENCE_SECONDS
    ) as clients:
        await _die(clients, LONG_KILLS if servers == 1 else LONG_KILLS // 3)


@pytest.mark.long
@pytest.mark.parametrize("store", ["postgres"])
async def test_the_runs_of_a_server_that_never_comes_back_are_ended_by_another(
    store: str, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    async with clients_of(forkserver, new_url(migrated=True), tmp_path, servers=4, seed=SEED) as clients:
        for number in range(3):
            async with asyncio.TaskGroup() as working:
                for work in _round(clients, number):
                    working.create_task(work)
                await clients.until_in_flight(8)
                dying = clients.dice.choice(clients.servers.all)
                clients.count_in_flight(dying)
                clients.servers.kill_for_good(dying)
            await clients.judge_all()
        report = await clients.conclude()
        print(report)
        assert not clients.tally.violations, report


@pytest.mark.long
@pytest.mark.parametrize("store", ["postgres"])
async def test_a_server_that_stands_still_for_longer_than_its_leases_doubles_nothing_when_it_goes_on(
    store: str, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    """Another one has ended its runs by then, and what it was about to write comes too late."""
    async with clients_of(
        forkserver, new_url(migrated=True), tmp_path, servers=2, seed=SEED, patience_seconds=READERS_PATIENCE_SECONDS
    ) as clients:
        for number in range(PAUSES):
            async with asyncio.TaskGroup() as working:
                for work in _round(clients, number):
                    working.create_task(work)
                await clients.until_in_flight(8)
                paused = clients.dice.choice(clients.servers.all)
                clients.count_in_flight(paused)
                await paused.pause(LEASE_SECONDS + 4)
                clients.servers.kills += 1  # the clients of a round ask until then
                clients.servers.back_at = time.monotonic()
            await clients.judge_all()
        report = await clients.conclude()
        print(report)
        assert not clients.tally.violations, report


@pytest.mark.long
@pytest.mark.parametrize("store", ["postgres"])
async def test_a_rolling_restart_loses_and_doubles_nothing(
    store: str, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    """Two servers are told to stop and started again in turn: whoever is refused goes to the other, and every stream
    ends once."""
    took: list[float] = []
    async with clients_of(
        forkserver, new_url(migrated=True), tmp_path, servers=2, seed=SEED, patience_seconds=LONG_PATIENCE_SECONDS
    ) as clients:
        for number in range(2 * RESTARTS):
            async with asyncio.TaskGroup() as working:
                for work in _round(clients, number):
                    working.create_task(work)
                await clients.until_in_flight(8)
                stopping = clients.servers.all[number % 2]
                clients.count_in_flight(stopping)
                clients.servers.kills += 1  # whoever asks until a server dies can end
                took.append(await clients.servers.restart(stopping))
            await clients.judge_all()
        report = await clients.conclude()
        print(f"stopped within {min(took):.1f} to {max(took):.1f} s;", report)
        assert not clients.tally.violations, report
        assert len(clients.tally.in_flight) >= 2 * RESTARTS, report


@pytest.mark.long
@pytest.mark.parametrize(("store", "servers"), [("sqlite", 1), ("postgres", 1), ("postgres", 2)])
async def test_a_thousand_readers_that_come_and_go_get_everything_once(
    store: str, servers: int, forkserver: ForkServer, new_url: NewUrl, tmp_path: Path
) -> None:
    async with clients_of(
        forkserver,
        new_url(migrated=True),
        tmp_path,
        servers=servers,
        seed=SEED,
        patience_seconds=READERS_PATIENCE_SECONDS,
    ) as clients:
        await _come_and_go(clients, LONG_READERS)

"""Acknowledged is present, whenever the plug is pulled: at every fail point, and at any time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.sqlite.indexing import BATCH, MOST_UNINDEXED
from everthread.core.failpoints import FAILPOINTS
from tests.crash.trial import KILLED, NewTrial
from tests.crash.writer_processes import BIG, TALK_MESSAGES, append_batches, append_big, index_talk
from tests.forkserver import ForkServer

RANDOM_SEEDS = {"sqlite": range(100, 108), "postgres": range(100, 102)}
LONG_SEEDS = {"sqlite": range(1000, 1040), "postgres": range(1000, 1008)}
KILLS = {"sqlite": 8, "postgres": 6}
"""How many children of one seed are killed, each at a random time of what is left of its script."""
LONG_KILLS = 25
WITHIN_SECONDS = {"sqlite": 0.3, "postgres": 0.8}
"""A script takes about twice as long."""
SCRIPTS = 2
"""How many there are for the fail points: working out how one is to go takes longer than a child that dies of it."""


def points(store: str) -> Sequence[str]:
    """Those that the script reaches; the others have tests elsewhere.

    PostgreSQL indexes in the append itself.
    """
    elsewhere = {"compaction.written", "checkpoint.written", "job.written", "blob.written", "blob.deleted"}
    elsewhere |= {"vectors.written", "ids.indexed"}
    elsewhere |= {"index.written"} if store == "postgres" else set()
    return [point for point in FAILPOINTS if point not in elsewhere]


def reaches(point: str, store: str) -> Sequence[int]:
    """Which reach ends the first child, which one ends the child that retries, and which one its successor."""
    return (1,) if store == "postgres" or point.startswith("migrate.") else (1, 2, 3)


@pytest.mark.parametrize(("store", "point"), [(store, point) for store in KILLS for point in points(store)])
def test_i1_acknowledged_calls_survive_a_kill_at(store: str, point: str, new_trial: NewTrial) -> None:
    trial = new_trial(FAILPOINTS.index(point) % SCRIPTS, migrated=not point.startswith("migrate."))
    for reach in reaches(point, store):
        trial.kill_at(point, reach)
        trial.check()
    trial.finish()
    trial.check(is_finished=True)


@pytest.mark.parametrize(("store", "seed"), [(store, seed) for store in RANDOM_SEEDS for seed in RANDOM_SEEDS[store]])
def test_i1_acknowledged_calls_survive_kills_at_any_time(store: str, seed: int, new_trial: NewTrial) -> None:
    kill_at_random(new_trial, seed, KILLS[store], WITHIN_SECONDS[store])


@pytest.mark.parametrize("store", ["sqlite"])
def test_a_kill_while_the_index_catches_up_loses_no_word(store: str, empty_url: str, forkserver: ForkServer) -> None:
    batches = {"url": empty_url, "conversation": "c", "name": "ann", "batches": MOST_UNINDEXED // 50 + 1, "size": 50}
    child = forkserver.start("tests.crash.writer_processes:append_large_batches", **batches, kill="index.written:1")
    assert child.wait() == KILLED, child.said()
    for number in (0, BATCH // 2, BATCH - 1):
        assert asyncio.run(found(empty_url, str(number))) == [number + 1]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("store", ["sqlite"])
def test_i1_a_kill_while_ids_are_filed_leaves_each_to_be_found_once(
    store: str, batch: int, empty_url: str, forkserver: ForkServer
) -> None:
    batches = {"url": empty_url, "conversation": "c", "name": "ann", "batches": 12, "size": 200}
    child = forkserver.start(
        "tests.crash.writer_processes:append_large_batches", **batches, kill=f"ids.indexed:{batch}"
    )
    assert child.wait() == KILLED, child.said()
    asyncio.run(append_batches(empty_url, "c", "ann", 12, 200))
    asyncio.run(check_ids(empty_url, 12 * 200))


async def check_ids(url: str, count: int) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        ids = [message.id async for message in conv.messages()]
        assert len(ids) == len(set(ids)) == count
        for seq in (1, 200, 201, count - 1, count):
            assert (await conv.message(ids[seq - 1])).seq == seq
        assert (await et.verify()).ok


@pytest.mark.parametrize("store", list(KILLS))
def test_i9_a_kill_while_a_compaction_is_written_leaves_the_former_view(
    store: str, empty_url: str, forkserver: ForkServer
) -> None:
    child = forkserver.start("tests.crash.writer_processes:compact_a_talk", url=empty_url, kill="compaction.written:1")
    assert child.wait() == KILLED, child.said()
    asyncio.run(compact_again(empty_url))


@pytest.mark.parametrize("store", list(KILLS))
def test_i1_a_kill_between_a_blob_and_its_commit_leaves_a_log_without_it(
    store: str, empty_url: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    blobs = f"file://{tmp_path / 'blobs'}"
    child = forkserver.start(
        "tests.crash.writer_processes:append_a_blob", url=empty_url, blobs=blobs, kill="blob.written:1"
    )
    assert child.wait() == KILLED, child.said()
    asyncio.run(append_again(empty_url, blobs))


async def append_again(url: str, blobs: str) -> None:
    async with everthread.open(url, blobs=blobs) as et:
        conv = await et.conversations.get("c")
        assert [message async for message in conv.messages()] == []
        assert (await et.verify()).ok
        assert len((await et.check_blobs()).unused) == 1
        assert len(await et.sweep_blobs(older_than=timedelta(0))) == 1
        await append_big(url, blobs)
        assert [message.text async for message in conv.messages()] == [BIG]
        found = await et.check_blobs()
        assert (found.ok, found.referred, list(found.unused)) == (True, 1, [])


@pytest.mark.parametrize("point", ["erase.committed", "blob.deleted"])
@pytest.mark.parametrize("store", list(KILLS))
def test_i22_a_kill_while_blobs_are_erased_leaves_none_after_the_next_opening(
    store: str, point: str, empty_url: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    folder = tmp_path / "blobs"
    blobs = f"file://{folder}"
    child = forkserver.start("tests.crash.writer_processes:erase_a_blob", url=empty_url, blobs=blobs, kill=f"{point}:1")
    assert child.wait() == KILLED, child.said()
    asyncio.run(opened_and_verified(empty_url, blobs))
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("store", list(KILLS))
def test_a_kill_while_vectors_are_written_leaves_none_and_the_next_try_all(
    store: str, empty_url: str, forkserver: ForkServer
) -> None:
    child = forkserver.start("tests.crash.writer_processes:put_vectors", url=empty_url, kill="vectors.written:1")
    assert child.wait() == KILLED, child.said()
    asyncio.run(index_again(empty_url))


async def index_again(url: str) -> None:
    async with everthread.open(url, worker=False, embedder=None) as et:
        assert await et.vectors.models() == {}
    await index_talk(url)
    async with everthread.open(url, worker=False, embedder=None) as et:
        assert await et.vectors.models() == {"fake/2": TALK_MESSAGES}
        assert (await et.verify()).ok


async def opened_and_verified(url: str, blobs: str) -> None:
    async with everthread.open(url, blobs=blobs) as et:
        assert (await et.verify()).ok


async def compact_again(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        assert [one async for one in conv.compactions()] == []
        assert len([message async for message in conv.messages()]) == TALK_MESSAGES
        assert (await conv.compact()).compacted
        assert len([one async for one in conv.compactions()]) == 1
        assert (await et.verify()).ok


async def found(url: str, text: str) -> list[int]:
    async with everthread.open(url) as et:
        return [hit.seq for hit in await et.search(text, conversation="c")]


@pytest.mark.long
@pytest.mark.parametrize(("store", "seed"), [(store, seed) for store in LONG_SEEDS for seed in LONG_SEEDS[store]])
def test_i1_acknowledged_calls_survive_many_kills(store: str, seed: int, new_trial: NewTrial) -> None:
    kill_at_random(new_trial, seed, LONG_KILLS, WITHIN_SECONDS[store])


def kill_at_random(new_trial: NewTrial, seed: int, kills: int, within_seconds: float) -> None:
    """Kill, look, retry and kill again, until the script is done; then begin anew."""
    dice = random.Random(seed)
    done = 0
    while done < kills:
        trial = new_trial(seed)
        while done < kills and trial.end_after(dice.uniform(0, within_seconds)) == KILLED:
            done += 1
            trial.check()
        trial.finish()
        trial.check(is_finished=True)


@pytest.mark.parametrize(("store", "promised"), [("sqlite", 100), ("postgres", 20)])
def test_as_many_children_are_killed_as_promised(store: str, promised: int) -> None:
    at_points = sum(len(reaches(point, store)) for point in points(store))
    assert at_points + len(RANDOM_SEEDS[store]) * KILLS[store] >= promised
    assert len(LONG_SEEDS[store]) * LONG_KILLS >= promised * 10

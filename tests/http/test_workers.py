"""`everthread serve --workers 2`: one command, several processes, one port, on PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

import everthread
from everthread.core.ids import new_id
from everthread.http.supervisor import MAX_QUICK_DEATHS, QUICK_SECONDS, RestartPause
from tests.forkserver import ROOT, SERVING, Child, Ended, ForkServer
from tests.http.served import API, Event, events, process, scripted, text_of
from tests.postgres import Server

ANSWER = "never ends, never forgets; " * 5


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    with postgres_server.database() as address:
        yield address


@pytest.fixture
def slow(tmp_path: Path) -> dict[str, str]:
    return {"EVERTHREAD_MODEL": scripted(tmp_path, ANSWER, pace_seconds=0.05), "EVERTHREAD_STOP_SECONDS": "0.5"}


def workers_of(server: Child) -> list[psutil.Process]:
    """Without multiprocessing's own helper."""
    found = psutil.Process(server.pid).children()
    return [one for one in found if "resource_tracker" not in " ".join(one.cmdline())]


async def ask(address: str, conversation: str) -> list[Event]:
    """A turn on a connection of its own, to the end of its stream; asked again where a server is about to stop."""
    body = {"message": "hello", "conversation_id": conversation}
    while True:
        async with (
            httpx.AsyncClient(base_url=address, timeout=60) as client,
            client.stream("POST", f"{API}/chat/stream", json=body) as answer,
        ):
            if answer.status_code == 200:
                return [event async for event in events(answer)]
            assert json.loads(await answer.aread())["code"] == "stopping"


async def test_all_processes_answer_and_stop_together(
    forkserver: ForkServer, postgres_url: str, slow: dict[str, str]
) -> None:
    with process(forkserver, postgres_url, "--workers", "2", **slow) as (server, address):
        workers = workers_of(server)
        assert len(workers) == 2
        used: set[int] = set()
        async with everthread.open(postgres_url, worker=False) as et:
            while used != {worker.pid for worker in workers}:
                asking = asyncio.gather(*(ask(address, new_id()) for _ in range(10)))
                while not asking.done():
                    used |= {int(turn.holder.split("|")[1]) for _, turn in await et.store.turns.unfinished()}
                    await asyncio.sleep(0.02)
                for told in await asking:
                    assert text_of(told) == ANSWER
                    assert told[-1].data["state"] == "complete"
        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0, server.said()
        assert not any(worker.is_running() for worker in workers)


async def test_a_process_that_is_killed_is_replaced(
    forkserver: ForkServer, postgres_url: str, slow: dict[str, str]
) -> None:
    with process(forkserver, postgres_url, "--workers", "2", **slow) as (server, address):
        before = {worker.pid for worker in workers_of(server)}
        os.kill(min(before), signal.SIGKILL)
        assert text_of(await ask(address, "c")) == ANSWER  # the other one takes it
        while len(now := {worker.pid for worker in workers_of(server)}) < 2 or now == before:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0, server.said()


async def test_while_one_process_restarts_no_stream_is_torn_and_the_other_takes_what_comes(
    forkserver: ForkServer, postgres_url: str, slow: dict[str, str]
) -> None:
    with process(forkserver, postgres_url, "--workers", "2", **slow) as (server, address):
        workers = workers_of(server)
        running = [asyncio.create_task(ask(address, f"before-{number}")) for number in range(20)]
        await until_running(address, 20)
        workers[0].send_signal(signal.SIGTERM)
        later: list[asyncio.Task[list[Event]]] = []
        while workers[0].is_running():
            later.append(asyncio.create_task(ask(address, f"after-{len(later)}")))
            await asyncio.sleep(0.05)
        told = await asyncio.gather(*running, *later)
        assert len(later) > 1
        assert all(one[-1].kind == "done" for one in told)
        assert {one[-1].data["state"] for one in told} <= {"complete", "interrupted"}
        assert all(one[-1].data["state"] == "complete" for one in told[20:])
        assert all(ANSWER.startswith(text_of(one)) for one in told)
        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0, server.said()


async def until_running(address: str, count: int) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        for number in range(count):
            while (await client.get(f"{API}/conversations/before-{number}/turns")).status_code != 200:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)


async def test_processes_do_not_outlive_their_parent(
    forkserver: ForkServer, postgres_url: str, slow: dict[str, str]
) -> None:
    with process(forkserver, postgres_url, "--workers", "2", **slow) as (server, _):
        workers = workers_of(server)
        server.send(signal.SIGKILL)
        while any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def serve(forkserver: ForkServer, *options: str) -> Ended:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    command = ("-m", "everthread", "serve", "--port", "0", "--workers", "2", *options)
    return forkserver.run_program(*command, folder=ROOT, env=kept, needs=SERVING)


def test_only_postgresql_is_served_by_several_processes(forkserver: ForkServer, tmp_path: Path) -> None:
    for database in (f"sqlite:///{tmp_path}/et.db", "memory://"):
        ended = serve(forkserver, "--database", database)
        assert ended.code == 2
        assert "PostgreSQL" in ended.err
        assert "--workers" in ended.err
    assert not (tmp_path / "et.db").exists()


def test_what_keeps_processes_from_starting_is_said_and_ends_the_command(
    forkserver: ForkServer, postgres_url: str, tmp_path: Path
) -> None:
    broken = tmp_path / "langgraph.json"
    broken.write_text(json.dumps({"graphs": {"agent": "./nowhere.py:graph"}}))
    ended = serve(forkserver, "--database", postgres_url, "--langgraph", str(broken))
    assert ended.code == 1
    assert not ended.out
    assert "nowhere.py" in ended.err
    assert "could not start" in ended.err
    assert "Traceback" not in ended.err


def test_processes_that_die_again_and_again_are_given_up(forkserver: ForkServer) -> None:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
    needs = ("everthread.http.supervisor",)
    late = forkserver.run_program("-m", "tests.http.dying_workers", "late", folder=ROOT, env=kept, needs=needs)
    assert late.out.splitlines()[0] == "listening"
    assert "died 2 times in a row" in late.out
    assert "exit code 7" in late.out
    early = forkserver.run_program("-m", "tests.http.dying_workers", "early", folder=ROOT, env=kept, needs=needs)
    assert early.out.startswith("a server process could not start (exit code 7)")


def test_pauses_grow_while_a_process_dies_at_once_and_a_long_life_ends_them() -> None:
    pause = RestartPause()
    seconds = []
    while not pause.is_hopeless:
        pause = pause.after(0.1)
        seconds.append(pause.seconds)
    assert seconds == sorted(set(seconds))
    assert len(seconds) == MAX_QUICK_DEATHS
    assert RestartPause(quick_deaths=3).after(QUICK_SECONDS + 1) == RestartPause()
    assert RestartPause().seconds == 0

"""Several processes on one database, and processes that die."""

from __future__ import annotations

import signal
from typing import Any

import everthread
from everthread.core.nouns import Ref
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.crash_script import THREAD
from tests.checkpoints.graphs import build
from tests.checkpoints.test_history import said
from tests.forkserver import Child, ForkServer


def start(forkserver: ForkServer, call: str, url: str, **more: str) -> Child:
    return forkserver.start(f"tests.checkpoints.crash_script:{call}", url=url, **more)


async def test_what_was_written_before_a_kill_is_in_the_log_after_the_next_opening(
    forkserver: ForkServer, durable_url: str
) -> None:
    assert start(forkserver, "die_between_writes_and_checkpoint", durable_url).wait() == -signal.SIGKILL
    for _ in range(2):  # opening it again changes nothing more
        async with EverthreadSaver.from_url(durable_url) as saver:
            state = await build(saver).aget_state(THREAD)
            assert len(state.values["messages"]) == 2
        async with everthread.open(durable_url) as et:
            assert (await said(et))[-2:] == ["held", "nameless"]
            assert (await et.verify()).ok


async def test_a_run_goes_on_with_what_was_written_before_a_kill(forkserver: ForkServer, durable_url: str) -> None:
    assert start(forkserver, "die_between_writes_and_checkpoint", durable_url).wait() == -signal.SIGKILL
    async with EverthreadSaver.from_url(durable_url) as saver:
        found = await saver.aget_tuple(THREAD)
        assert found is not None
        (write,) = found.pending_writes or []
        assert [message.text for message in write[2]] == ["held", "nameless"]
        graph = build(saver)
        await graph.aupdate_state(THREAD, {"messages": write[2]}, as_node="tail")
        messages = (await graph.aget_state(THREAD)).values["messages"]
    async with everthread.open(durable_url) as et:
        assert await said(et) == [message.text for message in messages]


async def test_a_checkpoint_and_its_entries_are_there_together_or_not_at_all(
    forkserver: ForkServer, durable_url: str
) -> None:
    assert start(forkserver, "die_inside_a_put", durable_url).wait() == -signal.SIGKILL
    async with EverthreadSaver.from_url(durable_url) as saver:
        messages = (await build(saver).aget_state(THREAD)).values["messages"]
    async with everthread.open(durable_url) as et:
        assert await said(et) == [message.text for message in messages]
        assert (await et.verify()).ok


async def test_two_processes_share_a_database(forkserver: ForkServer, durable_url: str) -> None:
    async with everthread.open(durable_url):
        pass
    programs = [start(forkserver, "talk", durable_url, name=name) for name in ("ann", "bob")]
    assert [program.wait() for program in programs] == [0, 0]
    async with EverthreadSaver.from_url(durable_url) as saver:
        for name in ("ann", "bob"):
            config: Any = {"configurable": {"thread_id": name}}
            messages = (await build(saver).aget_state(config)).values["messages"]
            assert [message.text for message in messages] == [f"quiet {name} {turn}" for turn in range(10)]
    async with everthread.open(durable_url) as et:
        ids = {entry.id for entry in await et.store.log.scan(Ref("local", "shared"), after=0, limit=10_000)}
        assert ids == {f"shared-{name}-{turn}" for name in ("ann", "bob") for turn in range(10)}
        assert (await et.verify()).ok

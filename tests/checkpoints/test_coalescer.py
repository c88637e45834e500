"""Writes and the checkpoint that applies them, handed over in two threads: stored together, or each by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from everthread.adapters.checkpoints.coalescer import WriteCoalescer
from everthread.core import failpoints
from everthread.core.checkpoints import REFERS
from everthread.core.errors import StoreError
from everthread.core.nouns import Ref
from everthread.langgraph import EverthreadSaver

START: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
ANSWER = AIMessage("answered", id="a")


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[EverthreadSaver]:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        wait_for_ever(saver)
        yield saver


def wait_for_ever(saver: EverthreadSaver) -> None:
    saver._writer._coalescer = WriteCoalescer(max_wait_seconds=60)
    saver._writer._coalescer.is_worthwhile = True


def put(saver: EverthreadSaver, config: Any, messages: list[Any], version: int) -> Any:
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": {"messages": messages},
        "channel_versions": {"messages": version},
    }
    return saver.put(config, checkpoint, {"source": "loop", "step": version, "parents": {}}, {"messages": version})  # type: ignore[arg-type]


def offered(saver: EverthreadSaver) -> None:
    while not saver._writer._coalescer._waiting:
        time.sleep(0.001)


def stored(saver: EverthreadSaver, config: Any) -> Any:
    id = config["configurable"]["checkpoint_id"]
    found = saver._own.call(saver._et.store.checkpoints.get(Ref("local", "t"), "", id))  # type: ignore[union-attr]
    return [(write.channel, write.kind, write.is_held) for write in found.writes]  # type: ignore[union-attr]


def test_writes_are_stored_with_the_checkpoint_that_follows_and_refer_to_its_messages(saver: EverthreadSaver) -> None:
    asked = [HumanMessage("asked", id="h")]
    first = put(saver, START, asked, 1)
    commits: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(saver.put_writes, first, [("messages", [ANSWER]), ("next", "end")], "task")
        offered(saver)
        failpoints.arm(lambda name: commits.append(name) if name == "commit.after" else None)
        try:
            put(saver, first, [*asked, ANSWER], 2)
            writing.result(60)
        finally:
            failpoints.arm(None)
    assert len(commits) == 1
    assert stored(saver, first) == [("messages", REFERS, False), ("next", "msgpack", False)]
    found = saver.get_tuple(first)
    assert found is not None
    assert found.pending_writes == [("task", "messages", [ANSWER]), ("task", "next", "end")]


def test_what_no_list_names_is_logged_from_writes_that_come_with_a_checkpoint(saver: EverthreadSaver) -> None:
    asked = [HumanMessage("asked", id="h")]
    first = put(saver, START, asked, 1)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(saver.put_writes, first, [("messages", [ANSWER])], "task")
        offered(saver)
        put(saver, first, asked, 2)
        writing.result(60)
    assert stored(saver, first) == [("messages", REFERS, False)]
    entries = saver._own.call(saver._et.store.log.scan(Ref("local", "t"), after=0, limit=10))  # type: ignore[union-attr]
    assert [entry.id for entry in entries] == ["h", "a"]


def test_a_checkpoint_takes_writes_along_that_are_remembered_no_longer(saver: EverthreadSaver) -> None:
    asked = [HumanMessage("asked", id="h")]
    first = put(saver, START, asked, 1)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(saver.put_writes, first, [("messages", [ANSWER])], "task")
        offered(saver)
        saver._writer._threads.caches.drop(Ref("local", "t"))
        put(saver, first, [*asked, ANSWER], 2)
        writing.result(60)
    assert stored(saver, first) == [("messages", REFERS, False)]


def test_writes_are_stored_though_the_checkpoint_is_not(saver: EverthreadSaver) -> None:
    def fail(name: str) -> None:
        if name == "append.head_written":
            failpoints.arm(None)
            raise StoreError("the disk is gone for a moment")

    asked = [HumanMessage("asked", id="h")]
    first = put(saver, START, asked, 1)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(saver.put_writes, first, [("messages", [ANSWER])], "task")
        offered(saver)
        failpoints.arm(fail)
        with pytest.raises(StoreError):
            put(saver, first, [*asked, ANSWER], 2)
        writing.result(60)
    assert stored(saver, first) == [("messages", "msgpack", True)]


def test_writes_that_come_before_their_checkpoint_are_kept_for_it(saver: EverthreadSaver) -> None:
    unknown: Any = {"configurable": {**START["configurable"], "checkpoint_id": "1ef4f797-8335-6428-8001-8a1503f9b875"}}
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(saver.put_writes, unknown, [("messages", [ANSWER])], "task")
        offered(saver)
        put(saver, unknown, [ANSWER], 2)
        writing.result(60)
    assert stored(saver, unknown) == [("messages", REFERS, False)]


def test_who_hands_over_one_after_the_other_waits_once(tmp_path: Path) -> None:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        joining = saver._writer._coalescer
        joining.is_worthwhile = True
        first = put(saver, START, [HumanMessage("asked", id="h")], 1)
        saver.put_writes(first, [("next", "end")], "task")
        assert not joining.is_worthwhile
        put(saver, first, [HumanMessage("asked", id="h"), ANSWER], 2)
        assert not joining.is_worthwhile
        assert not joining._waiting


def test_a_checkpoint_that_came_before_its_writes_were_stored_makes_the_next_ones_wait(saver: EverthreadSaver) -> None:
    saver._writer._coalescer.is_worthwhile = False
    first = put(saver, START, [HumanMessage("asked", id="h")], 1)
    is_writing, go_on = threading.Event(), threading.Event()

    def pause(name: str) -> None:
        if name == "checkpoint.written" and not is_writing.is_set():
            is_writing.set()
            go_on.wait(60)

    with ThreadPoolExecutor(2) as pool:
        failpoints.arm(pause)
        try:
            writing = pool.submit(saver.put_writes, first, [("messages", [ANSWER])], "task")
            is_writing.wait(60)
            putting = pool.submit(put, saver, first, [HumanMessage("asked", id="h"), ANSWER], 2)
            while not saver._writer._coalescer.is_worthwhile:
                time.sleep(0.001)
            go_on.set()
            writing.result(60)
            putting.result(60)
        finally:
            go_on.set()
            failpoints.arm(None)
    assert stored(saver, first) == [("messages", REFERS, False)]


def test_writes_are_stored_at_once_where_coalescing_is_switched_off(tmp_path: Path) -> None:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        saver._writer._coalescer = WriteCoalescer(max_wait_seconds=0)
        saver._writer._coalescer.is_worthwhile = True
        config = put(saver, START, [HumanMessage("asked", id="h")], 1)
        saver.put_writes(config, [("messages", [ANSWER])], "task")
        assert [is_held for *_, is_held in stored(saver, config)] == [True]

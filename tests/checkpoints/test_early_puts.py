"""Checkpoints of subgraphs that wait for the one they were started from: no more of them than there is use for."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint

import everthread
from everthread.adapters.checkpoints.early_puts import LONGEST_SECONDS, MAX_THREADS, EarlyPuts, Put, Start
from everthread.adapters.checkpoints.serde import StrictSerializer
from everthread.adapters.checkpoints.threads import CheckpointAddress
from everthread.core.ids import new_id
from everthread.core.nouns import Ref
from everthread.core.recent import forget_texts
from everthread.langgraph import EverthreadSaver

REF = Ref("local", "t")


def early(id: str = "c") -> Put:
    address = CheckpointAddress("local", "t", "inner:1", None)
    return Put(address, {**empty_checkpoint(), "id": id}, {}, {}, StrictSerializer())


def test_a_put_waits_for_its_start_or_a_later_checkpoint_beside_it() -> None:
    puts, put = EarlyPuts(), early()
    puts.add(REF, Start("", "5"), put)
    assert puts.has(REF, "c")
    assert not puts.take(REF, "", "4")
    assert not puts.take(REF, "other", "5")
    assert not puts.take(Ref("local", "u"), "", "5")
    assert puts.take(REF, "", "6") == [put]
    assert not puts.take(REF, "", "6")


def test_what_runs_that_died_left_is_bounded() -> None:
    puts = EarlyPuts()
    for number in range(MAX_THREADS + 1):
        puts.add(Ref("local", f"t{number}"), Start("", "5"), early())
    assert not puts.has(Ref("local", "t0"), "c")
    assert puts.has(Ref("local", "t1"), "c")


def test_an_erase_forgets_what_waits_in_vain_and_not_what_is_on_its_way() -> None:
    now = [0.0]
    puts = EarlyPuts(clock=lambda: now[0])
    puts.add(REF, Start("", "5"), early("old"))
    now[0] = LONGEST_SECONDS + 1
    puts.add(REF, Start("", "5"), early("new"))
    forget_texts()
    assert [put.checkpoint["id"] for put in puts.take(REF, "", "5")] == ["new"]


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_a_thread_that_is_deleted_meanwhile_does_not_get_a_subgraphs_checkpoint_back(
    url: str, is_deleted: bool
) -> None:
    def checkpoint(*messages: Any) -> Checkpoint:
        return {
            **empty_checkpoint(),
            "id": new_id(),
            "channel_values": {"messages": list(messages)},
            "channel_versions": {"messages": "1"},
        }

    start = checkpoint(question := HumanMessage("hi", id="h"))
    inner = checkpoint(question, AIMessage("inside", id="a"))
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    inner_config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "inner:1"}}
    metadata: Any = {"source": "loop", "step": 0, "parents": {"": start["id"]}}
    async with everthread.open(url, worker=False) as et:
        saver = EverthreadSaver(et)
        await saver.aput(inner_config, inner, metadata, {"messages": "1"})
        assert await saver.aget_tuple(inner_config) is not None
        if is_deleted:
            await saver.adelete_thread("t")
        await saver.aput(config, start, {"source": "loop", "step": 0, "parents": {}}, {"messages": "1"})
        assert (await saver.aget_tuple(inner_config) is None) == is_deleted
        children = [child async for child in (await et.conversations.get("t")).children()]
        said = [[message.text async for message in child.messages()] for child in children]
        assert said == ([] if is_deleted else [["inside"]])

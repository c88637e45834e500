"""Programs that are killed, or run beside each other, over one database; started by `test_processes`."""

from __future__ import annotations

import os
import signal
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from everthread.core import failpoints
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.graphs import build

THREAD: Any = {"configurable": {"thread_id": "t"}}


def die_between_writes_and_checkpoint(url: str) -> None:
    """Save what a task wrote, and never the checkpoint that would name it."""
    with EverthreadSaver.from_url(url) as saver:
        graph = build(saver)
        graph.invoke({"messages": [HumanMessage("say 1", id="h1")]}, THREAD)
        state = graph.get_state(THREAD)
        saver.put_writes(state.config, [("messages", [AIMessage("held", id="x"), AIMessage("nameless")])], "task")
        os.kill(os.getpid(), signal.SIGKILL)


def die_inside_a_put(url: str) -> None:
    """Be killed in the transaction of the second run's checkpoint."""
    with EverthreadSaver.from_url(url) as saver:
        graph = build(saver)
        graph.invoke({"messages": [HumanMessage("say 1", id="h1")]}, THREAD)
        failpoints.arm(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == "checkpoint.written" else None)
        graph.invoke({"messages": [HumanMessage("say 2", id="h2")]}, THREAD)


def talk(url: str, name: str) -> None:
    """Ten runs on a thread that others use too, and ten on one's own."""
    with EverthreadSaver.from_url(url) as saver:
        for turn in range(10):
            for thread in ("shared", name):
                config: Any = {"configurable": {"thread_id": thread}}
                asked = HumanMessage(f"quiet {name} {turn}", id=f"{thread}-{name}-{turn}")
                build(saver).invoke({"messages": [asked]}, config)

"""The functional API: tasks run once, also when their entrypoint is resumed, and what it returns is there next time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

from everthread.langgraph import EverthreadSaver


@dataclass
class Essay:
    topic: str
    version: int


ran: list[str] = []


@task
def write(topic: str, version: int) -> Essay:
    ran.append(topic)
    return Essay(topic, version)


def main(url: str) -> None:
    with EverthreadSaver.from_url(url) as saver:

        @entrypoint(checkpointer=saver)
        def workflow(topic: str, *, previous: Any = None) -> Any:
            essay = write(topic, 1 if previous is None else previous.version + 1).result()
            verdict = interrupt({"review": essay})
            return entrypoint.final(value=f"{essay.topic} v{essay.version}: {verdict}", save=essay)

        config: Any = {"configurable": {"thread_id": "essay"}}
        workflow.invoke("cats", config)
        done = workflow.invoke(Command(resume="fine"), config)
        assert ran == ["cats"]
        print(done)


main(sys.argv[1])

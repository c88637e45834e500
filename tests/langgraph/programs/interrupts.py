"""A question to a human, asked by one process and answered in the next, both with dataclasses."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from everthread.langgraph import EverthreadSaver


class Verdict(Enum):
    YES = "yes"
    NO = "no"


@dataclass
class Transfer:
    to: str
    amount: int


@dataclass
class Approval:
    verdict: Verdict
    by: str


class State(TypedDict, total=False):
    transfer: Transfer
    approval: Approval


def prepare(state: State) -> State:
    return {"transfer": Transfer("Ann", 100)}


def approve(state: State) -> State:
    approval: Approval = interrupt(state["transfer"])
    return {"approval": approval}


async def main(url: str) -> None:
    async with EverthreadSaver.from_url(url) as saver:
        builder = StateGraph(State).add_node(prepare).add_node(approve)
        builder.add_edge(START, "prepare").add_edge("prepare", "approve").add_edge("approve", END)
        graph: Any = builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "transfer"}}
        state = await graph.aget_state(config)
        if not state.interrupts:
            await graph.ainvoke({}, config)
            print("asked:", (await graph.aget_state(config)).interrupts[0].value)
        else:
            assert state.interrupts[0].value == Transfer("Ann", 100)
            done = await graph.ainvoke(Command(resume=Approval(Verdict.YES, "Bob")), config)
            print("answered:", done["approval"])


asyncio.run(main(sys.argv[1]))

"""Map and reduce: a node for each part, by `Send`, and what they find put together."""

from __future__ import annotations

import asyncio
import operator
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel

from everthread.langgraph import EverthreadSaver


class Chapter(BaseModel):
    number: int
    text: str


class Finding(NamedTuple):
    number: int
    words: int


class State(TypedDict, total=False):
    chapters: list[Chapter]
    findings: Annotated[Sequence[Finding], operator.add]
    best: Finding


def split(state: State) -> State:
    return {"chapters": [Chapter(number=number, text="word " * number) for number in range(1, 6)]}


def spread(state: State) -> list[Send]:
    return [Send("count", chapter) for chapter in state["chapters"]]


async def count(chapter: Chapter) -> State:
    return {"findings": [Finding(chapter.number, len(chapter.text.split()))]}


def reduce(state: State) -> State:
    return {"best": max(state["findings"], key=lambda finding: finding.words)}


async def main(url: str) -> None:
    async with EverthreadSaver.from_url(url) as saver:
        builder: Any = StateGraph(State).add_node(split).add_node(reduce)
        builder.add_node(count)
        builder.add_edge(START, "split").add_edge("count", "reduce")
        builder.add_conditional_edges("split", spread, ["count"])
        graph: Any = builder.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "book"}}
        await graph.ainvoke({}, config)
        values = (await graph.aget_state(config)).values
        print(len(values["findings"]), "findings, the best:", values["best"])


asyncio.run(main(sys.argv[1]))

"""What a run tells of a graph's state: no more than the graph's `output_schema` has, as from `invoke`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.schema import StreamMode

from tests.http.protocol.rig import serving

SOURCE = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class Question(TypedDict):
    question: str

class Answer(TypedDict, total=False):
    answer: str

class State(Question, Answer):
    plan: str

def plan(state): return {"plan": "secret"}
def answer(state): return {"answer": state["question"] + " " + state["plan"]}

builder = StateGraph(State, input_schema=Question, output_schema=Answer).add_node(plan).add_node(answer)
graph = builder.add_edge(START, "plan").add_edge("plan", "answer").compile()
"""
RUN: dict[str, Any] = {"assistant_id": "asked", "input": {"question": "why?"}}
ANSWER = {"answer": "why? secret"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "asked.py").write_text(SOURCE)
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"asked": "./asked.py:graph"}}))
    return tmp_path / "langgraph.json"


async def test_a_run_is_answered_with_what_the_output_schema_has(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        assert (await http.post("/runs/wait", json=RUN)).json() == ANSWER


async def test_a_run_that_stops_before_it_has_an_answer_tells_nothing_else(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        assert (await http.post("/runs/wait", json={**RUN, "interrupt_before": ["answer"]})).json() == {}


async def test_a_stream_tells_what_the_output_schema_has(config: Path) -> None:
    async with serving("memory://", config) as server, server.sdk() as client:
        several: tuple[list[StreamMode], ...] = (["values", "updates"], ["values", "updates", "events"])
        for modes in several:
            stream = client.runs.stream(None, "asked", input=RUN["input"], stream_mode=modes)
            told = [(part.event, part.data) async for part in stream if part.event in ("values", "updates")]
            assert [data for event, data in told if event == "values"] == [ANSWER]
            assert [data for event, data in told if event == "updates"] == [{"plan": None}, {"answer": ANSWER}]


async def test_the_state_of_a_thread_has_everything(config: Path) -> None:
    async with serving("memory://", config) as server, server.sdk() as client:
        thread = (await client.threads.create())["thread_id"]
        assert await client.runs.wait(thread, "asked", input=RUN["input"]) == ANSWER
        values: Any = (await client.threads.get_state(thread))["values"]
        assert values == {"question": "why?", "plan": "secret", **ANSWER}

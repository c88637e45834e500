"""The `context` of a run: built by the graph's `context_schema`, with its defaults, and refused with the field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.http.protocol.rig import serving

SOURCE = """
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

class State(TypedDict, total=False):
    said: Any
    configured: Any
    tags: Any

@dataclass(kw_only=True)
class Data:
    prompt: str = field(default="Be kind.", metadata={"description": "..."})
    model: Annotated[str, {"__template_metadata__": {"kind": "llm"}}] = "fake/model"
    results: int = 10

@dataclass
class Needy:
    user: str

class Model(BaseModel):
    prompt: str = "Be kind."
    results: int = 10

class Table(TypedDict):
    prompt: str
    results: int

def say(state, runtime: Runtime[Any]):
    context = runtime.context
    return {"said": context if context is None or isinstance(context, dict) else
            {"type": type(context).__name__, "prompt": getattr(context, "prompt", None),
             "results": getattr(context, "results", None)}}

def configured(state, config):
    return {"configured": config["configurable"].get("prompt"), "tags": config.get("tags")}

def build(schema):
    builder = StateGraph(State, context_schema=schema).add_node("say", say).add_node("configured", configured)
    return builder.add_edge(START, "say").add_edge("say", "configured").compile()

data, needy, model, table, none = build(Data), build(Needy), build(Model), build(Table), build(None)
def made(): return build(Needy)
"""
GRAPHS = ("data", "needy", "model", "table", "none", "made")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "contexts.py").write_text(SOURCE)
    graphs = {name: f"./contexts.py:{name}" for name in GRAPHS}
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": graphs}))
    return tmp_path / "langgraph.json"


@pytest.mark.parametrize(
    ("graph", "body", "said"),
    [
        ("data", {}, {"type": "Data", "prompt": "Be kind.", "results": 10}),
        ("data", {"context": {"results": 3}}, {"type": "Data", "prompt": "Be kind.", "results": 3}),
        ("data", {"context": {"results": 3, "other": 1}}, {"type": "Data", "prompt": "Be kind.", "results": 3}),
        ("data", {"config": {"configurable": {"prompt": "!", "x": 1}}}, {"type": "Data", "prompt": "!", "results": 10}),
        ("model", {}, {"type": "Model", "prompt": "Be kind.", "results": 10}),
        ("model", {"context": {"prompt": "!"}}, {"type": "Model", "prompt": "!", "results": 10}),
        ("table", {}, None),
        ("table", {"context": {"prompt": "!"}}, {"prompt": "!"}),
        ("none", {}, None),
        ("none", {"context": {"any": 1}}, {"any": 1}),
    ],
)
async def test_a_graph_gets_its_context_with_the_defaults(
    config: Path, graph: str, body: dict[str, Any], said: Any
) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        answer = await http.post("/runs/wait", json={"assistant_id": graph, "input": {}, **body})
        assert answer.json()["said"] == said


async def test_a_graph_that_looks_for_its_context_in_configurable_finds_it(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        body = {"assistant_id": "data", "input": {}, "context": {"prompt": "!", "thread_id": "stolen"}}
        assert (await http.post("/runs/wait", json=body)).json()["configured"] == "!"


@pytest.mark.parametrize(
    ("graph", "context", "field"),
    [
        ("data", {"results": "many"}, "context.results"),
        ("model", {"results": "many"}, "context.results"),
        ("table", {"results": "many"}, "context.results"),
        ("needy", {}, "context.user"),
        ("needy", None, "context.user"),
    ],
)
async def test_a_wrong_context_is_refused_with_the_field(
    config: Path, graph: str, context: dict[str, Any] | None, field: str
) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        for path in ("/runs/wait", "/runs/stream", "/runs"):
            answer = await http.post(path, json={"assistant_id": graph, "input": {}, "context": context})
            assert answer.status_code == 422
            assert field in answer.json()["detail"]


async def test_a_wrong_context_of_a_graph_that_is_made_is_an_error_of_its_run(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        answer = await http.post("/runs/wait", json={"assistant_id": "made", "input": {}})
        assert "context.user" in answer.json()["__error__"]["message"]


@pytest.mark.parametrize(
    "run",
    [{"context": {"prompt": "!"}}, {"config": {"configurable": {"prompt": "!"}}}],
    ids=["context", "configurable"],
)
async def test_a_run_overrides_the_context_of_its_assistant_however_it_says_so(
    config: Path, run: dict[str, Any]
) -> None:
    async with serving("memory://", config) as server, server.sdk() as client:
        made = await client.assistants.create("data", context={"prompt": "Be brief.", "results": 3})
        answer: Any = await client.runs.wait(None, made["assistant_id"], input={}, **run)
        assert answer["said"] == {"type": "Data", "prompt": "!", "results": 3}


async def test_the_tags_of_a_run_replace_those_of_its_assistant(config: Path) -> None:
    async with serving("memory://", config) as server, server.sdk() as client:
        made = await client.assistants.create("data", {"tags": ["assistant"]})
        cases: list[tuple[Any, list[str]]] = [({}, ["assistant"]), ({"config": {"tags": ["run"]}}, ["run"])]
        for given, tags in cases:
            answer: Any = await client.runs.wait(None, made["assistant_id"], input={}, **given)
            assert answer["tags"] == tags

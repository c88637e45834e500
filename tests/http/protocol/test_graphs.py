"""Graphs by name: from files and modules, compiled or not, made by functions of every kind; and what is not one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from everthread.core.errors import Invalid, NotFound
from everthread.http.protocol import graphs
from tests.http.protocol.rig import serving

SOURCE = """
from contextlib import asynccontextmanager, contextmanager
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    said: str

def build(said):
    builder = StateGraph(State)
    builder.add_node("say", lambda state: {"said": said})
    return builder.add_edge(START, "say")

plain = build("plain").compile()
builder = build("builder")

def made(): return build("made").compile()
def made_of_config(config): return build(config["configurable"]["who"]).compile()
async def made_async(): return build("async")

@contextmanager
def managed(): yield build("managed").compile()

@asynccontextmanager
async def managed_async(config): yield build("managed async").compile()

number = 7
def makes_no_graph(): return 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(SOURCE)
    return tmp_path


def _spec(folder: Path, place: str) -> graphs.GraphSpec:
    return graphs.load_graphs(graphs.locations_in_settings({"it": place}, folder)).get("it")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "plain"),
        ("builder", "builder"),
        ("made", "made"),
        ("made_of_config", "me"),
        ("made_async", "async"),
        ("managed", "managed"),
        ("managed_async", "managed async"),
    ],
)
async def test_a_graph_is_served_however_it_is_made(folder: Path, name: str, said: str) -> None:
    spec = _spec(folder, f"./agent.py:{name}")
    async with spec.open({"configurable": {"who": "me"}}, None, None) as graph:
        assert await graph.ainvoke({"said": ""}) == {"said": said}


async def test_a_graph_without_a_name_has_the_one_it_is_served_by(folder: Path) -> None:
    (folder / "named.py").write_text(SOURCE + "named = build('').compile(name='mine')")
    for place, name in (("./agent.py:plain", "it"), ("./agent.py:builder", "it"), ("./named.py:named", "mine")):
        async with _spec(folder, place).open({}, None, None) as graph:
            assert graph.get_name() == name


async def test_a_graph_gets_the_checkpointer_it_is_opened_with_and_keeps_none(folder: Path) -> None:
    spec, saver = _spec(folder, "./agent.py:plain"), InMemorySaver()
    async with spec.open({}, saver, None) as graph:
        assert graph.checkpointer is saver
    assert spec.source.checkpointer is None


def test_langgraph_json_names_graphs_and_sets_what_is_not_set_yet(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ET_TEST_SET", "mine")
    monkeypatch.delenv("ET_TEST_UNSET", raising=False)
    (folder / ".env").write_text("ET_TEST_SET=theirs\n# no=thing\nexport ET_TEST_UNSET='theirs'\n")
    config = {"graphs": {"a": "./agent.py:plain", "b": {"path": "agent.py:made", "description": "B"}}, "env": ".env"}
    (folder / "langgraph.json").write_text(json.dumps(config))
    found = graphs.load_graphs(graphs.locations_in_file(folder / "langgraph.json"))
    assert [(spec.id, spec.description) for spec in found] == [("a", None), ("b", "B")]
    assert os.environ["ET_TEST_SET"] == "mine"
    assert os.environ["ET_TEST_UNSET"] == "theirs"


@pytest.mark.parametrize("place", ["./agent.py", "./agent.py:number", "./agent.py:none", "./no.py:graph", "no.such:x"])
def test_what_is_no_graph_is_refused_when_it_is_loaded(folder: Path, place: str) -> None:
    with pytest.raises(Invalid, match=r"graphs\.it"):
        _spec(folder, place)


async def test_a_function_that_makes_no_graph_is_refused_when_it_is_asked(folder: Path) -> None:
    with pytest.raises(Invalid, match="must make a graph, not int"):
        async with _spec(folder, "./agent.py:makes_no_graph").open({}, None, None):
            pass


def test_an_unknown_name_is_answered_with_those_there_are(folder: Path) -> None:
    found = graphs.load_graphs(graphs.locations_in_settings({"b": "agent.py:plain", "a": "agent.py:made"}, folder))
    with pytest.raises(NotFound, match="available graphs: a, b"):
        found.get("c")


SCHEMAS = """
from dataclasses import dataclass
from typing import Annotated, NotRequired, TypedDict
from langgraph.graph import START, StateGraph

class Odd: ...

class State(TypedDict):
    said: str
    steps: Annotated[NotRequired[list[int]], "as middleware declares them"]
    odd: Odd

@dataclass
class Context:
    user: str = "nobody"

builder = StateGraph(State, context_schema=Context).add_node("say", lambda state: {"said": ""})
graph = builder.add_edge(START, "say").compile()
"""


async def test_a_member_without_a_schema_does_not_hide_those_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "schemas.py").write_text(SCHEMAS)
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"it": "./schemas.py:graph"}}))
    async with serving("memory://", tmp_path / "langgraph.json") as server, server.sdk() as client:
        schemas: Any = await client.assistants.get_schemas("it")
        members = schemas["state_schema"]["properties"]
        assert {name: member.get("type") for name, member in members.items()} == {
            "said": "string",
            "steps": None,
            "odd": None,
        }
        assert schemas["config_schema"] == schemas["context_schema"]
        assert schemas["context_schema"]["properties"]["user"]["default"] == "nobody"


async def test_what_is_not_used_of_langgraph_json_is_said_at_the_start(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {
        "graphs": {"agent": "./agent.py:plain"},
        "auth": {"path": "./auth.py:auth"},
        "http": {"app": "./web.py:app"},
    }
    (folder / "langgraph.json").write_text(json.dumps(config))
    async with serving("memory://", folder / "langgraph.json"):
        (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
        assert warning.startswith("not used of langgraph.json: auth, http;")

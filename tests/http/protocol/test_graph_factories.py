"""Functions that make graphs: their arguments, what they are told, and what becomes of their errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everthread import Invalid
from everthread.http.protocol import graphs
from tests.http.protocol.rig import serving

SOURCE = """
from __future__ import annotations
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict
from langgraph.graph import START, StateGraph
if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph_sdk.runtime import ServerRuntime

class State(TypedDict, total=False):
    said: Any

@dataclass
class Context:
    place: str = "here"

def build(said):
    builder = StateGraph(State)
    builder.add_node("say", lambda state: {"said": said})
    return builder.add_edge(START, "say").compile()

def told(runtime):
    running = runtime.execution_runtime
    context = running.context if running else None
    return {"why": runtime.access_context, "who": runtime.ensure_user().identity, "store": type(runtime.store).__name__,
            "context": context if isinstance(context, dict | None) else vars(context)}

def nothing(): return build("nothing")
def config_only(config: RunnableConfig): return build(config["configurable"]["who"])
def config_unnamed(given): return build(given["configurable"]["who"])
def runtime_only(runtime: ServerRuntime): return build(told(runtime))
def runtime_unnamed(runtime): return build(told(runtime))
def both(config: RunnableConfig, runtime: ServerRuntime[Context]):
    return build([config["configurable"]["who"], told(runtime)])
def turned(runtime: ServerRuntime, config: RunnableConfig):
    return build([config["configurable"]["who"], told(runtime)])
async def both_async(config: RunnableConfig, runtime: ServerRuntime): return both(config, runtime)
@contextmanager
def both_managed(config: RunnableConfig, runtime: ServerRuntime): yield both(config, runtime)
@asynccontextmanager
async def both_async_managed(config: RunnableConfig, *, runtime: ServerRuntime): yield both(config, runtime)
def with_default(config: RunnableConfig, debug: bool = False): return build(config["configurable"]["who"])

def fails(config): raise ValueError("no tools today")
async def fails_async(runtime: ServerRuntime): raise ValueError("no tools today")
@asynccontextmanager
async def fails_managed():
    raise ValueError("no tools today")
    yield
def fails_in_runs(runtime: ServerRuntime):
    if runtime.execution_runtime:
        raise ValueError("no tools today")
    return build("")
def fails_in_reads(runtime: ServerRuntime):
    if not runtime.execution_runtime:
        raise ValueError("no tools today")
    return build("done")

def too_many(config, runtime: ServerRuntime, more): ...
"""
TOLD = {"why": "threads.create_run", "who": "local", "store": "LogStore", "context": {"place": "there"}}
SAID: dict[str, Any] = {
    "nothing": "nothing",
    "config_only": "me",
    "config_unnamed": "me",
    "runtime_only": TOLD,
    "runtime_unnamed": TOLD,
    "both": ["me", TOLD],
    "turned": ["me", TOLD],
    "both_async": ["me", TOLD],
    "both_managed": ["me", TOLD],
    "both_async_managed": ["me", TOLD],
    "with_default": "me",
}
FAILING = ("fails", "fails_async", "fails_managed")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "factories.py").write_text(SOURCE)
    names = {name: f"./factories.py:{name}" for name in (*SAID, *FAILING, "fails_in_runs", "fails_in_reads")}
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": names}))
    return tmp_path / "langgraph.json"


async def test_a_function_gets_the_arguments_that_it_names(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        for name, said in SAID.items():
            body = {"assistant_id": name, "input": {}, "context": {"place": "there", "who": "me"}}
            answer = (await http.post("/runs/wait", json=body)).json()
            told = json.loads(json.dumps(answer).replace(', "who": "me"', ""))
            assert told.get("said") == said, (name, answer)


async def test_a_function_is_told_what_its_graph_is_for(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        names = graphs.load_graphs(graphs.locations_in_file(config)).get("runtime_only").source.__globals__
        reads: list[str] = []
        build = names["build"]

        def build_and_note(told: Any) -> Any:
            reads.append(told["why"])
            return build("x")

        monkeypatch.setitem(names, "build", build_and_note)
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        await http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "runtime_only", "input": {}})
        await http.get(f"/threads/{thread}/state")
        await http.post(f"/threads/{thread}/state", json={"values": {"said": "y"}})
        await http.get("/assistants/runtime_only/schemas")
        await http.get("/assistants/runtime_only/graph")
        assert set(reads) == {"threads.create_run", "threads.read", "threads.update", "assistants.read"}


@pytest.mark.parametrize("name", [*FAILING, "fails_in_runs"])
async def test_what_a_function_raises_is_an_error_of_the_run(config: Path, name: str) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        body = {"assistant_id": name, "input": {}}
        for path in (f"/threads/{thread}/runs/stream", "/runs/stream"):
            text = (await http.post(path, json=body)).text
            assert [line for line in text.splitlines() if line.startswith("event:")][-2:] == [
                "event: error",
                "event: end",
            ]
            assert "ValueError: no tools today" in text
        for path in (f"/threads/{thread}/runs/wait", "/runs/wait"):
            answer = (await http.post(path, json=body)).json()
            assert answer["__error__"]["error"] == "GraphFailed"


@pytest.mark.parametrize("name", FAILING)
async def test_what_a_function_raises_is_a_clear_answer_where_its_graph_is_read(config: Path, name: str) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        thread = (await http.post("/threads", json={})).json()["thread_id"]
        await http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": name, "input": {}})
        for path in (f"/assistants/{name}/schemas", f"/assistants/{name}/graph", f"/threads/{thread}/state"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (424, "graph_failed")
            assert f"graph '{name}' could not be made: ValueError: no tools today" in answer.json()["detail"]


async def test_a_run_gives_its_values_also_where_its_graph_cannot_be_read(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http:
        body = {"assistant_id": "fails_in_reads", "input": {}}
        assert (await http.post("/runs/wait", json=body)).json() == {"said": "done"}


def test_a_function_that_wants_more_is_refused_when_it_is_loaded(config: Path) -> None:
    with pytest.raises(Invalid, match=r"graphs\.it: \./factories\.py:too_many may take .* 'more' is neither"):
        graphs.load_graphs(graphs.locations_in_settings({"it": "./factories.py:too_many"}, config.parent))

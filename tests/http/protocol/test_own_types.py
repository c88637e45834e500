"""Types of one's own in the states of served graphs: they last through runs, restarts and other servers, and what could
not be read again is an error of the run that wrote it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from langgraph.types import Send
from pydantic import HttpUrl, SecretStr

from everthread import Invalid
from everthread.http.protocol import graphs
from everthread.http.protocol.serialization import to_plain
from tests.http.protocol.rig import serving

SOURCE = """
import operator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, TypedDict
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel

class Level(Enum):
    HIGH = "high"

@dataclass
class Step:
    text: str
    level: Level = Level.HIGH

class Plan(BaseModel):
    steps: list[str]

class Hidden(BaseModel):
    word: str
    def model_post_init(self, context): pass

class Counter(BaseModel):
    count: Annotated[int, lambda old, new: old + new] = 0

class State(TypedDict, total=False):
    steps: Annotated[list[Step], operator.add]
    plan: Plan
    answer: Any
    kind: str

def fill(state: State) -> State:
    before = state.get("steps", [])
    assert all(isinstance(step, Step) for step in before)
    return {"steps": [Step(f"step {len(before)}")], "plan": Plan(steps=["a"])}

def ask(state: State) -> State:
    return {"answer": interrupt(Step("sure?"))}

def hide(state: State) -> State:
    return {"answer": globals()["Hidden"](word="x")}

graph = StateGraph(State).add_node("fill", fill).add_edge(START, "fill").compile()
asks = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile()
hides = StateGraph(State).add_node("hide", hide).add_edge(START, "hide").compile()
counts = StateGraph(Counter).add_node("count", lambda state: {"count": 1}).add_edge(START, "count").compile()

def made(config): return graph
"""


def forget() -> None:
    """As in a new process: the file's module is imported anew."""
    for name in [name for name in sys.modules if "own_types_" in name]:
        del sys.modules[name]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    forget()
    (tmp_path / "own_types.py").write_text(SOURCE)
    names = {name: f"./own_types.py:{name}" for name in ("graph", "asks", "hides", "counts", "made")}
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": names}))
    return tmp_path / "langgraph.json"


@pytest.mark.parametrize("name", ["graph", "made"])
async def test_a_state_with_types_of_ones_own_lasts_through_runs_and_restarts(
    durable_url: str, config: Path, name: str
) -> None:
    for number in range(2):
        forget()
        async with serving(durable_url, config) as server, server.sdk() as client, server.http() as http:
            if number == 0:
                await client.threads.create(thread_id="t")
            for _ in range(2):
                values: Any = await client.runs.wait("t", name, input={})
            assert len(values["steps"]) == 2 * (number + 1)
            assert values["steps"][0] == {"text": "step 0", "level": "high"}
            state: Any = await client.threads.get_state("t")
            assert state["values"]["plan"] == {"steps": ["a"]}
            assert len(await client.threads.get_history("t")) > 2
            assert (await http.get("/threads/t/full-history")).status_code == 200
            copied = await http.post("/threads/t/copy")
            assert (await client.threads.get_state(copied.json()["thread_id"]))["values"] == state["values"]


async def test_a_question_of_ones_own_type_is_answered_after_a_restart(durable_url: str, config: Path) -> None:
    async with serving(durable_url, config) as server, server.sdk() as client:
        await client.threads.create(thread_id="t")
        await client.runs.wait("t", "asks", input={})
    forget()
    async with serving(durable_url, config) as server, server.sdk() as client:
        state = await client.threads.get_state("t")
        assert state["tasks"][0]["interrupts"][0]["value"] == {"text": "sure?", "level": "high"}
        values: Any = await client.runs.wait("t", "asks", command={"resume": "yes"})
        assert values["answer"] == "yes"


async def test_a_type_that_could_not_be_read_again_is_an_error_of_its_run(config: Path) -> None:
    async with serving("memory://", config) as server, server.sdk() as client:
        await client.threads.create(thread_id="t")
        answer: Any = await client.runs.wait("t", "hides", input={}, raise_error=False)
        assert "Hidden" in answer["__error__"]["message"]
        assert "allowed_types" in answer["__error__"]["message"]
        assert "channel 'answer'" in answer["__error__"]["message"]
        assert (await client.threads.get_state("t"))["values"] == {"steps": []}


async def test_a_state_that_its_schema_refuses_is_shown_as_it_is_stored_and_hides_no_other_thread(config: Path) -> None:
    """As after a change of the schema, or an input that is wrong only for the types of the graph."""
    async with serving("memory://", config) as server, server.sdk() as client:
        for name in ("good", "t"):
            await client.threads.create(thread_id=name)
            await client.runs.wait(name, "counts", input={"count": 2})
        await client.threads.update_state("t", {"count": 0.5}, as_node="__start__")
        state: Any = await client.threads.get_state("t")
        assert state["values"] == {"count": 3.5}
        assert "valid integer" in state["tasks"][0]["error"]
        assert (await client.threads.get("t"))["values"] == {"count": 3.5}
        found = await client.threads.search(sort_by="created_at", sort_order="asc")
        assert [(one["thread_id"], one["status"]) for one in found] == [("good", "idle"), ("t", "idle")]
        history: Any = await client.threads.get_history("t")
        assert [one["values"].get("count") for one in history] == [3.5, 3, 2, 0]
        assert [bool(one["tasks"] and one["tasks"][0]["error"]) for one in history] == [True, False, False, False]
        at: Any = history[1]["checkpoint"]
        assert (await client.threads.get_state("t", checkpoint=at))["tasks"] == []


async def test_what_a_reducer_refuses_is_an_error_of_the_request(config: Path) -> None:
    async with serving("memory://", config) as server, server.http() as http, server.sdk() as client:
        await client.threads.create(thread_id="t")
        await client.runs.wait("t", "counts", input={"count": 2})
        answer = await http.post("/threads/t/state", json={"values": {"count": "two"}})
        assert answer.status_code == 422
        assert "TypeError" in answer.json()["detail"]
        assert (await client.threads.get_state("t"))["values"] == {"count": 3}


class Point(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("60.5"), 60.5),
        (Decimal(3), 3),
        (b"hi", "aGk="),
        (Point(1), {"x": 1}),
        (PurePosixPath("/notes.md"), "/notes.md"),
        (ip_address("127.0.0.1"), "127.0.0.1"),
        (re.compile("a+"), "a+"),
        (UTC, "UTC"),
        (ZoneInfo("Europe/Paris"), "Europe/Paris"),
        (HttpUrl("https://a.example/b"), "https://a.example/b"),
        (SecretStr("word"), "**********"),
        (Send("node", {"at": Point(2)}), {"node": "node", "args": {"at": {"x": 2}}}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_a_state_are_shown_as_clients_expect_them(value: object, shown: object) -> None:
    assert to_plain({"value": [value]}) == {"value": [shown]}


async def test_types_can_be_named_in_the_settings(
    config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "own_hidden.py").write_text("from pydantic import BaseModel\nclass Hidden(BaseModel):\n    word: str\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = SOURCE.replace('globals()["Hidden"]', '__import__("own_hidden").Hidden')
    (tmp_path / "own_types.py").write_text(source)
    forget()
    async with serving("memory://", config, allowed_types=["own_hidden:Hidden"]) as server, server.sdk() as client:
        await client.threads.create(thread_id="t")
        answer: Any = await client.runs.wait("t", "hides", input={})
        assert answer["answer"] == {"word": "x"}


@pytest.mark.parametrize("given", ["own_hidden", "no.such:Type", "os:path", "os:Missing", ":x"])
def test_a_setting_that_names_no_type_is_refused_when_the_server_starts(given: str) -> None:
    with pytest.raises(Invalid, match="allowed_types"):
        graphs.load_types([given])


def test_a_file_s_types_have_the_same_name_in_every_process(config: Path) -> None:
    code = (
        "from pathlib import Path; from everthread.http.protocol import graphs; "
        f"found = graphs.load_graphs(graphs.locations_in_file(Path({str(config)!r}))); "
        "print(found.get('graph').source.builder.state_schema.__module__)"
    )
    names = {
        subprocess.check_output([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(names) == 1

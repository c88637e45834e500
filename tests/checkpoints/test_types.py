"""What a graph puts into its own state comes back, also in a process that has never written it; all else is refused,
when it is written or, if it is planted, when it is read.
"""

from __future__ import annotations

import importlib
import operator
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, Protocol, TypedDict, TypeVar

import numpy as np
import ormsgpack
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, PostgresDsn, SecretStr

import everthread
from everthread import Everthread, Invalid
from everthread.adapters.checkpoints import calling_graph
from everthread.adapters.checkpoints.checkpoint_intents import PutWrites
from everthread.adapters.checkpoints.graph_types import types_of
from everthread.adapters.checkpoints.serde import PlainSerializer, StateSerializer
from everthread.core.checkpoints import StoredWrite
from everthread.core.nouns import Ref
from everthread.langgraph import EverthreadSaver
from everthread.testing import Reply, ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "t"}}
T = TypeVar("T")


@pytest.fixture
async def memory() -> AsyncIterator[Everthread]:
    """For what no store has a part in."""
    async with everthread.open("memory://") as et:
        yield et


class Colour(Enum):
    RED = "red"


class Level(StrEnum):
    HIGH = "high"


@dataclass
class Step:
    text: str
    colour: Colour = Colour.RED
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(self.text)


@dataclass(frozen=True, slots=True)
class Point:
    x: int


class Pair(NamedTuple):
    left: Point
    right: Level


class Plan(BaseModel):
    steps: list[str]
    level: Level = Level.HIGH
    key: SecretStr = SecretStr("hidden")


class Shape(BaseModel):
    name: str


class Circle(Shape):
    radius: int


class Outer:
    class Inner(BaseModel):
        word: str


class Box(BaseModel, Generic[T]):
    content: T


@dataclass
class Crate(Generic[T]):
    content: T


class Part(TypedDict):
    point: Point


class Tags(set[str]):
    pass


class Shout(HumanMessage):
    volume: int = 0


class Named(Protocol):
    name: str


@dataclass
class Author(Named):
    name: str


class _Shy(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError("this class minds being looked at")


class Shy(tuple[int], metaclass=_Shy):
    """Stands beside the types of the graph, and is none of them."""


class Moment(datetime):
    """As of a library of times."""


class State(TypedDict, total=False):
    steps: list[Step]
    points: Sequence[Point]
    pairs: tuple[Pair, ...]
    plan: Plan | None
    shape: Shape
    inner: Outer.Inner
    box: Box[int]
    crate: Crate[Level]
    parts: Mapping[str, Part]
    tags: NotRequired[Tags]
    colours: Annotated[list[Colour], operator.add]
    shout: Shout
    author: Author
    moment: Moment


FULL: Any = {
    "steps": [Step("one")],
    "points": [Point(1)],
    "pairs": (Pair(Point(1), Level.HIGH),),
    "plan": Plan(steps=["a"]),
    "shape": Circle(name="c", radius=2),
    "inner": Outer.Inner(word="w"),
    "box": Box[int](content=1),
    "crate": Crate(Level.HIGH),
    "parts": {"a": {"point": Point(2)}},
    "tags": Tags({"x"}),
    "colours": [Colour.RED],
    "shout": Shout(content="hey", volume=11),
    "author": Author("Ann"),
    "moment": Moment(2026, 1, 2, tzinfo=UTC),
}


def build(saver: BaseCheckpointSaver[Any] | None, values: Any = FULL, schema: Any = State) -> Any:
    """A graph that writes these, and whose code names none of their types."""
    builder = StateGraph(schema)
    builder.add_node("fill", lambda state: values)
    return builder.add_edge(START, "fill").compile(checkpointer=saver)


def is_same(found: Any, written: Any) -> bool:
    if isinstance(written, tuple) and not hasattr(written, "_fields"):
        return [*found] == [*written]  # MessagePack has no tuples
    return bool(found == written) and type(found) is type(written)


@pytest.mark.parametrize("name", FULL)
async def test_a_type_that_the_schema_names_comes_back(et: Everthread, name: str) -> None:
    await build(EverthreadSaver(et), {name: FULL[name]}).ainvoke({"colours": []}, THREAD)
    again = (await build(EverthreadSaver(et)).aget_state(THREAD)).values
    assert is_same(again[name], FULL[name])


async def test_a_type_that_is_defined_in_a_function_comes_back(memory: Everthread) -> None:
    @dataclass
    class Local:
        word: str

    schema = TypedDict("schema", {"it": list[Local]})  # noqa: UP013 - a class could not name what is local
    graph = build(EverthreadSaver(memory), {"it": [Local("x")]}, schema)
    await graph.ainvoke({"it": []}, THREAD)
    assert (await build(EverthreadSaver(memory), {}, schema).aget_state(THREAD)).values == {"it": [Local("x")]}


# -- types that only the code names ------------------------------------------------------------------------


class Loose(TypedDict, total=False):
    it: Any


def _made_by_a_helper() -> Any:
    return Step("helped")


def fill_by_name(state: Loose) -> Loose:
    return {"it": Step("named")}


def fill_by_helper(state: Loose) -> Loose:
    return {"it": _made_by_a_helper()}


class Filler:
    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __call__(self, state: Loose) -> Loose:
        return {"it": self._kind("held")}


def filled(node: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def build(saver: Any) -> Any:
        builder: Any = StateGraph(Loose)
        return builder.add_node("fill", node).add_edge(START, "fill").compile(checkpointer=saver)

    return build


def closed_over() -> Callable[[Any], Any]:
    kind = Step
    return lambda state: {"it": kind("closed")}


def with_subgraph(saver: Any) -> Any:
    inner = filled(fill_by_name)(None)
    return StateGraph(Loose).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)


WAYS: dict[str, Callable[[Any], Any]] = {
    "by its name": filled(fill_by_name),
    "by a function that it calls": filled(fill_by_helper),
    "by what it closes over": filled(closed_over()),
    "by an argument": filled(partial(lambda kind, state: {"it": kind("partial")}, Step)),
    "by an object": filled(Filler(Step)),
    "in a subgraph": with_subgraph,
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_type_that_the_code_names_comes_back(memory: Everthread, way: str) -> None:
    await WAYS[way](EverthreadSaver(memory)).ainvoke({}, THREAD)
    again = (await WAYS[way](EverthreadSaver(memory)).aget_state(THREAD)).values
    assert isinstance(again["it"], Step)


async def test_a_type_of_a_module_that_the_graphs_module_imports_comes_back(
    memory: Everthread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_parts.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass\nclass Part:\n    number: int\n"
    )
    (tmp_path / "importing.py").write_text(
        "import imported_parts\n\ndef fill(state):\n    return {'it': vars(imported_parts)['Part'](1)}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    fill = importlib.import_module("importing").fill
    await filled(fill)(EverthreadSaver(memory)).ainvoke({}, THREAD)
    again = (await filled(fill)(EverthreadSaver(memory)).aget_state(THREAD)).values
    assert again["it"].number == 1


class Scored(NamedTuple):
    score: Any


@dataclass
class Measured:
    by: Any


class Cited(BaseModel):
    url: HttpUrl
    by: Any


REFUSED_BY_LANGGRAPH: Mapping[str, Any] = {
    "a float of numpy": np.float32(1.5),
    "its usual float": np.float64(1.5),
    "an integer of numpy": np.int64(4),
    "a truth of numpy": np.bool_(True),
    "a URL": HttpUrl("https://a.example/b"),
    "a database": PostgresDsn("postgres://u@localhost:5432/a"),
    "a pure path": PurePosixPath("/notes.md"),
    "in a list": [{"a": np.float16(0.5)}],
    "in a set": {np.int8(3)},
    "in a named tuple": Scored(np.uint8(3)),
    "in a dataclass": Measured(PurePosixPath("a")),
    "in a model": Cited(url=HttpUrl("https://a.example"), by=[np.float32(0.5)]),
}


@pytest.mark.parametrize("what", REFUSED_BY_LANGGRAPH)
async def test_plain_data_that_langgraphs_serializer_refuses_comes_back(memory: Everthread, what: str) -> None:
    value = REFUSED_BY_LANGGRAPH[what]
    await filled(lambda state: {"it": value})(EverthreadSaver(memory)).ainvoke({}, THREAD)
    again = (await filled(lambda state: {})(EverthreadSaver(memory)).aget_state(THREAD)).values
    assert again["it"] == value
    assert repr(again["it"]) == repr(value)


async def test_structured_answers_last_into_the_next_turn_and_process(et: Everthread) -> None:
    def agent() -> Any:
        model = ScriptedModel([Reply(calls=[("Plan", {"steps": ["a"]})])] * 2)
        return create_agent(model, response_format=ToolStrategy(Plan), checkpointer=EverthreadSaver(et))

    for _ in range(2):
        answer = await agent().ainvoke({"messages": [("user", "plan!")]}, THREAD)
        assert answer["structured_response"] == Plan(steps=["a"])
    assert (await agent().aget_state(THREAD)).values["structured_response"] == Plan(steps=["a"])


class Noted(AgentState[Any]):
    note: NotRequired[Any]


class Noting(AgentMiddleware[Any, Any]):
    state_schema = Noted

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"note": Point(3)}


async def test_a_type_that_a_middleware_names_comes_back(memory: Everthread) -> None:
    def agent() -> Any:
        return create_agent(ScriptedModel(["ok"]), middleware=[Noting()], checkpointer=EverthreadSaver(memory))

    await agent().ainvoke({"messages": [("user", "hi")]}, THREAD)
    assert (await agent().aget_state(THREAD)).values["note"] == Point(3)


async def test_what_a_graph_asks_and_is_answered_may_be_of_its_own_types(et: Everthread) -> None:
    def asks(state: Loose) -> Loose:
        return {"it": interrupt(Step("sure?"))}

    await filled(asks)(EverthreadSaver(et)).ainvoke({}, THREAD)
    waiting = await filled(asks)(EverthreadSaver(et)).aget_state(THREAD)
    assert waiting.interrupts[0].value == Step("sure?")
    await filled(asks)(EverthreadSaver(et)).ainvoke(Command(resume=Point(1)), THREAD)
    assert (await filled(asks)(EverthreadSaver(et)).aget_state(THREAD)).values == {"it": Point(1)}


class Newest(TypedDict):
    it: Annotated[Any, lambda old, new: new]


async def test_what_is_sent_to_a_node_may_be_of_a_graphs_own_types(memory: Everthread) -> None:
    def spread(state: Loose) -> list[Send]:
        return [Send("fill", Point(number)) for number in range(2)]

    def take(point: Point) -> dict[str, Any]:
        interrupt("wait")
        return {"it": point}

    def graph() -> Any:
        builder: Any = StateGraph(Newest)
        builder.add_node("fill", take)
        builder.add_conditional_edges(START, spread, ["fill"])
        return builder.compile(checkpointer=EverthreadSaver(memory))

    await graph().ainvoke({"it": None}, THREAD)
    assert len((await graph().aget_state(THREAD)).tasks) == 2
    points = {task.interrupts[0].id: "go" for task in (await graph().aget_state(THREAD)).tasks}
    assert isinstance((await graph().ainvoke(Command(resume=points), THREAD))["it"], Point)


@task
def make_point(x: int) -> Any:
    return Point(x)


async def test_tasks_and_entrypoints_get_their_types_back(et: Everthread) -> None:
    def program() -> Any:
        @entrypoint(checkpointer=EverthreadSaver(et))
        async def count(step: int, previous: Any = None) -> Any:
            point = await make_point(step)
            interrupt("go on?")
            return Step(f"{point.x} after {previous.text if previous else None}")

        return count

    for number, told in ((1, "1 after None"), (2, "2 after 1 after None")):
        await program().ainvoke(number, THREAD)
        assert await program().ainvoke(Command(resume=True), THREAD) == Step(told)


# -- what is refused ---------------------------------------------------------------------------------------

built: list[str] = []


class Beside(BaseModel):
    """Stands in the same module, and no graph names it."""

    word: str

    def model_post_init(self, context: Any) -> None:
        built.append(self.word)


@dataclass
class Watching:
    word: str

    def __post_init__(self) -> None:
        built.append(self.word)


class Around(BaseModel):
    beside: Beside


class Defaulting(BaseModel):
    words: Any = Field(default_factory=lambda: built.append("default"))


class Validating(BaseModel):
    word: Annotated[str, AfterValidator(built.append)]


def _unnamed() -> Any:
    return globals()["Beside"](word="w")


async def test_what_could_not_be_read_back_is_refused_when_it_is_written(et: Everthread) -> None:
    graph = filled(lambda state: {"it": _unnamed()})(EverthreadSaver(et))
    with pytest.raises(Invalid, match=r"channel 'it': .*test_types\.Beside .*allowed=.*allowed_types") as refused:
        await graph.ainvoke({}, THREAD)
    assert refused.value.field == "channel 'it'"
    named = filled(lambda state: {"it": _unnamed()})(EverthreadSaver(et, allowed=[Beside]))
    await named.ainvoke({}, {"configurable": {"thread_id": "u"}})


class Plain:
    """Neither a dataclass nor anything else that has a form on the disk."""


@pytest.mark.parametrize("value", [Plain(), {"deep": [Plain()]}, [Step("x"), Plain()]], ids=["bare", "deep", "beside"])
async def test_what_has_no_form_on_the_disk_is_refused_with_its_channel(et: Everthread, value: Any) -> None:
    graph = filled(lambda state: {"it": value})(EverthreadSaver(et, allowed=[Step]))
    with pytest.raises(Invalid, match=r"test_types\.Plain, .* cannot be stored .*UntrackedValue") as refused:
        await graph.ainvoke({}, THREAD)
    assert refused.value.field == "channel 'it'"


def _planted(code: int, module: str, name: str, value: Any) -> StoredWrite:
    body = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb([module, name, value])))
    return StoredWrite(0, "task", 0, "", "it", "msgpack", body, False)


PLANTED = {
    "a model that no graph names": (5, __name__, "Beside", {"word": "planted"}),
    "a process": (1, "subprocess", "Popen", [["touch", "planted"]]),
    "a command": (0, "os", "system", "touch planted"),
    "a dataclass that runs code": (2, __name__, "Watching", {"word": "planted"}),
    "a model whose field runs code": (5, __name__, "Around", {"beside": {"word": "planted"}}),
    "a model with a default that runs code": (5, __name__, "Defaulting", {}),
    "a model with a validator": (5, __name__, "Validating", {"word": "planted"}),
    "a function of the same module": (0, __name__, "filled", None),
    "a model beside an allowed one": (5, "pydantic.main", "BaseModel", {}),
}


@pytest.mark.parametrize("what", PLANTED)
async def test_i25_a_planted_type_that_no_graph_names_is_never_built(
    memory: Everthread, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built.clear()
    monkeypatch.setattr(subprocess, "Popen", lambda *given: built.append("process"))
    monkeypatch.setattr("os.system", lambda *given: built.append("command"))
    graph = filled(fill_by_name)(EverthreadSaver(memory))
    await graph.ainvoke({}, THREAD)
    found = await EverthreadSaver(memory, allowed=[Step, Colour]).aget_tuple(THREAD)
    assert found is not None
    planted = PutWrites(namespace="", id=found.checkpoint["id"], writes=[_planted(*PLANTED[what])])
    await memory.store.log.write(Ref("local", "t"), planted)
    with pytest.raises(Invalid, match="allow-list"):
        await graph.aget_state(THREAD)
    assert built == []


def test_a_reader_without_the_types_gets_plain_data_and_builds_nothing() -> None:
    built.clear()
    stored = StateSerializer([Beside, Step]).dumps_typed({"it": Beside(word="w"), "steps": {Colour.RED.value}})
    built.clear()
    assert PlainSerializer().loads_typed(stored) == {"it": {"word": "w"}, "steps": {"red"}}
    assert built == []


async def test_the_full_history_can_be_read_without_the_graph(et: Everthread) -> None:
    schema = TypedDict("schema", {"messages": list[Any], "plan": Plan, "step": Any})  # noqa: UP013
    values = {
        "messages": [HumanMessage("hi", id="1"), Shout(content="hey", id="2")],
        "plan": Plan(steps=[]),
        "step": Step("x"),
    }
    await build(EverthreadSaver(et, allowed=[Shout, Step, Colour]), values, schema).ainvoke({}, THREAD)
    history = await et.full_history("t", saver=EverthreadSaver(et))
    assert [message["content"] for message in history["values"]["messages"]] == ["hi", "hey"]


async def test_without_a_look_at_the_caller_types_are_named_by_hand(
    memory: Everthread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling_graph, "ENABLED", False)
    with pytest.raises(Invalid, match="could not be read back"):
        await build(EverthreadSaver(memory)).ainvoke({"colours": []}, THREAD)
    saver = EverthreadSaver(memory, allowed=types_of(build(None)))
    await build(saver).ainvoke({"colours": []}, THREAD)
    assert (await build(saver).aget_state(THREAD)).values["plan"] == Plan(steps=["a"])


async def test_langgraphs_own_list_of_types_is_taken(memory: Everthread, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under LANGGRAPH_STRICT_MSGPACK=true, where LangGraph tells a checkpointer what a graph's schemas name."""
    monkeypatch.setattr(calling_graph, "ENABLED", False)
    saver: Any = EverthreadSaver(memory).with_allowlist(
        {(__name__, "Plan"), (__name__, "Level"), ("pydantic.types", "SecretStr")}
    )
    graph = build(saver, {"plan": Plan(steps=["a"])})
    await graph.ainvoke({"colours": []}, THREAD)
    assert (await graph.aget_state(THREAD)).values["plan"] == Plan(steps=["a"])

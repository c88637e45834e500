"""Whatever a graph does, each state that `EverthreadSaver` gives back is the one that `InMemorySaver` gives back."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import EmptyInputError
from langgraph.types import Command

from everthread.adapters.stores.sqlite.files import migrate
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.graphs import IN_PLACE, OPERATIONS, DeltaState, Shout, State, build

Action = tuple[str, Any, Any]


def actions() -> st.SearchStrategy[list[Action]]:
    durability = st.sampled_from(["sync", "async", "exit"])
    older = st.integers(0, 30)
    operation = st.sampled_from(OPERATIONS)
    one = st.one_of(
        st.tuples(st.just("invoke"), operation, durability),
        st.tuples(st.just("invoke"), operation, durability),
        st.tuples(st.just("resume"), st.text("xyz", max_size=2), durability),
        st.tuples(st.just("update"), operation, st.none()),
        st.tuples(st.just("fork"), operation, older),
        st.tuples(st.just("travel"), st.none(), older),
        st.tuples(st.just("edit"), st.none(), older),
    )
    return st.lists(one, min_size=1, max_size=7)


class Player:
    """Plays actions on one graph, and tells its states in words that do not depend on chance."""

    def __init__(self, saver: Any, schema: type[Any]) -> None:
        self._graph: Any = build(saver, schema)
        self._saver = saver
        self._config: Any = {"configurable": {"thread_id": "t"}}
        self._names: dict[str, str] = {}
        self._turn = 0

    def play(self, action: Action) -> str:
        """What came of it: nothing, or the error."""
        kind, what, how = action
        self._turn += 1
        try:
            getattr(self, f"_{kind}")(what, how)
        except (ValueError, EmptyInputError) as problem:
            return type(problem).__name__
        return ""

    def _asked(self, what: str) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"{what} {self._turn}", id=f"h{self._turn}")]}

    def _invoke(self, what: str, how: str) -> None:
        self._graph.invoke(self._asked(what), self._config, durability="sync" if what in IN_PLACE else how)

    def _resume(self, what: str, how: str) -> None:
        if self._graph.get_state(self._config).next:
            self._graph.invoke(Command(resume=what), self._config, durability=how)

    def _update(self, what: str, how: object) -> None:
        self._graph.update_state(self._config, {**self._asked(what), "notes": ["updated"]}, as_node="tail")

    def _older(self, number: int) -> Any:
        history = list(self._graph.get_state_history(self._config))
        return history[number % len(history)].config if history else self._config

    def _fork(self, what: str, number: int) -> None:
        self._graph.invoke(self._asked(what), self._older(number), durability="sync")

    def _travel(self, what: object, number: int) -> None:
        self._graph.invoke(None, self._older(number), durability="sync")

    def _edit(self, what: object, number: int) -> None:
        older = self._older(number)
        messages = self._graph.get_state(older).values.get("messages", [])
        if messages:
            edited = HumanMessage(f"quiet edit {self._turn}", id=messages[0].id)
            self._graph.update_state(older, {"messages": [edited]}, as_node="tail")

    def states(self) -> Iterator[Any]:
        """Every state of the thread, newest first, as data."""
        for state in self._graph.get_state_history(self._config):
            yield {
                "values": {channel: self._told(value) for channel, value in sorted(state.values.items())},
                "next": state.next,
                "metadata": [(state.metadata or {}).get(key) for key in ("source", "step")],
                "tasks": [(t.name, [i.value for i in t.interrupts], self._result(t.result)) for t in state.tasks],
                "parent": self._named((state.parent_config or {}).get("configurable", {}).get("checkpoint_id")),
                "self": self._named(state.config["configurable"]["checkpoint_id"]),
            }

    def inner_states(self) -> Iterator[Any]:
        """What subgraphs have stored, in any order of their namespaces."""
        for found in self._saver.list({"configurable": {"thread_id": "t"}}):
            if found.config["configurable"]["checkpoint_ns"]:
                values = found.checkpoint["channel_values"]
                yield repr([(channel, self._told(value)) for channel, value in sorted(values.items())])

    def _told(self, value: Any) -> Any:
        if isinstance(value, BaseMessage):
            return {**value.model_dump(), "id": self._named(value.id), "class": type(value).__name__}
        if isinstance(value, list | tuple):
            return [self._told(item) for item in value]
        if isinstance(value, dict):
            return {key: self._told(item) for key, item in value.items()}
        return value

    def _result(self, result: Any) -> Any:
        """Without the ids that a reducer makes: it sets them while the write is being saved, before or after."""
        return _nameless(self._told(result))

    def _named(self, id: str | None) -> str | None:
        """Ids that were made by chance, by the order in which they are met."""
        if id is None or len(id) < 20:
            return id
        return self._names.setdefault(id, f"#{len(self._names)}")


def _nameless(told: Any) -> Any:
    if isinstance(told, list):
        return [_nameless(item) for item in told]
    if isinstance(told, dict):
        return {key: _nameless(item) for key, item in told.items() if key != "id" or _is_given(item)}
    return told


def _is_given(id: str | None) -> bool:
    return id is not None and not id.startswith("#")


@pytest.fixture(scope="module")
def tables() -> Iterator[Path]:
    """A file that has its tables."""
    folder = Path(tempfile.mkdtemp())
    migrate(folder / "et.db")
    yield folder / "et.db"
    shutil.rmtree(folder)


def compare(url: str, schema: type[Any], program: list[Action]) -> None:
    if schema is DeltaState:  # whose writes LangGraph saves in the background, whatever the durability
        program = [action for action in program if action[1] not in IN_PLACE]
    theirs = Player(InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=[Shout])), schema)
    with EverthreadSaver.from_url(url, allowed=[Shout]) as saver:
        ours = Player(saver, schema)
        for action in program:
            assert ours.play(action) == theirs.play(action), action
            assert list(ours.states()) == list(theirs.states()), action
            assert sorted(ours.inner_states()) == sorted(theirs.inner_states()), action
    if url.startswith("sqlite"):  # what was remembered is gone: all of it comes from the file
        with EverthreadSaver.from_url(url, allowed=[Shout]) as saver:
            again = Player(saver, schema)
            again._names = ours._names
            assert list(again.states()) == list(theirs.states())


FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@FEW
@given(actions())
def test_each_state_is_that_of_the_reference_in_memory(program: list[Action]) -> None:
    compare("memory://", State, program)


@FEW
@given(actions())
def test_each_state_is_that_of_the_reference_with_a_delta_channel(program: list[Action]) -> None:
    compare("memory://", DeltaState, program)


@settings(FEW, max_examples=25)
@given(program=actions(), schema=st.sampled_from([State, DeltaState]))
def test_each_state_is_that_of_the_reference_on_sqlite(tables: Path, program: list[Action], schema: type[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(tables, f"{folder}/et.db")
        compare(f"sqlite:///{folder}/et.db", schema, program)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(FEW, max_examples=300)
@given(program=actions(), schema=st.sampled_from([State, DeltaState]))
def test_many_states_are_those_of_the_reference_on_sqlite(
    tables: Path, program: list[Action], schema: type[Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(tables, f"{folder}/et.db")
        compare(f"sqlite:///{folder}/et.db", schema, program)

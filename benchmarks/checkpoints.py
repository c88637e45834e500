"""What a turn of a graph costs with our saver, beside SqliteSaver, InMemorySaver and one that keeps nothing.

On the disk SqliteSaver is measured with an ordinary list of messages and with LangGraph's DeltaChannel, each a thread
of as many turns as ours.
"""

from __future__ import annotations

import argparse
import gc
import sqlite3
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

from benchmarks.report import Row
from everthread.langgraph import EverthreadSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}
LENGTHS = (100, 1_000, 2_000)
REFERENCE = "InMemorySaver"
SYSTEMS = ("keeps nothing", REFERENCE, "SqliteSaver", "everthread")
_TEXT = "the quick brown fox jumps over the lazy dog, and the dog does not mind it. " * 7
_STRETCH = 10
"""Turns that one system takes in a row on a thread. Single ones find caches that the others, and a full collection,
have swept."""
_THREADS = 4
_ALONE = 40
"""Where a process does nothing else: so many turns in a row on so many threads, one after the other. Enough for the
collector to take its share, and the threads hardly grow."""
_WHOLE = 1_000
"""Turns that are really run, one by one, to see what they leave on the disk."""


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class NoSaver(InMemorySaver):
    """Keeps each thread's newest checkpoint as it is, uncopied: what LangGraph itself costs."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, Any] = {}

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        thread = config["configurable"]["thread_id"]
        found: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
        self._kept[thread] = (found, checkpoint, metadata)
        return found

    def put_writes(self, *_: Any, **__: Any) -> None:
        return None

    def get_tuple(self, config: Any) -> Any:
        kept = self._kept.get(config["configurable"]["thread_id"])
        return None if kept is None else CheckpointTuple(*kept)


def _message(kind: type[Any], number: int) -> Any:
    return kind(f"{number} {_TEXT}", id=str(uuid.uuid4()))


class DeltaChat(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def _graph(saver: Any, state: type[Any] = Chat) -> Any:
    builder = StateGraph(state)
    builder.add_node("agent", lambda state: {"messages": [_message(AIMessage, len(state["messages"]))]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder.compile(checkpointer=saver)


@contextmanager
def _system(name: str, folder: Path) -> Iterator[Any]:
    """A graph over one of the savers."""
    with ExitStack() as open_:
        if name == "everthread":
            yield _graph(open_.enter_context(EverthreadSaver.from_url(f"sqlite:///{folder / 'ours.db'}")))
        elif name == "SqliteSaver":
            connection = sqlite3.connect(folder / "theirs.db", check_same_thread=False)
            yield _graph(SqliteSaver(open_.enter_context(closing(connection))))
        else:
            yield _graph(InMemorySaver() if name == REFERENCE else NoSaver())


@contextmanager
def _systems(folder: Path) -> Iterator[dict[str, Any]]:
    with ExitStack() as open_:
        yield {name: open_.enter_context(_system(name, folder)) for name in SYSTEMS}


def _begin(graph: Any, length: int, thread: Any = THREAD) -> None:
    """A thread of so many turns, put at once, and one turn to warm up."""
    messages = [_message(kind, number) for number in range(length) for kind in (HumanMessage, AIMessage)]
    graph.update_state(thread, {"messages": messages}, as_node="agent")
    _turn(graph, 0, thread)
    _catch_up(graph)


def _turn(graph: Any, number: int, thread: Any = THREAD) -> None:
    graph.invoke({"messages": [_message(HumanMessage, number)]}, thread, durability="sync")


def run(options: argparse.Namespace) -> Sequence[Row]:
    """CPU of single turns, of turns in a row, and of get_state at several lengths, all systems in rotation; then the
    bytes of a whole thread."""
    return [*(row for length in LENGTHS for row in _at(length, options.rounds)), *_on_disk()]


def _turns(graph: Any, thread: Any, count: int = _STRETCH) -> None:
    for number in range(count):
        _turn(graph, number, thread)


def _catch_up(graph: Any) -> None:
    """Have everything indexed, where there is an index: what was put at the beginning belongs to no turn, what turns
    have put belongs to them. Some hundred messages at once, as the writer does it by itself."""
    if isinstance(graph.checkpointer, EverthreadSaver):
        graph.checkpointer._call(graph.checkpointer._et.search("anything"))


def _thread(number: int) -> Any:
    return {"configurable": {"thread_id": str(number)}}


def _at(length: int, rounds: int) -> Iterator[Row]:
    stretches = max(1, rounds // 3)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with _systems(Path(folder)) as graphs:
            for graph in graphs.values():
                _begin(graph, length)
            single = dict.fromkeys(graphs, 0.0)
            in_a_row = dict.fromkeys(graphs, 0.0)
            state = dict.fromkeys(graphs, 0.0)
            for number in range(rounds):
                for name, graph in graphs.items():
                    single[name] += _cpu(partial(_turn, graph, number))
                    state[name] += _cpu(partial(graph.get_state, THREAD))
            threads = [*map(_thread, range(stretches))]  # each its own: one would grow to several times the length
            for graph, thread in product(graphs.values(), threads):
                _begin(graph, length, thread)
            for thread, (name, graph) in product(threads, graphs.items()):
                in_a_row[name] += _cpu(partial(_turns, graph, thread))
            for name, graph in graphs.items():
                in_a_row[name] += _cpu(partial(_catch_up, graph))
        cold = _cold(Path(folder))
    for name in single:
        yield {
            "system": name,
            "turns": length,
            "cpu ms a turn": in_a_row[name] / stretches / _STRETCH * 1e3,
            "times InMemorySaver": in_a_row[name] / in_a_row[REFERENCE],
            "single": single[name] / rounds * 1e3,
            "times its": single[name] / single[REFERENCE],
            "get_state ms": state[name] / rounds * 1e3,
            "cold get_state ms": cold.get(name),
        }


def alone(options: argparse.Namespace) -> Sequence[Row]:
    """CPU of turns in a row, each system in a process of its own, one after the other; the collector is left alone."""
    return [row for length in LENGTHS for row in _alone_at(length, max(3, options.rounds // 10))]


def _alone_at(length: int, rounds: int) -> Iterator[Row]:
    names = [name for name in SYSTEMS if name != "SqliteSaver"]
    spent: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                spent[name].append(process.submit(_spent_alone, name, length).result())
    for name, own in spent.items():
        ratios = [mine / theirs for mine, theirs in zip(own, spent[REFERENCE], strict=True)]
        yield {
            "system": name,
            "turns": length,
            "cpu ms a turn": median(own) * 1e3,
            "times InMemorySaver": median(ratios),
            "least": min(ratios),
            "most": max(ratios),
        }


def _spent_alone(name: str, length: int) -> float:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, _system(name, Path(folder)) as graph:
        threads = [*map(_thread, range(_THREADS))]
        for thread in threads:
            _begin(graph, length, thread)
        before = time.process_time()
        for thread in threads:
            _turns(graph, thread, _ALONE)
        _catch_up(graph)
        return (time.process_time() - before) / _THREADS / _ALONE


def _cpu(work: Any) -> float:
    gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before


def _cold(folder: Path) -> dict[str, float]:
    """The first get_state of a saver that remembers nothing."""
    with EverthreadSaver.from_url(f"sqlite:///{folder / 'ours.db'}") as saver:
        graph = _graph(saver)
        ours = _cpu(lambda: graph.get_state(THREAD))
    connection = sqlite3.connect(folder / "theirs.db", check_same_thread=False)
    other = _graph(SqliteSaver(connection))
    theirs = _cpu(lambda: other.get_state(THREAD))
    connection.close()
    return {"everthread": ours * 1e3, "SqliteSaver": theirs * 1e3}


def _on_disk() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "ours.db"
        with EverthreadSaver.from_url(f"sqlite:///{file}") as saver:
            _play(_graph(saver))
        yield {"system": "everthread", "turns": _WHOLE, "MB on disk": file.stat().st_size / 1e6}
    for name, state in (("SqliteSaver, DeltaChannel", DeltaChat), ("SqliteSaver", Chat)):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            file = Path(folder) / "theirs.db"
            connection = sqlite3.connect(file, check_same_thread=False)
            _play(_graph(SqliteSaver(connection), state))
            connection.close()  # which takes the write-ahead log into the file
            yield {"system": name, "turns": _WHOLE, "MB on disk": file.stat().st_size / 1e6}


def _play(graph: Any) -> None:
    for number in range(_WHOLE):
        _turn(graph, number)

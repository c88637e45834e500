"""A checkpoint costs what is new in it, however a list changes: counted in bytes, so a test and no benchmark."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from everthread.adapters.checkpoints.row_format import LogRef, MessageRef, UnloggedRef, pack_refs, unpack_refs
from everthread.core import nouns
from everthread.langgraph import EverthreadSaver

THREAD: Any = {"configurable": {"thread_id": "t"}}


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def forgetful(saver: EverthreadSaver) -> Any:
    """Answers, and removes one older message with every turn."""
    choice = random.Random(7)

    def answer(state: Chat) -> dict[str, Any]:
        messages = state["messages"]
        gone = choice.choice(messages[:-1]) if len(messages) > 2 else None
        removal = [] if gone is None else [RemoveMessage(id=str(gone.id))]
        return {"messages": [AIMessage("yes", id=f"a{messages[-1].id}"), *removal]}

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("turns", [pytest.param(200), pytest.param(1000, marks=pytest.mark.long)])
def test_one_removal_a_turn_stays_linear_on_disk(tmp_path: Path, turns: int) -> None:
    file = tmp_path / "et.db"
    sizes = []
    with EverthreadSaver.from_url(f"sqlite:///{file}") as saver:
        graph = forgetful(saver)
        for turn in range(turns):
            graph.invoke({"messages": [HumanMessage("well?", id=f"h{turn}")]}, THREAD)
            if turn % (turns // 4) == turns // 4 - 1:
                sizes.append(_bytes_of(saver))
    first, *_, last = [after - before for before, after in pairwise(sizes)]
    assert last < 2 * first


def _bytes_of(saver: EverthreadSaver) -> int:
    found = saver._call(saver._et.store.checkpoints.all(nouns.Ref("local", "t")))
    blobs = saver._call(saver._et.store.checkpoints.blobs(nouns.Ref("local", "t"), found.digests))
    return sum(len(row.body) for row in found.all) + sum(map(len, blobs.values()))


def test_one_input_of_two_thousand_messages_without_ids_is_logged_once(tmp_path: Path) -> None:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path / 'et.db'}") as saver:
        graph = forgetful(saver)
        graph.invoke({"messages": [HumanMessage("ok") for _ in range(2000)]}, THREAD)
        kept = graph.get_state(THREAD).values["messages"]
        assert len(kept) == 2000
        log = saver._call(saver._et.store.log.scan(nouns.Ref("local", "t"), after=0, limit=5000))
        assert sum(entry.is_place for entry in log) == 2001
        assert len({message.id for message in kept}) == 2000


refs: st.SearchStrategy[MessageRef] = st.one_of(
    st.integers(1, 40),
    st.builds(LogRef, st.integers(1, 9), st.sampled_from([None, "child"]), st.sampled_from([b"f" * 16])),
    st.builds(LogRef, st.integers(1, 9), st.just("child"), st.none()),
    st.builds(UnloggedRef, st.binary(min_size=16, max_size=16)),
)


@given(st.lists(refs, max_size=120))
@example([3])
@example([3, 4])
@example([*range(3, 60)])
@example([*range(3, 60), 3])
@example([3, LogRef(4, "child", None)])
def test_any_list_of_references_comes_back(listed: list[MessageRef]) -> None:
    blobs: dict[bytes, bytes] = {}
    packed = pack_refs(listed, blobs)
    assert unpack_refs(packed, blobs) == listed


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1, 5000), min_size=300, max_size=300, unique=True), st.integers(0, 299))
def test_a_removal_changes_a_few_chunks_only(seqs: list[int], place: int) -> None:
    before: dict[bytes, bytes] = {}
    pack_refs(seqs, before)
    after: dict[bytes, bytes] = {}
    pack_refs(seqs[:place] + seqs[place + 1 :], after)
    assert len(after.keys() - before.keys()) <= 4

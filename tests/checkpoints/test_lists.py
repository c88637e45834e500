"""Lists that come back: what is unchanged in them is known by its objects, and no edit in place goes unnoticed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.graph import MessagesState, StateGraph

from everthread.adapters.checkpoints import gc_pause, message_reuse, unvalidated
from everthread.adapters.checkpoints.cache import ThreadCache
from everthread.adapters.checkpoints.gc_pause import gc_paused
from everthread.adapters.checkpoints.langchain_json import from_langchain
from everthread.adapters.checkpoints.message_lists import ListSnapshot
from everthread.adapters.checkpoints.serde import StrictSerializer
from everthread.adapters.checkpoints.stored_message import StoredMessage, stored_message
from everthread.langgraph import EverthreadSaver

SERDE = StrictSerializer()
CALL: Any = {"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}


def originals() -> list[BaseMessage]:
    """One with nothing that can be changed in place, one with a lot, one with a field of its own, one of odd values."""
    return [
        HumanMessage("simple", id="a"),
        AIMessage("rich", id="b", tool_calls=[CALL], response_metadata={"model": "m", "stop": [1, True]}),
        HumanMessage("own", id="c", mood={"is": 1}),
        ToolMessage("odd", id="d", tool_call_id="c1", artifact=[b"1", {2}]),
    ]


def templates() -> list[StoredMessage]:
    return [stored_message(from_langchain(message), message, SERDE) for message in originals()]


def handed_out() -> tuple[list[BaseMessage], ListSnapshot]:
    made = templates()
    messages = [one.build(SERDE) for one in made]
    return messages, ListSnapshot(messages, range(4), stored=made)


def taken_in() -> tuple[list[BaseMessage], ListSnapshot]:
    messages = originals()
    return messages, ListSnapshot(messages, range(4))


Noted = Callable[[], tuple[list[BaseMessage], ListSnapshot]]
both = pytest.mark.parametrize("noted", [handed_out, taken_in])


Edit = tuple[int, Callable[[Any], object]]
EDITS: Mapping[str, Edit] = {
    "text": (0, lambda message: setattr(message, "content", "other")),
    "first word in an empty field": (0, lambda message: message.additional_kwargs.update(new=1)),
    "field of its own": (0, lambda message: setattr(message, "mood", "good")),
    "array": (0, lambda message: setattr(message, "additional_kwargs", np.array([1, 2]))),
    "call": (1, lambda message: message.tool_calls[0]["args"].update(at=2)),
    "another call": (1, lambda message: message.tool_calls.append(CALL)),
    "no calls": (1, lambda message: setattr(message, "tool_calls", [])),
    "True for 1": (1, lambda message: message.response_metadata["stop"].__setitem__(0, True)),
    "inside a field of its own": (2, lambda message: message.mood.update({"is": True})),
    "field of its own, gone": (2, lambda message: message.model_extra.clear()),
    "inside an artifact": (3, lambda message: message.artifact[1].add(3)),
}


@both
def test_messages_that_nobody_touched_are_known(noted: Noted) -> None:
    messages, snapshot = noted()
    assert snapshot.known_prefix([*messages, HumanMessage("new")]) == 4
    assert snapshot.known(list(reversed(messages))) == [3, 2, 1, 0]


@both
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_in_place_makes_a_message_unknown(noted: Noted, edit: Edit) -> None:
    messages, snapshot = noted()
    place, change = edit
    change(messages[place])
    assert snapshot.known_prefix(messages) == 0
    assert snapshot.known(messages)[place] is None


@both
def test_a_list_that_goes_on_notices_an_edit_of_its_beginning_and_of_its_end(noted: Noted) -> None:
    messages, snapshot = noted()
    longer = [*messages, HumanMessage("new", id="e")]
    later = ListSnapshot(longer, range(5), prefix=snapshot)
    assert later.known_prefix(longer) == 5
    longer[4].content = "other"
    assert later.known(longer) == [0, 1, 2, 3, None]
    longer[0].content = "other"
    assert later.known(longer)[0] is None


def test_an_edit_of_what_was_handed_out_reaches_nobody_else() -> None:
    made = templates()
    mine, theirs = ([one.build(SERDE) for one in made] for _ in range(2))
    for place, change in EDITS.values():
        change(mine[place])
    assert theirs == originals()
    assert [one.build(SERDE) for one in made] == originals()


def test_what_was_handed_out_is_dumped_whole_also_after_an_edit_of_another() -> None:
    made = templates()
    mine, theirs = (made[0].build(SERDE) for _ in range(2))
    mine.content = "other"
    setattr(mine, "mood", "good")  # noqa: B010 - a field that the class does not declare
    assert mine.model_dump(exclude_unset=True) == {**theirs.model_dump(), "content": "other", "mood": "good"}
    assert theirs.model_dump(exclude_unset=True) == theirs.model_dump()


@both
def test_a_message_is_known_however_often_it_is_looked_for(noted: Noted) -> None:
    messages, snapshot = noted()
    for _ in range(20):
        assert [snapshot.ref(message) for message in reversed(messages)] == [3, 2, 1, 0]
        assert snapshot.ref(HumanMessage("simple", id="a")) is None


@both
def test_a_list_is_in_use_while_somebody_has_a_message_of_it(noted: Noted) -> None:
    messages, snapshot = noted()
    assert snapshot.is_in_use()
    (one,) = messages[1:2]
    messages.clear()
    assert snapshot.is_in_use()
    del one
    assert not snapshot.is_in_use()


def test_a_list_that_goes_on_is_in_use_while_somebody_has_a_message_of_it() -> None:
    messages, snapshot = handed_out()
    messages.append(HumanMessage("new", id="e"))
    later = ListSnapshot(messages, range(5), prefix=snapshot)
    del snapshot
    assert later.is_in_use()
    messages.clear()
    assert not later.is_in_use()


def test_lists_that_nobody_has_any_more_are_forgotten() -> None:
    cache = ThreadCache()
    (mine, noted), (theirs, also_noted) = handed_out(), handed_out()
    cache.keep_list("", "messages", noted)
    cache.keep_list("", "messages", also_noted)
    del noted, also_noted
    theirs.clear()
    cache.take_back("", "messages", [9])
    assert len(cache.lists["", "messages"]) == 1
    assert cache.known_refs("", "messages", mine) == [0, 1, 2, 3]


def addresses(messages: list[BaseMessage]) -> list[int]:
    """Which objects these are, without having them: none of them is made while one of the others is there."""
    return list(map(id, messages))


def simple() -> list[BaseMessage]:
    """Messages with nothing in them that can be changed in place: only these are handed out again."""
    return [HumanMessage(f"simple {id}", id=id) for id in "abcd"]


def simple_handed_out() -> tuple[list[BaseMessage], ListSnapshot]:
    made = [stored_message(from_langchain(message), message, SERDE) for message in simple()]
    messages = [one.build(SERDE) for one in made]
    return messages, ListSnapshot(messages, range(4), stored=made)


def test_what_nobody_has_any_more_is_handed_out_again() -> None:
    messages, snapshot = simple_handed_out()
    before = addresses(messages)
    messages.clear()
    parts = snapshot.split([0, 1, 2, 3, 4])
    assert parts is not None
    again, rest = parts
    assert again.messages == simple()
    assert (again.refs, rest.refs, rest.messages) == ([0, 1, 2, 3], [], [])
    assert addresses(again.messages) == before
    assert again.known_prefix(again.messages) == 4


def test_nothing_is_handed_out_again_where_reuse_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_reuse, "ENABLED", False)
    messages, snapshot = simple_handed_out()
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None
    assert snapshot.is_in_use()


def test_messages_built_by_pydantic_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = templates()
    quick = [one.build(SERDE) for one in made]
    monkeypatch.setattr(unvalidated, "ENABLED", False)
    assert [one.build(SERDE) for one in made] == quick == originals()


def test_a_list_with_something_that_can_be_changed_in_place_is_built_anew() -> None:
    messages, snapshot = handed_out()
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None


HOLD: Mapping[str, Callable[[Any], object]] = {
    "the message": lambda message: message,
    "a field of it": lambda message: message.additional_kwargs,
    "all its fields": vars,
    "what it has beside": lambda message: message.model_extra,
}


@pytest.mark.parametrize("place", range(4))
def test_a_list_of_which_somebody_has_a_message_stays_known(place: int) -> None:
    messages, snapshot = simple_handed_out()
    (mine,) = messages[place : place + 1]
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None
    assert snapshot.known([mine]) == [place]


@pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD)
def test_what_somebody_has_a_part_of_is_not_handed_out_again(hold: Callable[[Any], object]) -> None:
    messages, snapshot = simple_handed_out()
    held = hold(messages[0])
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None
    del held
    assert snapshot.split([0, 1, 2, 3]) is not None


def test_what_somebody_put_into_a_message_and_has_still_is_not_handed_out_again() -> None:
    messages, snapshot = simple_handed_out()
    mine: dict[str, Any] = {}
    messages[0].additional_kwargs = mine
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None


@pytest.mark.parametrize("edit", [one for one in EDITS.values() if one[0] == 0])
def test_what_was_changed_is_not_handed_out_again(edit: Edit) -> None:
    messages, snapshot = simple_handed_out()
    place, change = edit
    change(messages[place])
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None


@pytest.mark.parametrize("refs", [[0, 1, 2], [0, 1, 7, 3], []], ids=["shorter", "another", "empty"])
def test_what_is_not_asked_for_is_not_handed_out_again(refs: list[int]) -> None:
    messages, snapshot = simple_handed_out()
    messages.clear()
    assert snapshot.split(refs) is None


def test_what_others_made_is_not_handed_out() -> None:
    messages, snapshot = taken_in()
    messages.clear()
    assert snapshot.split([0, 1, 2, 3]) is None


def test_the_end_of_a_list_is_known_after_its_beginning_was_handed_out_again() -> None:
    cache = ThreadCache()
    messages, snapshot = simple_handed_out()
    answer = HumanMessage("new", id="e")
    cache.keep_list("", "messages", ListSnapshot([*messages, answer], range(5), prefix=snapshot))
    messages.clear()
    del snapshot
    again = cache.take_back("", "messages", [0, 1, 2, 3, 4])
    assert again is not None
    assert again.refs == [0, 1, 2, 3]
    assert cache.known_refs("", "messages", [answer]) == [4]


def grown(cache: ThreadCache, made: list[StoredMessage]) -> list[BaseMessage]:
    """A list as a reader gets it: what nobody has any more, again, and the rest new."""
    prefix = cache.take_back("", "messages", list(range(len(made))))
    messages = [] if prefix is None else list(prefix.messages)
    messages += [one.build(SERDE) for one in made[len(messages) :]]
    cache.keep_list("", "messages", ListSnapshot(messages, range(len(made)), prefix=prefix, stored=made))
    return messages


def test_a_list_that_grows_is_handed_out_again_however_often() -> None:
    cache = ThreadCache()
    made = [stored_message(from_langchain(message), message, SERDE) for message in simple()]
    first = id(grown(cache, made)[0])
    for number in range(200):
        message = HumanMessage(f"{number}", id=f"m{number}")
        made.append(stored_message(from_langchain(message), message, SERDE))
        messages = grown(cache, made)
        assert id(messages[0]) == first
        assert [one.id for one in messages] == ["a", "b", "c", "d", *(f"m{other}" for other in range(number + 1))]
        assert cache.known_refs("", "messages", messages) == list(range(len(made)))
        del messages


def test_a_reader_that_edits_and_lets_go_changes_nothing_for_the_next(tmp_path: Path) -> None:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path}/et.db") as saver:
        graph = StateGraph(MessagesState).add_node("echo", lambda _: {}).set_entry_point("echo").compile(saver)
        thread: Any = {"configurable": {"thread_id": "t"}}
        graph.update_state(thread, {"messages": originals()[:3]})
        for place, change in [edit for edit in EDITS.values() if edit[0] < 3]:
            change(graph.get_state(thread).values["messages"][place])
            assert graph.get_state(thread).values["messages"] == originals()[:3]


def test_a_saver_keeps_no_message_that_its_reader_let_go(tmp_path: Path) -> None:
    with EverthreadSaver.from_url(f"sqlite:///{tmp_path}/et.db") as saver:
        graph = StateGraph(MessagesState).add_node("echo", lambda _: {}).set_entry_point("echo").compile(saver)
        thread: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({"messages": [HumanMessage("hello", id="a")]}, thread)
        seen = graph.get_state(thread).values["messages"][0]
        is_gone = ref(seen)
        graph.get_state(thread)
        assert is_gone() is seen
        del seen
        gc.collect()
        graph.get_state(thread)
        assert is_gone() is None


def test_the_collector_is_paused_for_many_objects_only_and_always_goes_on() -> None:
    with gc_paused(10):
        assert gc.isenabled()
    with gc_paused(5_000):
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), gc_paused(5_000):
        divmod(1, 0)
    assert gc.isenabled()


def test_the_collector_stays_at_work_where_the_pause_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc_pause, "ENABLED", False)
    with gc_paused(5_000):
        assert gc.isenabled()

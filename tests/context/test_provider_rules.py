"""Each rule is broken by its own example, and a request that breaks none violates nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from everthread.context import Message, Provider, cut_window, find_violations, repair, units
from everthread.context.provider_rules import ANTHROPIC_RULES, OPENAI_RULES, SHARED_RULES
from everthread.core.errors import Invalid
from tests.context.histories import forall, sound_histories
from tests.context.openai_shape import ai, call, result, system, user
from tests.context.trajectories import tau_bench_runs

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xyz"}}
SIGNED = {"type": "thinking", "thinking": "so", "signature": "s"}
SAID = {"type": "text", "text": "hi"}


def used(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": {}}


def told(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "found"}


def claude(*blocks: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": list(blocks)}


def with_call(entry: dict[str, Any]) -> list[Message]:
    return [user(), {"role": "assistant", "content": None, "tool_calls": [entry]}, result(entry["id"])]


BROKEN: list[tuple[str, int, list[Message]]] = [
    ("unanswered_call", 1, [user(), ai("", "a", "b"), result("b"), user()]),
    ("unanswered_call", 1, [user(), ai("", "a"), user("wait"), result("a")]),
    ("orphan_result", 1, [user(), result("a")]),
    ("orphan_result", 3, [user(), ai("", "a"), result("a"), result("b")]),
    ("second_result", 3, [user(), ai("", "a"), result("a"), result("a")]),
    ("repeated_call_id", 1, [user(), ai("", "a", "a"), result("a"), result("a")]),
    ("bad_call_name", 1, with_call(call("a", name="查询"))),
    ("bad_call_name", 1, with_call(call("a", name=""))),
    ("bad_arguments", 1, with_call(call("a", arguments="{"))),
    ("bad_arguments", 1, with_call(call("a", arguments="[1]"))),
    ("bad_content", 2, [user(), ai("", "a"), result("a", None)]),
    ("bad_content", 0, [user([{"text": "no type"}])]),
    ("bad_content", 0, [user({"a": 1})]),
    ("empty_message", 1, [user(), ai(None), user()]),
    ("empty_message", 0, [user("")]),
    ("empty_message", 1, [user(), claude(SIGNED), user()]),
    ("unsendable_text", 0, [user("half \ud83d")]),
    ("call_not_openai", 1, [user(), {**ai(), "tool_calls": []}]),
    ("call_not_openai", 1, with_call({"id": "a", "name": "search", "args": {}})),
    ("call_id_length", 1, [user(), ai("", "x" * 41), result("x" * 41)]),
    ("bad_speaker_name", 0, [user(name="Wang Wei")]),
    ("misplaced_image", 2, [user(), ai("", "a"), result("a", [IMAGE])]),
    ("block_not_openai", 0, [user([{"type": "image", "source": {"type": "url", "url": "http://x/y.png"}}])]),
    ("block_not_openai", 0, [user([{"type": "image", "url": "http://x/y.png"}])]),
    ("block_not_openai", 0, [user([{"type": "image_url", "image_url": "http://x/y.png"}])]),
    ("block_not_openai", 0, [user([{"type": "hologram"}])]),
    ("block_not_openai", 1, [user(), claude(SIGNED, SAID), user()]),
    ("block_not_anthropic", 1, [user(), claude({"type": "reasoning", "summary": []}, SAID), user()]),
    ("block_not_anthropic", 1, [user(), claude({"type": "refusal", "refusal": "no"}), user()]),
    ("block_not_anthropic", 0, [user([{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}])]),
    ("block_not_anthropic", 2, [user(), claude(used("a")), user([{**told("a"), "content": [{"type": "hologram"}]}])]),
    ("late_system", 1, [user(), system()]),
    ("first_not_user", 1, [system(), ai()]),
    ("repeated_id_in_request", 3, [user(), ai("", "a"), result("a"), ai("", "a"), result("a")]),
    ("bad_call_id", 1, [user(), ai("", "a b"), result("a b")]),
    ("split_results", 1, [user(), claude(used("a"), used("b")), user([told("a")]), user([told("b")])]),
    ("results_not_first", 2, [user(), claude(used("a")), user([SAID, told("a")])]),
    ("blank_text", 0, [user([SAID, {"type": "text", "text": " \n"}])]),
    ("blank_text", 2, [user(), ai("", "a"), result("a", [{"type": "text", "text": ""}])]),
    ("bad_thinking", 1, [user(), claude(SAID, SIGNED), user()]),
    ("bad_thinking", 1, [user(), claude({**SIGNED, "signature": ""}, SAID)]),
    ("trailing_space", 1, [user(), ai("Sure: ")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "index", "messages"), BROKEN, ids=[f"{kind}-{at}" for at, (kind, _, _) in enumerate(BROKEN)]
)
def test_a_broken_rule_is_named_with_its_place(kind: str, index: int, messages: list[Message]) -> None:
    assert (kind, index) in [(fault.kind, fault.index) for fault in find_violations(messages)]


def test_every_rule_is_broken_by_an_example() -> None:
    rules = {rule.__name__ for rule in SHARED_RULES + OPENAI_RULES + ANTHROPIC_RULES}
    assert rules == {kind for kind, _, _ in BROKEN}


@pytest.mark.parametrize("role", ["critic", "", None])
def test_a_role_nobody_knows_is_a_fault(role: str | None) -> None:
    assert [fault.kind for fault in find_violations([user(), {"role": role, "content": "x"}])] == ["unknown_role"]


@forall(sound_histories())
def test_what_both_providers_take_has_no_faults(history: list[Message]) -> None:
    assert find_violations(history) == []


@pytest.mark.parametrize(
    ("provider", "messages"),
    [
        ("openai", [ai("Welcome!"), user()]),
        ("openai", [user(), system("from now on in French"), user()]),
        ("openai", [user(), ai("", "call_1"), result("call_1"), ai("", "call_1"), result("call_1")]),
        ("anthropic", [user(name="Wang Wei")]),
        ("anthropic", [user(), ai("", "x" * 60), result("x" * 60)]),
        ("anthropic", [user(), user("and another thing"), ai("", "a"), result("a"), user()]),
        ("anthropic", [user(), ai("", "a"), result("a", [IMAGE])]),
        ("anthropic", [user(), claude(SIGNED, SAID), user()]),
        ("anthropic", [user(), claude({"type": "server_tool_use", "id": "s", "name": "web_search"}, SAID)]),
        ("openai", [user([{"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}])]),
        ("openai", [user(), claude({"type": "refusal", "refusal": "no"})]),
    ],
)
def test_what_one_provider_refuses_the_other_may_take(provider: Provider, messages: list[Message]) -> None:
    assert find_violations(messages, provider) == []


def test_a_list_that_asks_nothing_yet_has_no_faults() -> None:
    assert find_violations([]) == []
    assert find_violations([system()]) == []


def test_langchains_words_are_judged_by_the_same_rules() -> None:
    asked = {"type": "human", "content": "go"}
    calls = {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}, "id": "a"}]}
    answer = {"type": "tool", "content": "found", "tool_call_id": "a"}
    assert find_violations([asked, calls, answer]) == []
    assert [fault.kind for fault in find_violations([asked, calls])] == ["unanswered_call"]


def test_invalid_calls_of_langchain_are_calls_that_need_an_answer() -> None:
    invalid = [{"name": "search", "args": "{", "id": "a", "error": None}]
    message = {"type": "ai", "content": "hm", "tool_calls": [], "invalid_tool_calls": invalid}
    found = {fault.kind for fault in find_violations([{"type": "human", "content": "go"}, message], "openai")}
    assert found == {"unanswered_call", "bad_arguments"}


def test_the_recorded_runs_are_as_openai_took_them() -> None:
    for run in tau_bench_runs():
        assert find_violations(run, "openai") == []


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid, match="openai, anthropic") as refused:
        find_violations([user()], "gemini")  # type: ignore[arg-type]
    assert refused.value.field == "provider"


@pytest.mark.parametrize("read", [find_violations, repair, units, cut_window])
@pytest.mark.parametrize(
    ("messages", "field"), [([user(), HumanMessage("x")], "messages[1]"), (None, "messages"), ("x", "messages")]
)
def test_what_is_no_list_of_dicts_is_refused_and_not_read_as_nothing(
    read: Callable[[Any], object], messages: Any, field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        read(messages)
    assert refused.value.field == field

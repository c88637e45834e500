"""Whatever an agent leaves behind, the next request is valid, and nothing that was said is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from everthread.context import Message, Provider, find_violations, repair, repair_report
from everthread.context.message_format import calls_of, results_of, role_of
from everthread.context.repair import INTERRUPTED, NOT_RUN, OPENING
from everthread.core import payloads
from tests.context.histories import forall, histories, sound_histories
from tests.context.openai_shape import ai, call, result, system, user
from tests.context.trajectories import swe_agent_runs, tau_bench_runs

PROVIDERS: tuple[Provider | None, ...] = (None, "openai", "anthropic")
ANY_PROVIDER = pytest.mark.parametrize("provider", PROVIDERS)


def thinking(signature: str | None = "sig") -> dict[str, Any]:
    block = {"type": "thinking", "thinking": "let me see"}
    return {**block, "signature": signature} if signature else block


def tool_use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "search", "input": {"query": "x"}}


def tool_result(call_id: str, content: Any = "found") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def claude(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def kinds(messages: Sequence[Message], **options: Any) -> list[str]:
    return [found.kind for found in repair_report(messages, **options).repairs]


# --- for every history -----------------------------------------------------------------------


@ANY_PROVIDER
@forall(history=histories())
def test_every_history_becomes_a_request_the_provider_accepts(
    provider: Provider | None, history: list[Message]
) -> None:
    assert find_violations(repair(history), provider) == []
    assert find_violations(repair(history, provider=provider), provider) == []


@ANY_PROVIDER
@forall(history=histories())
def test_repairing_twice_is_repairing_once(provider: Provider | None, history: list[Message]) -> None:
    once = repair(history, provider=provider)
    assert repair(once, provider=provider) == once
    assert repair_report(once, provider=provider).repairs == ()


@forall(histories())
def test_the_input_is_left_as_it_was(history: list[Message]) -> None:
    before = copy.deepcopy(history)
    repair(history)
    assert history == before


@forall(sound_histories())
def test_a_valid_request_is_not_touched(history: list[Message]) -> None:
    assert find_violations(history) == []
    assert repair(history) == history


@forall(histories())
def test_every_message_is_in_the_view_or_named_as_left_out(history: list[Message]) -> None:
    report = repair_report(history)
    shown = {source for sources in report.sources for source in sources}
    left_out = {
        found.index
        for found in report.repairs
        if found.kind in ("orphan_result", "second_result", "empty_message", "unknown_role", "system_superseded")
    }
    assert shown | left_out == set(range(len(history)))


@forall(histories())
def test_no_word_of_the_assistant_is_lost(history: list[Message]) -> None:
    sent = "\n".join(payloads.text(message) for message in repair(history) if role_of(message) == "assistant")
    for message in history:
        if role_of(message) == "assistant" and isinstance(payloads.fields(message).get("content"), str):
            assert payloads.text(message).replace("\ud83d", "\ufffd").strip() in sent


@forall(histories())
def test_i7_each_call_is_answered_once_right_after_it(history: list[Message]) -> None:
    view = repair(history)
    for at, message in enumerate(view):
        if made := [made.id for made in calls_of(message)]:
            answered = []
            for carrier in view[at + 1 :]:
                if not results_of(carrier):
                    break
                answered += [answer.call_id for answer in results_of(carrier)]
            assert sorted(made) == sorted(answered)


@forall(histories(), st.data())
def test_calls_of_a_live_run_are_left_alone(history: list[Message], data: st.DataObject) -> None:
    ids = sorted({made.id for message in history for made in calls_of(message)} - {""})
    live = data.draw(st.sets(st.sampled_from(ids)) if ids else st.just(set[str]()))
    view = repair(history, live)
    unanswered = {found.message for found in find_violations(view, "openai") if found.kind == "unanswered_call"}
    assert unanswered <= {f"call {call_id!r} has no result directly after it" for call_id in live}


# --- the papers' own examples ----------------------------------------------------------------


def test_flaw_001_1_one_unanswered_of_two_parallel_calls_keeps_the_message_and_its_result() -> None:
    history = [user(), ai("I look it up", "a", "b"), result("b", "sunny"), user("and?")]
    assert repair(history) == [
        user(),
        ai("I look it up", "a", "b"),
        result("a", INTERRUPTED),
        result("b", "sunny"),
        user("and?"),
    ]


def test_flaw_001_a_call_the_user_interrupted_is_answered_not_dropped() -> None:
    history = [user(), ai("", "call_123"), user("Actually, nevermind")]
    assert repair(history) == [user(), ai("", "call_123"), result("call_123", INTERRUPTED), user("Actually, nevermind")]


def test_flaw_001_8_one_prompt_sent_with_each_turn_is_one_prompt() -> None:
    turns = [message for at in range(39) for message in (system(f"You help. Turn {at}."), user(), ai())]
    view = repair([system("Be kind."), *turns])
    assert [message["content"] for message in view if message["role"] == "system"] == [
        "Be kind.",
        "You help. Turn 0.",
        "You help. Turn 38.",
    ]


# --- calls and results -----------------------------------------------------------------------


def test_a_result_without_a_call_is_left_out() -> None:
    assert repair([user(), result("gone"), ai()]) == [user(), ai()]
    assert kinds([user(), result("gone"), ai()]) == ["orphan_result"]


def test_a_result_before_its_call_is_of_another_call() -> None:
    view = repair([user(), result("a", "stale"), ai("", "a")])
    assert view == [user(), ai("", "a"), result("a", INTERRUPTED)]


def test_of_two_results_of_a_call_the_first_stands() -> None:
    view = repair([user(), ai("", "a"), result("a", "one"), result("a", "two")])
    assert view == [user(), ai("", "a"), result("a", "one")]


def test_a_late_result_is_brought_back_to_its_call() -> None:
    history = [user(), ai("", "a"), user("quick!"), ai("wait"), result("a")]
    assert repair(history) == [user(), ai("", "a"), result("a"), user("quick!"), ai("wait")]
    assert kinds(history) == ["moved_result"]


def test_an_id_used_in_every_message_is_told_apart() -> None:
    history = [
        user(),
        ai("", "call_1"),
        result("call_1", "x"),
        ai("", "call_1"),
        ai("", "call_1"),
        result("call_1", "z"),
    ]
    assert repair(history) == [
        user(),
        ai("", "call_1"),
        result("call_1", "x"),
        ai("", "call_1-2"),
        result("call_1-2", INTERRUPTED),
        ai("", "call_1-3"),
        result("call_1-3", "z"),
    ]


def test_an_id_used_twice_in_one_message_is_told_apart_in_order() -> None:
    view = repair([user(), ai("", "a", "a"), result("a", "one"), result("a", "two")])
    assert view == [user(), ai("", "a", "a-2") | {}, result("a", "one"), result("a-2", "two")]


def test_empty_ids_are_filled_and_paired_by_order() -> None:
    view = repair([user(), ai("", "", ""), result("", "one"), result("", "two")])
    ids = [entry["id"] for entry in view[1]["tool_calls"]]
    assert len({*ids}) == 2
    assert [(message["tool_call_id"], message["content"]) for message in view[2:]] == [(ids[0], "one"), (ids[1], "two")]


def test_an_id_too_long_for_openai_is_shortened_in_call_and_result() -> None:
    view = repair([user(), ai("", "toolu_" + "9" * 60), result("toolu_" + "9" * 60)])
    assert view[1]["tool_calls"][0]["id"] == view[2]["tool_call_id"]
    assert len(view[2]["tool_call_id"]) <= 40


def test_a_group_that_is_in_order_keeps_its_own_order() -> None:
    history = [user(), ai("", "a", "b"), result("b"), result("a")]
    assert repair(history) == history


def test_a_live_call_waits_and_its_dead_sister_is_answered() -> None:
    view = repair([user(), ai("", "dead", "live")], live_calls={"live"})
    assert view == [user(), ai("", "dead", "live"), result("dead", INTERRUPTED)]


def test_a_live_call_keeps_its_id_and_the_older_one_of_that_id_gives_way() -> None:
    view = repair([user(), ai("", "call_1"), result("call_1"), ai("", "call_1")], live_calls=["call_1"])
    assert [entry["id"] for message in view for entry in message.get("tool_calls", [])] == ["call_1-2", "call_1"]


# --- one message -----------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", ["{", "[1]", "null", '"text"', '{"a": NaN}'])
def test_arguments_that_are_no_object_are_kept_inside_one(arguments: str) -> None:
    history = [user(), ai("", "a")]
    history[1]["tool_calls"] = [call("a", arguments=arguments)]
    view = repair(history)
    assert json.loads(view[1]["tool_calls"][0]["function"]["arguments"]) == {"invalid_arguments": arguments}
    assert view[2]["content"] == NOT_RUN


def test_a_call_without_arguments_has_none() -> None:
    view = repair([user(), {**ai("", "a"), "tool_calls": [call("a", arguments="")]}, result("a")])
    assert view[1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_langchains_invalid_calls_stand_with_the_others_and_are_answered() -> None:
    wrong = {"name": "search", "args": "{", "id": "w", "error": "no JSON", "type": "invalid_tool_call"}
    message = {"type": "ai", "content": "hm", "tool_calls": [], "invalid_tool_calls": [wrong]}
    view = repair([{"type": "human", "content": "go"}, message])
    assert view[1]["invalid_tool_calls"] == []
    assert view[1]["tool_calls"] == [
        {"name": "search", "args": {"invalid_arguments": "{"}, "id": "w", "type": "tool_call"}
    ]
    assert (view[2]["type"], view[2]["tool_call_id"], view[2]["content"]) == ("tool", "w", NOT_RUN)


def test_a_call_langchain_writes_twice_is_one_call() -> None:
    message = {
        "type": "ai",
        "content": [tool_use("a"), tool_use("a")],
        "tool_calls": [{"name": "search", "args": {}, "id": "a"}, {"name": "search", "args": {}, "id": "a"}],
    }
    view = repair([{"type": "human", "content": "go"}, message])
    assert [entry["id"] for entry in view[1]["tool_calls"]] == ["a", "a-2"]
    assert [block["id"] for block in view[1]["content"]] == ["a", "a-2"]
    assert [answer["tool_call_id"] for answer in view[2:]] == ["a", "a-2"]


def test_a_call_in_langchains_words_inside_an_openai_message_is_translated() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "name": "search", "args": {"query": "x"}}],
    }
    assert repair([user(), message, result("a")])[1]["tool_calls"] == [call("a")]


@pytest.mark.parametrize("block", [thinking(), {"type": "redacted_thinking", "data": "Eu"}])
def test_signed_reasoning_is_kept_whole(block: dict[str, Any]) -> None:
    history = [user(), claude(block, {"type": "text", "text": "so"})]
    assert repair(history, provider="anthropic") == history


@pytest.mark.parametrize("block", [thinking(), {"type": "redacted_thinking", "data": "Eu"}])
def test_signed_reasoning_is_left_out_where_no_provider_is_named(block: dict[str, Any]) -> None:
    history = [user(), claude(block, {"type": "text", "text": "so"})]
    assert repair(history)[1]["content"] == [{"type": "text", "text": "so"}]
    assert kinds(history) == ["thinking_left_out"]


@pytest.mark.parametrize(
    "blocks",
    [
        [thinking(signature=None), {"type": "text", "text": "so"}],
        [{"type": "text", "text": "so"}, thinking()],
        [thinking(), {"type": "text", "text": "so"}, thinking()],
        [{"type": "redacted_thinking"}, {"type": "text", "text": "so"}],
    ],
    ids=["unsigned", "not first", "last word", "redacted without data"],
)
def test_reasoning_that_would_be_refused_is_left_out_whole(blocks: list[dict[str, Any]]) -> None:
    view = repair([user(), claude(*blocks), user()], provider="anthropic")
    assert view[1]["content"] == [{"type": "text", "text": "so"}]


PIXEL_URL = "data:image/png;base64,xyz"
PICTURE = {"type": "image_url", "image_url": {"url": PIXEL_URL}}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "xyz"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}


@pytest.mark.parametrize(
    ("block", "provider", "sent"),
    [
        ({"type": "image", "source": SOURCE}, None, PICTURE),
        ({"type": "image", "source": SOURCE}, "openai", PICTURE),
        ({"type": "image", "source": {"type": "url", "url": PIXEL_URL}}, "openai", PICTURE),
        ({"type": "image", "url": PIXEL_URL}, "openai", PICTURE),
        ({"type": "image", "base64": "xyz", "mime_type": "image/png"}, "openai", PICTURE),
        ({"type": "input_image", "image_url": PIXEL_URL}, "openai", PICTURE),
        ({"type": "image_url", "image_url": PIXEL_URL}, None, PICTURE),
        ({"type": "image_url", "image_url": PIXEL_URL}, "anthropic", {"type": "image", "source": SOURCE}),
        ({"type": "image", "url": "x:y"}, "anthropic", {"type": "image", "source": {"type": "url", "url": "x:y"}}),
        ({"type": "document", "source": {"type": "text", "data": "page"}}, "openai", {"type": "text", "text": "page"}),
        (
            {"type": "document", "source": PDF, "title": "a.pdf"},
            "openai",
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        ),
        ({"type": "input_text", "text": "hi"}, None, {"type": "text", "text": "hi"}),
    ],
)  # fmt: skip
def test_a_block_in_another_dialect_is_said_in_the_providers_words(
    block: dict[str, Any], provider: Provider | None, sent: dict[str, Any]
) -> None:
    history = [user([block])]
    assert repair(history, provider=provider) == [user([sent])]
    assert kinds(history, provider=provider) == ["block_rewritten"]
    assert find_violations([user([sent])], provider) == []


@pytest.mark.parametrize(
    ("block", "provider"),
    [
        ({"type": "hologram"}, None),
        ({"type": "hologram"}, "openai"),
        ({"type": "hologram"}, "anthropic"),
        ({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}, "anthropic"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, "openai"),
        ({"type": "tool_use", "id": "a", "name": "f", "input": {}}, "openai"),
    ],
)
def test_a_block_the_provider_does_not_take_leaves_a_line_in_its_place(
    block: dict[str, Any], provider: Provider | None
) -> None:
    history = [user([block, {"type": "text", "text": "see?"}])]
    (view,) = repair(history, provider=provider)
    assert find_violations([view], provider) == []
    assert [one["type"] for one in view["content"]] == ["text", "text"]
    assert "left out" in view["content"][0]["text"]
    assert kinds(history, provider=provider)[0] in ("block_left_out", "image_left_out")


@pytest.mark.parametrize("provider", [None, "openai", "anthropic"])
@pytest.mark.parametrize(
    "block", [{"type": "image", "source": "x"}, {"type": "image_url", "image_url": {}}, {"type": "image"}]
)
def test_a_users_image_that_cannot_be_read_is_left_out_for_that_reason(
    block: dict[str, Any], provider: Provider | None
) -> None:
    (view,) = repair([user([block, {"type": "text", "text": "see?"}])], provider=provider)
    assert "does not say where the image is" in view["content"][0]["text"]
    assert find_violations([view], provider) == []


def test_an_assistants_image_is_left_out_because_it_is_the_assistants() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    view = repair([user(), claude(image), user()], provider="openai")
    assert "only a user message" in view[1]["content"][0]["text"]


def test_a_refusal_is_kept_as_words_and_foreign_reasoning_is_not_said() -> None:
    said = claude({"type": "reasoning", "summary": []}, {"type": "refusal", "refusal": "I will not."})
    view = repair([user(), said, user()], provider="anthropic")
    assert view[1]["content"] == [{"type": "text", "text": "I will not."}]
    assert find_violations(view, "anthropic") == []


def test_openai_gets_no_reasoning() -> None:
    view = repair([user(), claude(thinking(), {"type": "text", "text": "so"})], provider="openai")
    assert view[1]["content"] == [{"type": "text", "text": "so"}]


def test_an_image_in_a_tool_result_is_left_out_unless_anthropic_is_asked() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,xyz"}}
    history = [user(), ai("", "a"), result("a", [picture])]
    assert repair(history)[2]["content"][0]["type"] == "text"
    assert repair(history, provider="anthropic") == history


def test_a_refusal_is_what_the_assistant_said() -> None:
    view = repair([user(), {"role": "assistant", "content": None, "refusal": "I will not."}])
    assert view[1] == ai("I will not.")


def test_a_message_in_a_serializers_envelope_is_read() -> None:
    wrapped = {"type": "ai", "data": {"content": "hi", "tool_calls": []}}
    revived = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "yo"},
    }
    assert repair([revived, wrapped]) == [
        {"content": "yo", "type": "human"},
        {"content": "hi", "tool_calls": [], "type": "ai"},
    ]


def test_half_a_character_is_replaced_and_a_split_one_is_joined() -> None:
    assert repair([user("a\ud83d b"), ai("\ud83d\ude00")]) == [user("a\ufffd b"), ai("😀")]


def test_a_speakers_name_is_written_so_that_openai_takes_it() -> None:
    assert [message["name"] for message in repair([user(name="Wang Wei"), user(name="王伟")])] == ["Wang_Wei", "王伟"]


# --- content blocks --------------------------------------------------------------------------


def test_a_call_made_in_blocks_is_answered_in_blocks() -> None:
    view = repair([user(), claude(tool_use("a"), tool_use("b")), user("never mind")])
    assert role_of(view[2]) == "user"
    assert [(block["tool_use_id"], block["content"]) for block in view[2]["content"]] == [
        ("a", INTERRUPTED),
        ("b", INTERRUPTED),
    ]
    assert view[3] == user("never mind")


def test_a_missing_block_is_put_beside_the_others_before_what_the_user_says() -> None:
    said = {"type": "text", "text": "and hurry"}
    view = repair([user(), claude(tool_use("a"), tool_use("b")), user([said, tool_result("b")], id="m7")])
    assert len(view) == 3
    assert view[2]["id"] == "m7"
    assert [block.get("tool_use_id") for block in view[2]["content"]] == ["a", "b", None]


def test_results_come_before_what_the_user_says_in_the_same_message() -> None:
    said = {"type": "text", "text": "and hurry"}
    history = [user(), claude(tool_use("a")), user([said, tool_result("a")])]
    assert repair(history)[2:] == [user([tool_result("a"), said])]


def test_blocks_in_two_messages_are_brought_into_one_and_the_words_stay() -> None:
    said = {"type": "text", "text": "and hurry"}
    history = [user(), claude(tool_use("a"), tool_use("b")), user([tool_result("a")]), user([tool_result("b"), said])]
    assert repair(history)[2:] == [user([tool_result("a"), tool_result("b")]), user([said])]


# --- the ends --------------------------------------------------------------------------------


def test_a_conversation_the_assistant_begins_gets_an_opening() -> None:
    assert repair([system(), ai("Welcome!"), user()]) == [system(), user(OPENING), ai("Welcome!"), user()]


def test_messages_with_nothing_in_them_are_left_out() -> None:
    history = [user(), ai(""), ai(None), ai([]), claude(thinking()), user("  "), ai("hi")]
    assert repair(history) == [user(), ai("hi")]
    assert kinds(history).count("empty_message") == 5


def test_nothing_stays_nothing() -> None:
    assert repair([]) == []
    assert repair([result("gone")]) == []


def test_instructions_in_mid_conversation_move_to_the_start_by_name() -> None:
    history = [system("A"), system("old", name="mode"), user(), system("new", name="mode"), ai(), system("B")]
    assert [message["content"] for message in repair(history)] == ["A", "new", "B", "hello", "hi"]


# --- recorded runs ---------------------------------------------------------------------------


def test_recorded_runs_interrupted_anywhere_are_valid() -> None:
    for run in tau_bench_runs()[::10]:
        for at in range(1, len(run)):
            assert find_violations(repair(run[:at])) == []


def test_recorded_runs_beginning_anywhere_are_valid() -> None:
    for run in tau_bench_runs()[::10]:
        for at in range(1, len(run)):
            assert find_violations(repair(run[at:])) == []


def test_every_recorded_run_is_valid_and_keeps_every_message() -> None:
    for run in tau_bench_runs():
        view = repair(run)
        assert find_violations(view) == []
        assert [message["content"] for message in view] == [message["content"] for message in run]


def test_coding_runs_whose_results_name_no_call_keep_every_result() -> None:
    for run in swe_agent_runs():
        report = repair_report(run)
        assert find_violations(report.messages) == []
        assert {found.kind for found in report.repairs} <= {"blank_left_out", "renamed_call", "trimmed"}

"""What is long is shown in part, within the tokens given, and says how to see the rest."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import strategies as st

from everthread.context import (
    ClampPolicy,
    Message,
    clamp_message,
    count_tokens,
    elide,
    excerpt,
    find_violations,
    message_tokens,
    repair,
)
from everthread.context.clamp import elide_message, safe_cut, shorten_arguments
from everthread.context.message_format import blocks_of, calls_of, results_of
from everthread.core.errors import ContextOverflow, Invalid
from tests.context.histories import forall, histories
from tests.context.openai_shape import ai, result, system, user

TEXTS = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="很长的中文 \n,。a", min_size=50, max_size=2_000),
    st.sampled_from(("x" * 5_000, "word " * 2_000, "\U0001f469\u200d\U0001f467" * 300, "e\u0301" * 400, " " * 3_000)),
)
LOG = "\n".join(f"line {at}: compiled module number {at}" for at in range(2_000))
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "x" * 48_000}}
THOUGHT = {"type": "thinking", "thinking": "step by step " * 50, "signature": "s"}


def by_characters(text: str) -> int:
    return len(text)


def least_tokens(message: Message) -> int:
    """About what is left of a message when every text in it is a single sign."""
    names = [str(message.get("name") or ""), *(made.name for made in calls_of(message))]
    parts = len(calls_of(message)) * 14 + len(results_of(message)) * 10 + len(blocks_of(message)) * 2
    return 8 + parts + sum(map(count_tokens, names))


# --- texts -----------------------------------------------------------------------------------


@forall(TEXTS, st.integers(0, 300))
def test_an_excerpt_is_within_its_tokens(text: str, max_tokens: int) -> None:
    assert count_tokens(excerpt(text, max_tokens, seq=7)) <= max_tokens


@forall(TEXTS, st.integers(0, 300))
def test_an_excerpt_is_within_its_tokens_by_any_count(text: str, max_tokens: int) -> None:
    assert len(excerpt(text, max_tokens, count=by_characters)) <= max_tokens


@forall(TEXTS, st.integers(0, 300))
def test_the_same_text_gives_the_same_excerpt_and_a_short_one_itself(text: str, max_tokens: int) -> None:
    short = excerpt(text, max_tokens)
    assert excerpt(text, max_tokens) == short
    assert excerpt(short, max_tokens) == short
    if count_tokens(text) <= max_tokens:
        assert short == text


def test_an_excerpt_has_head_and_tail_and_says_how_to_open_the_whole() -> None:
    short = excerpt(LOG, 200, seq=12)
    assert short.startswith("line 0: ")
    assert short.endswith("number 1999")
    assert f"[… shown in part, {len(LOG):,} bytes in all; history_open(seq=12) shows all of it …]" in short
    assert count_tokens(short) > 150


def test_an_excerpt_without_a_place_names_only_the_size() -> None:
    assert "history_open" not in excerpt(LOG, 200)


@forall(
    st.lists(st.sampled_from(("\ud83d\ude00", "\U0001f469\u200d\U0001f467", "e\u0301", "中", "a")), min_size=4),
    st.data(),
)
def test_no_cut_falls_inside_a_character(characters: list[str], data: st.DataObject) -> None:
    text = "".join(characters)
    borders = [0]
    for character in characters:
        borders.append(borders[-1] + len(character))
    at = data.draw(st.integers(0, len(text)))
    assert safe_cut(text, at) in borders
    assert safe_cut(text, at, forward=True) in borders
    assert safe_cut(text, at) <= at <= safe_cut(text, at, forward=True)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=12,
)


@forall(st.dictionaries(st.text(max_size=8), JSON, max_size=6), st.integers(1, 200))
def test_arguments_stay_an_object_within_their_tokens(arguments: dict[str, Any], max_tokens: int) -> None:
    short = shorten_arguments(json.dumps(arguments), max_tokens)
    assert isinstance(short, dict)
    assert count_tokens(json.dumps(short, ensure_ascii=False)) <= max_tokens or short == {}


def test_short_arguments_stay_beside_a_long_one() -> None:
    short = shorten_arguments({"path": "src/app.py", "content": LOG}, 120, seq=3)
    assert short["path"] == "src/app.py"
    assert "history_open(seq=3)" in short["content"]


# --- messages --------------------------------------------------------------------------------


@forall(histories(), st.integers(40, 400))
def test_a_clamped_message_is_within_its_tokens_or_refused(history: list[Message], max_tokens: int) -> None:
    for message in repair(history):
        try:
            short = clamp_message(message, max_tokens, seq=1)
        except ContextOverflow:
            assert least_tokens(message) > max_tokens
            continue
        assert message_tokens(short) <= max_tokens
        assert clamp_message(message, max_tokens, seq=1) == short


@forall(histories(), st.integers(150, 600))
def test_a_list_of_clamped_messages_stays_valid(history: list[Message], max_tokens: int) -> None:
    view = repair(history)
    before = copy.deepcopy(view)
    assert (
        find_violations(
            [message if message.get("role") == "system" else clamp_message(message, max_tokens) for message in view]
        )
        == []
    )
    assert view == before


def test_what_is_short_enough_is_not_touched() -> None:
    message = ai("fine", "a")
    assert clamp_message(message, 100) == message


def test_long_texts_give_way_before_short_ones() -> None:
    message = user([{"type": "text", "text": "short and important"}, {"type": "text", "text": LOG}])
    short = clamp_message(message, 100, seq=4)
    assert short["content"][0]["text"] == "short and important"
    assert "history_open(seq=4)" in short["content"][1]["text"]


def test_an_image_is_named_before_any_text_is_cut() -> None:
    short = clamp_message(user([{"type": "text", "text": "what is this?"}, PICTURE]), 200, seq=5)
    assert short["content"][0]["text"] == "what is this?"
    assert short["content"][1]["text"] == "[image not shown here, 48,031 bytes as text; history_open(seq=5) shows it]"


def test_reasoning_is_whole_or_gone() -> None:
    said = {"type": "text", "text": "word " * 500}
    message = {"role": "assistant", "content": [THOUGHT, said]}
    assert clamp_message(message, 300)["content"][0] == THOUGHT
    assert [block["type"] for block in clamp_message(message, 100)["content"]] == ["text"]


def test_a_file_or_a_block_nobody_knows_is_named_too() -> None:
    short = clamp_message(user([{"type": "hologram", "data": "x" * 9_000}, {"type": "text", "text": "look"}]), 60)
    assert short["content"][0]["text"].startswith("[file not shown here")


def test_more_calls_than_fit_are_refused_not_dropped() -> None:
    with pytest.raises(ContextOverflow, match="leave out the message"):
        clamp_message(ai("", *(f"c{at}" for at in range(40))), 100)


# --- what is old, and what is over the cap ---------------------------------------------------


def test_a_result_over_the_cap_is_an_excerpt_and_one_below_it_is_not() -> None:
    history = [user(), ai("", "a", "b"), result("a", LOG), result("b", "word " * 500)]
    elision = elide(history, seqs=[1, 2, 3, 4])
    assert "history_open(seq=3)" in elision.messages[2]["content"]
    assert elision.messages[3] is history[3]
    assert [(clamp.index, clamp.reason) for clamp in elision.clamps] == [(2, "long_result")]
    assert elision.clamps[0].tokens_after < elision.clamps[0].tokens_before


def test_what_is_old_is_elided_sooner_and_its_images_named() -> None:
    history = [
        user([{"type": "text", "text": "see"}, PICTURE]),
        ai("", "a"),
        result("a", "word " * 500),
        user([PICTURE]),
    ]
    elision = elide(history, old_before=3)
    assert [(clamp.index, clamp.reason) for clamp in elision.clamps] == [(0, "old"), (2, "old")]
    assert elision.messages[3] == history[3]


def test_what_a_user_or_the_assistant_says_is_never_elided() -> None:
    history = [user(LOG), ai(LOG), user("and?")]
    assert elide(history, old_before=3).messages == tuple(history)


def test_what_is_said_beside_a_long_result_stays_whole() -> None:
    said = {"type": "text", "text": "please hurry"}
    carrier = user([{"type": "tool_result", "tool_use_id": "a", "content": LOG}, said])
    content = elide([carrier], old_before=1).messages[0]["content"]
    assert content[1] == said
    assert count_tokens(content[0]["content"]) <= 400


@forall(histories(), st.integers(0, 20))
def test_eliding_twice_is_eliding_once_and_keeps_a_list_valid(history: list[Message], old_before: int) -> None:
    view = repair(history)
    once = elide(view, old_before=old_before).messages
    assert find_violations(once) == []
    assert elide(once, old_before=old_before).messages == once


def test_a_policy_that_makes_no_sense_is_refused_by_name() -> None:
    with pytest.raises(Invalid) as refused:
        ClampPolicy(result_tokens=100, old_result_tokens=400)
    assert refused.value.field == "old_result_tokens"


def test_instructions_are_shown_whole() -> None:
    assert elide([system(LOG)], old_before=1).messages == (system(LOG),)


def test_an_image_that_no_provider_takes_is_named_from_the_start() -> None:
    words = {"type": "text", "text": "look"}
    message = {"role": "user", "content": [words, PICTURE]}
    assert elide_message(message, is_old=False, seq=5) is message
    short = elide_message(message, is_old=False, seq=5, policy=ClampPolicy(media_bytes=40_000))
    assert short["content"][0] == words
    assert short["content"][1]["text"] == "[image not shown here, 48,031 bytes as text; history_open(seq=5) shows it]"

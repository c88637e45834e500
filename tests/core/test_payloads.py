"""Reading a payload never fails, whatever JSON it is, and finds what the known shapes say."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everthread.core import payloads

KNOWN_KEYS = (
    "role type content data kwargs lc id name created_at additional_kwargs lc_source tool_calls function arguments "
    "args text input tool_result"
).split()
KNOWN_WORDS = "user human ai chat HumanMessage tool_use tool_result text summarization 2024-01-01T00:00:00Z".split()

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(KNOWN_WORDS)
    | st.text(st.characters(), max_size=8)
)
KEYS = st.sampled_from(KNOWN_KEYS) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS | st.just(1),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=25,
)
PAYLOADS = st.dictionaries(KEYS, VALUES, max_size=8)


@given(PAYLOADS)
@example({"role": "user", "content": "\ud800", "created_at": "2024-01-01\ud800T00:00"})
@example({"created_at": "0001-01-01T00:00:00+23:59"})
@example({"lc": 1, "id": [[]], "kwargs": {"id": {}}})
@example({"lc": 1, "id": [{}], "type": "constructor"})
@example({"role": {}, "type": []})
def test_reading_never_fails_on_any_json(payload: dict[str, Any]) -> None:
    role, name, said_at = payloads.role(payload), payloads.name(payload), payloads.said_at(payload)
    assert role is None or (isinstance(role, str) and role)
    assert name is None or isinstance(name, str)
    assert said_at is None or (isinstance(said_at, datetime) and said_at.utcoffset() == timedelta(0))
    assert isinstance(payloads.text(payload), str)
    assert isinstance(payloads.searchable(payload), str)
    assert payloads.is_summary(payload) in (True, False)
    assert payloads.message_id(payload) != ""
    assert payloads.fields(payload) is not None


@given(PAYLOADS)
def test_reading_changes_nothing_and_what_is_searched_begins_with_the_text(payload: dict[str, Any]) -> None:
    before = json.dumps(payload)
    assert payloads.searchable(payload).startswith(payloads.text(payload))
    assert json.dumps(payload) == before


@pytest.mark.parametrize(
    ("payload", "role"),
    [
        ({"role": "user"}, "user"),
        ({"type": "human"}, "user"),
        ({"type": "ai"}, "assistant"),
        ({"type": "AIMessageChunk"}, "assistant"),
        ({"type": "system"}, "system"),
        ({"type": "tool"}, "tool"),
        ({"type": "remove"}, "remove"),
        ({"role": "critic", "type": "human"}, "critic"),
        ({"type": "chat", "role": "narrator"}, "narrator"),
        ({"type": "chat", "data": {"role": "narrator"}}, "narrator"),
        ({"lc": 1, "id": ["langchain", "ChatMessage"], "kwargs": {"role": "narrator"}}, "narrator"),
        ({"lc": 1, "id": ["langchain", "SystemMessage"], "type": "constructor"}, "system"),
        ({"type": "human", "data": {"content": "x"}}, "user"),
        ({"type": "chat"}, None),
        ({"role": ""}, None),
        ({}, None),
    ],
)
def test_roles_are_openais_or_the_callers_own(payload: dict[str, Any], role: str | None) -> None:
    assert payloads.role(payload) == role


@pytest.mark.parametrize(
    ("payload", "id"),
    [
        ({"id": "m1"}, "m1"),
        ({"id": ""}, None),
        ({"id": None}, None),
        ({"id": 0}, 0),
        ({}, None),
        ({"type": "human", "id": "outer", "data": {"id": "inner"}}, "inner"),
        ({"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"id": "inner"}}, "inner"),
        ({"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {}}, None),
        ({"lc": 1, "id": ["langchain", "HumanMessage"]}, None),
    ],
)
def test_the_id_is_the_messages_own(payload: dict[str, Any], id: object) -> None:
    assert payloads.message_id(payload) == id


def test_text_is_what_a_person_would_read() -> None:
    blocks = [
        "plain",
        {"type": "thinking", "thinking": "hidden"},
        {"type": "text", "text": "shown"},
        {"type": "tool_use", "name": "f", "input": {"q": 1}},
        {"type": "tool_result", "content": [{"type": "text", "text": "inside"}, {"type": "image"}]},
        {"type": "tool_result", "content": "also inside"},
    ]
    assert payloads.text({"content": blocks}) == "plain\nshown\ninside\nalso inside"


def test_calls_are_searchable_once() -> None:
    block = {"type": "tool_use", "name": "look_up", "input": {"q": "x"}}
    call = {"name": "look_up", "args": {"q": "x"}}
    assert payloads.searchable({"content": [block]}).count("look_up") == 1
    assert payloads.searchable({"content": [block], "tool_calls": [call]}).count("look_up") == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"celsius": 21, "名称": "昆明"}, '{"celsius": 21, "名称": "昆明"}'),
        (5, "5"),
        (False, "false"),
        ({"type": "text", "text": "hi"}, "hi"),
        ({"text": "hi"}, "hi"),
        ({"type": "image", "source": {"data": "AAAA"}}, ""),
        (None, ""),
    ],
)
def test_content_that_is_neither_text_nor_blocks_is_read_as_json(content: object, text: str) -> None:
    assert payloads.text({"role": "tool", "content": content}) == text

"""The way in: bytes that decode to what came, or a refusal that names the place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everthread.core.entries import Flag, Kind
from everthread.core.errors import Invalid
from everthread.history import ingest

TEXT = st.text(st.characters(), max_size=8)
"""Any character, halves of surrogate pairs too."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=6)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def exactly(value: Any) -> str:
    """What tells 1 from True and -0.0 from 0."""
    return repr(value)


@given(OBJECTS)
@example({"half": "\ud83d", "halves": "\ud83d\ude00", "whole": "😀"})
@example({"\ud83d\ude00": {"\ud83d": 2**70}})
@example({"n": [2**63, 2**64, -(2**63) - 1, 1e308, -0.0, 5e-324]})
def test_any_object_comes_back_exactly(value: dict[str, Any]) -> None:
    raw = ingest.dump(value, field="x")
    assert exactly(json.loads(raw)) == exactly(value)


@given(OBJECTS)
def test_what_is_derived_is_derived_from_the_bytes(value: dict[str, Any]) -> None:
    message = {**value, "role": "user"}
    payload, raw = ingest.encode(message, field="x")
    assert payload is not message
    assert exactly(payload) == exactly(json.loads(raw)) == exactly(message)


@given(OBJECTS)
def test_any_json_bytes_are_kept_as_they_are(value: dict[str, Any]) -> None:
    raw = json.dumps(value, indent=1).encode()
    assert ingest.encode(raw, field="x")[1] == raw


@given(st.dictionaries(TEXT, JSON | st.tuples(JSON, JSON), max_size=4))
def test_a_tuple_comes_back_as_a_list(value: dict[str, Any]) -> None:
    expected = {key: list(inner) if isinstance(inner, tuple) else inner for key, inner in value.items()}
    assert exactly(json.loads(ingest.dump(value, field="x"))) == exactly(expected)


def test_json_is_taken_down_to_one_depth_however_it_comes() -> None:
    for depth, is_taken in ((ingest.MAX_DEPTH - 1, True), (ingest.MAX_DEPTH, False)):
        value = {"role": "user", "in": nested(depth)}
        for message in (value, {**value, "half": "\ud800"}, json.dumps(value).encode()):
            if is_taken:
                assert ingest.prepare(message, field="x").payload["in"] == nested(depth)
            else:
                with pytest.raises(Invalid, match="deep"):
                    ingest.prepare(message, field="x")


def test_many_shallow_brackets_are_not_deep() -> None:
    value = {"role": "user", "content": "[" * 1_000, "in": [[]] * 1_000}
    raw = json.dumps(value).encode()
    assert ingest.prepare(raw, field="x").payload == value


def test_the_caller_cannot_change_a_message_that_is_prepared() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "first"}]}
    made = ingest.prepare(message, field="x")
    message["content"][0]["text"] = "second"  # type: ignore[index]
    assert made.payload["content"] == [{"type": "text", "text": "first"}]


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"a": [1, {"b": float("nan")}]}, "x.a[1].b"),
        ({"a": {"b": {1, 2}}}, "x.a.b"),
        ({"a": ({}, object())}, "x.a[1]"),
        ({"a": {5: "x"}}, "x.a"),
        ({"a": 10**5_000}, "x"),
    ],
)
def test_a_refusal_names_the_place(value: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as problem:
        ingest.dump(value, field="x")
    assert problem.value.field == field


@given(OBJECTS)
def test_a_canonical_form_knows_no_order_and_no_empty_fields(value: dict[str, Any]) -> None:
    same = {**dict(reversed(value.items())), **{key: None for key in ("name", "tool_calls") if key not in value}}
    assert ingest.canonical(same) == ingest.canonical(value)
    assert ingest.canonical(json.loads(ingest.dump(value, field="x"))) == ingest.canonical(value)


@pytest.mark.parametrize("other", [1, "1", True, 1.0, [1], {"n": 1}, "", 0, False])
def test_a_canonical_form_tells_values_apart(other: object) -> None:
    forms = {ingest.canonical({"value": value}) for value in (other, "something else", None)}
    assert len(forms) == 3


def test_a_batch_is_whatever_holds_messages() -> None:
    one = {"role": "user", "content": "x"}
    assert ingest.as_batch(one) == [one]
    assert ingest.as_batch(b"{}") == [b"{}"]
    assert ingest.as_batch(message for message in [one, one]) == [one, one]
    for wrong in ("text", None, 5):
        with pytest.raises(Invalid):
            ingest.as_batch(wrong)


def test_made_ids_are_told_from_given_ones() -> None:
    made, given_one, empty = ingest.prepare_all(
        [{"role": "user"}, {"role": "user", "id": "m1"}, {"role": "user", "id": ""}]
    )
    assert (given_one.id, given_one.has_own_id) == ("m1", True)
    assert (made.has_own_id, empty.has_own_id) == (False, False)
    assert made.id != empty.id


def test_a_summary_is_known_by_its_marker_and_a_secret_is_flagged() -> None:
    marker = {"lc_source": "summarization"}
    summary, plain, secret = ingest.prepare_all(
        [
            {"role": "user", "content": "short", "additional_kwargs": marker},
            {"role": "user", "content": "Here is a summary"},
            {"role": "user", "content": "ghp_" + "a1B2" * 9},
        ]
    )
    assert [message.kind for message in (summary, plain, secret)] == [Kind.SUMMARY, Kind.MESSAGE, Kind.MESSAGE]
    assert [message.flags for message in (summary, plain, secret)] == [Flag.NONE, Flag.NONE, Flag.SECRET]


@given(st.lists(JSON, max_size=4))
def test_the_rough_size_never_fails(content: list[Any]) -> None:
    batch = [{"content": content}, {"content": "x" * 10}, b"12345", {"content": [{"text": "y" * 7}, "zz"]}, 5, None]
    assert ingest.rough_bytes(batch) >= 24


def test_a_canonical_form_tells_half_characters_from_the_whole_one() -> None:
    forms = {ingest.canonical({"content": text}) for text in ("😀", "\ud83d\ude00")}
    assert len(forms) == 2

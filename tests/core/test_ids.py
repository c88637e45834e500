"""Ids: UUIDv7 when made, strings of 1 to 128 characters when given."""

from __future__ import annotations

import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.errors import Invalid
from everthread.core.ids import check_id, check_text, new_id, owner_scope


def test_a_made_id_is_a_uuid7_of_this_moment() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_id())
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= after


def test_made_ids_are_all_different() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=128))
def test_any_text_of_up_to_128_characters_is_an_id(text: str) -> None:
    assert check_id(text, "id") == text


@given(
    st.text(min_size=129, max_size=200)
    | st.just("")
    | st.text(max_size=60).map(lambda text: text + "\0")
    | st.text(max_size=60).map(lambda text: "\udfff" + text)
    | st.none()
    | st.integers()
    | st.binary()
    | st.lists(st.text())
)
def test_anything_else_is_refused_by_name(value: object) -> None:
    with pytest.raises(Invalid, match=r"^thing\.id: ") as problem:
        check_id(value, "thing.id")
    assert problem.value.field == "thing.id"


def test_a_text_for_a_column_may_be_empty_and_long() -> None:
    assert check_text("", "title") == ""
    assert check_text("x" * 10_000, "title") == "x" * 10_000


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128))
def test_an_owners_scope_is_a_plain_word_that_says_nothing(owner: str) -> None:
    scope = owner_scope(owner)
    assert scope.isascii()
    assert scope.isalnum()
    assert len(scope) == 17
    assert scope == owner_scope(owner) != owner_scope(owner + "x")

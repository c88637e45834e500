"""Vectors as bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.embeddings import check_dimension, dimension_of, same_dimension, unit
from everthread.core.errors import Invalid

_NUMBERS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=50)


@given(_NUMBERS)
def test_a_vector_has_length_one_or_is_all_zeros(numbers: list[float]) -> None:
    vector = unit(numbers)
    values = struct.unpack(f"<{len(numbers)}f", vector)
    length = sum(value * value for value in values) ** 0.5
    assert length == pytest.approx(1.0, abs=1e-4) or not any(values)


def test_a_vector_of_length_one_stays_as_it_is() -> None:
    assert unit([0.6, 0.8]) == struct.pack("<2f", 0.6, 0.8)


def test_bytes_that_are_no_numbers_are_refused() -> None:
    for wrong in (b"", b"abc", "text", None):
        with pytest.raises(Invalid, match="float32"):
            dimension_of(wrong)  # type: ignore[arg-type]


def test_vectors_of_two_dimensions_are_refused_together() -> None:
    assert same_dimension([]) is None
    assert same_dimension([unit([1, 0]), unit([0, 1])]) == 2
    with pytest.raises(Invalid, match=r"\[2, 3\]"):
        same_dimension([unit([1, 0]), unit([0, 1, 0])])


def test_a_wrong_dimension_names_the_model() -> None:
    check_dimension(3, 3, "fake")
    with pytest.raises(Invalid, match="'fake' have 4"):
        check_dimension(3, 4, "fake")

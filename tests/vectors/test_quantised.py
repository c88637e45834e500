"""Vectors as SQLite keeps them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy", reason="needs everthread[meaning]")

import numpy as np

from everthread.adapters.vectors import numpy_search
from everthread.adapters.vectors.numpy_search import nearest
from everthread.adapters.vectors.quantised import (
    dequantise,
    merge_records,
    quantise,
    quantise_all,
    record_bytes,
    remove_records,
    split_records,
)
from everthread.core.embeddings import VectorPart, unit
from everthread.core.errors import Invalid, StoreDamaged

_VECTORS = st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).map(unit)
_PLACES = st.tuples(st.integers(1, 40), st.integers(0, 3))


@given(_VECTORS)
def test_rounding_moves_a_number_by_less_than_a_hundredth(vector: bytes) -> None:
    exact = np.frombuffer(vector, "<f4")
    assert dequantise(quantise(7, 1, vector)) == pytest.approx(exact.tolist(), abs=0.005)


@given(st.dictionaries(_PLACES, _VECTORS))
def test_many_at_once_are_rounded_as_each_by_itself(vectors: dict[tuple[int, int], bytes]) -> None:
    parts = [VectorPart(*place, vector) for place, vector in vectors.items()]
    assert quantise_all(parts) == {place: quantise(*place, vector) for place, vector in vectors.items()}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(number: float) -> None:
    vector = np.array([1.0, number], "<f4").tobytes()
    for keep in (lambda: quantise(1, 0, vector), lambda: quantise_all([VectorPart(1, 0, vector)])):
        with pytest.raises(Invalid):
            keep()


@given(st.dictionaries(_PLACES, _VECTORS), st.dictionaries(_PLACES, _VECTORS), st.sets(st.integers(1, 40)))
def test_a_page_holds_what_was_put_and_not_forgotten(
    old: dict[tuple[int, int], bytes], new: dict[tuple[int, int], bytes], gone: set[int]
) -> None:
    first = merge_records(b"", 4, {place: quantise(*place, vector) for place, vector in old.items()})
    body = merge_records(first, 4, {place: quantise(*place, vector) for place, vector in new.items()})
    expected = {place: quantise(*place, vector) for place, vector in {**old, **new}.items()}
    assert dict(split_records(body, 4)) == expected
    assert len(body) == record_bytes(4) * len(expected)
    left = dict(split_records(remove_records(body, 4, gone), 4))
    assert left == {place: one for place, one in expected.items() if place[0] not in gone}


def test_a_page_of_another_dimension_is_damage() -> None:
    with pytest.raises(StoreDamaged, match="reindex"):
        list(split_records(quantise(1, 0, unit([1, 0, 0, 0]))[:-1], 4))
    with pytest.raises(StoreDamaged, match="reindex"):
        nearest([("c", quantise(1, 0, unit([1, 0, 0, 0])))], unit([1, 0]), 1)


def test_cosines_of_384_numbers_are_right_to_half_a_hundredth() -> None:
    dice = np.random.default_rng(1)
    table = dice.normal(size=(500, 384)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    asked = table[3] + table[4]
    asked /= np.linalg.norm(asked)
    body = b"".join(quantise(n, 0, row.tobytes()) for n, row in enumerate(table))
    found = nearest([("c", body)], asked.tobytes(), 500)
    assert max(abs(near.score - float(table[near.seq] @ asked)) for near in found) < 0.005
    assert {near.seq for near in found[:2]} == {3, 4}


def test_many_are_compared_in_batches_with_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    chunks = [
        (f"c{n}", b"".join(quantise(seq, 0, unit([dice.gauss(0, 1) for _ in range(8)])) for seq in range(1, 9)))
        for n in range(20)
    ]
    asked = unit([dice.gauss(0, 1) for _ in range(8)])
    at_once = nearest(chunks, asked, 15)
    monkeypatch.setattr(numpy_search, "_BATCH_BYTES", 300)
    assert nearest(chunks, asked, 15) == at_once
    assert nearest([], asked, 15) == []

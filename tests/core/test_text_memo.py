"""A function's results for texts, kept while the texts are met."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from everthread.core.text_memo import TextMemo


def _noting(asked: list[str]) -> Callable[[str], int]:
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    return length


def test_a_text_is_computed_once_and_another_by_itself() -> None:
    asked: list[str] = []
    memo = TextMemo(_noting(asked), min_chars=2, max_chars=10, capacity=100)
    assert [memo("one two"), memo("one " + "two"), memo("one tw0"), memo("one two")] == [7, 7, 7, 7]
    assert asked == ["one two", "one tw0"]


def test_what_is_too_short_or_too_long_is_not_kept() -> None:
    memo = TextMemo(len, min_chars=2, max_chars=4, capacity=100)
    assert [memo("a"), memo("abcde")] == [1, 5]
    assert len(memo) == 0


def test_halves_of_characters_are_texts_too() -> None:
    memo = TextMemo(len, min_chars=1, max_chars=10, capacity=100)
    assert [memo("\ud83d"), memo("\ude00"), memo("😀")] == [1, 1, 1]
    assert len(memo) == 3


def test_it_is_bounded_and_keeps_what_is_asked_for_again() -> None:
    asked: list[str] = []
    memo = TextMemo(_noting(asked), min_chars=1, max_chars=10, capacity=8)
    for number in range(100):
        memo(f"text {number}")
        memo("again")
        assert len(memo) <= 16
    assert asked.count("again") == 1


def test_any_number_of_threads_get_what_is_right() -> None:
    memo = TextMemo(lambda text: f"<{text}>", min_chars=1, max_chars=10, capacity=4)
    texts = [str(number % 37) for number in range(4_000)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(memo, texts)) == [f"<{text}>" for text in texts]


def test_no_text_is_held() -> None:
    memo = TextMemo(len, min_chars=1, max_chars=100, capacity=8)
    memo("what is to be erased later")
    assert b"erased" not in pickle.dumps(memo._known)

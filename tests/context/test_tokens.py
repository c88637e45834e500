"""Tokens are counted as `o200k_base` has them, for any text and in proportion to its length."""

from __future__ import annotations

import string
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rs_bpe import openai

from everthread.context.tokens import count_tokens

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
WORDS = ("hello", "World", "HTTP", "it's", "'LL", "'ve", "don'T", " ", "  ", "\t", "\n", "\r\n", "\n\n", "/", "//", ".")
SIGNS = ("1", "2024", "0.5", "_", "x", "Y", "{", '":', "-", "\x0b", "\x0c", "\x1c", "\x1f", "\0", "\x7f")
PARTS = (*WORDS, *SIGNS)
MIXED = "The plan for 2024 is ready: 我们明天去北京。\n\n```python\nprint('hi')\n```\n"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("我们明天去北京参加会议", 7), ("😀", 1), ("\0", 1), ("<|endoftext|>", 7)],
)
def test_known_texts_have_their_known_counts(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(text=ANY_TEXT)
def test_any_text_has_a_count_within_its_bytes(text: str) -> None:
    assert (text == "") <= (count_tokens(text) == 0)
    assert count_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))


@given(text=st.text(max_size=200))
def test_the_count_is_that_of_the_encoding(text: str) -> None:
    assert count_tokens(text) == len(openai.o200k_base().encode(text))


@given(text=st.text(alphabet=st.characters(max_codepoint=127), max_size=60))
@settings(max_examples=500)
def test_ascii_is_counted_as_the_encoding_splits_it(text: str) -> None:
    assert count_tokens(text) == openai.o200k_base().count(text)


@given(text=st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
@settings(max_examples=500)
def test_what_stands_beside_a_word_does_not_change_the_count(text: str) -> None:
    assert count_tokens(text) == openai.o200k_base().count(text)


LINE_PARTS = ("\n", "\n\n", "\r\n", " ", "/", ".", "- ", "a", "1", "…", "é", "我", "\u3000", "\x85", "\u2028", "\x1c")


@given(text=st.lists(st.sampled_from(LINE_PARTS), max_size=20).map("…\n".join))
@settings(max_examples=500)
def test_lines_counted_one_by_one_are_the_whole(text: str) -> None:
    assert count_tokens(text) == openai.o200k_base().count(text)


def test_more_words_than_are_remembered_are_counted_the_same() -> None:
    texts = [" ".join(f"w{number}x" for number in range(start, start + 900)) for start in range(0, 45_000, 900)]
    assert list(map(count_tokens, texts)) == list(map(openai.o200k_base().count, texts))


def test_a_lone_surrogate_counts_as_a_replacement_character() -> None:
    assert count_tokens("a\ud800b") == count_tokens("a\ufffdb")


def test_two_halves_of_an_emoji_count_as_the_emoji() -> None:
    assert count_tokens("\ud83d\ude00") == count_tokens("😀")


@pytest.mark.parametrize("unit", ["a", "😀", " ", "\n", "\0", string.ascii_letters, "我们去北京", "a\u0301"])
def test_a_long_text_counts_as_many_times_its_part(unit: str) -> None:
    part = unit * (100_000 // len(unit))
    assert count_tokens(part * 5) == pytest.approx(5 * count_tokens(part), rel=0.01, abs=16)


def test_counting_in_pieces_differs_by_a_few_tokens_at_most() -> None:
    text = MIXED * 20_000
    assert 0 <= count_tokens(text) - openai.o200k_base().count(text) <= 2 * (len(text) // 262_144)


def test_threads_count_the_same_at_once() -> None:
    with ThreadPoolExecutor(8) as threads:
        counts = set(threads.map(count_tokens, [MIXED] * 200))
    assert counts == {count_tokens(MIXED)}

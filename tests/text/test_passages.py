"""Passages of messages."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.text.passages import PASSAGE_TOKENS, WHOLE_TOKENS, estimate_tokens, split_passages


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab .\n。字！?\U0001f600"), max_size=3000))
def test_passages_follow_each_other_without_gap_or_overlap(text: str) -> None:
    spans = split_passages(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(estimate_tokens(text[start:end]) <= WHOLE_TOKENS for start, end in spans)


def test_a_short_message_is_one_passage_whole() -> None:
    assert split_passages("one\n\ntwo\n\nthree") == [(0, 15)]
    assert split_passages("") == [(0, 0)]


def test_a_long_message_is_cut_between_its_paragraphs() -> None:
    paragraphs = [f"Paragraph {number}. " + "word " * 100 for number in range(6)]
    text = "\n\n".join(paragraphs)
    shown = [text[start:end] for start, end in split_passages(text)]
    assert [one.strip() for one in shown] == [one.strip() for one in paragraphs]


def test_ten_megabytes_without_a_space_are_cut_in_little_time() -> None:
    spans = split_passages("x" * 10_000_000)
    assert max(end - start for start, end in spans) == PASSAGE_TOKENS * 4


def test_a_han_character_counts_as_a_token() -> None:
    assert estimate_tokens("字" * 100) == 100
    assert estimate_tokens("word" * 100) == 100

"""What says nothing around a statement is left out where rules read it."""

from __future__ import annotations

import pytest

from everthread.text.fillers import without_fillers


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("emojis are fine again 😀", "emojis are fine again"),
        ("haha ok emojis are fine again", "emojis are fine again"),
        ("hm, the meeting is off lol!!", "the meeting is off"),
        ("the meeting is off, ok? thx 🙏🏽", "the meeting is off"),
        ("the meeting is off!!", "the meeting is off!"),
        ("哈哈，换回英文吧～", "换回英文吧"),
        ("我不吃素啦😅", "我不吃素了"),
        ("嗯我不吃辣", "我不吃辣"),
    ],
)
def test_emojis_laughter_and_small_words_around_a_statement_are_left_out(typed: str, read: str) -> None:
    assert without_fillers(typed) == read


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "haha",
        "😀😀",
        "so far we use tabs",
        "room 8:3",
        "note (8)",
        "is it off?",
        "这样好吗",
        "wait, no",
        "milk is ok",
        "我吃辣OK",
    ],
)
def test_what_says_something_stays(text: str) -> None:
    assert without_fillers(text) == text

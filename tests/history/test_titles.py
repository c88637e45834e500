"""What a conversation is called."""

from __future__ import annotations

import pytest

from everthread.history.titles import MOST_CHARACTERS, title_by_rules


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Hello! How high is Kunming? I ask for a friend.", "How high is Kunming?"),
        ("你好，昆明有多高？谢谢", "昆明有多高？"),
        ("Good morning everyone, plan a trip to Dali", "plan a trip to Dali"),
        ("# **Fix** `main.py`\nIt crashes.", "Fix main.py"),
        ("Why does `Vec<String>` differ from List<int>?", "Why does Vec<String> differ from List<int>?"),
        ("> ## What is 2 * 3 > 5 in C#?", "What is 2 * 3 > 5 in C#?"),
        ("What do *args and __init__ do in snake_case_name?", "What do *args and __init__ do in snake_case_name?"),
        ("Rename **user_id** and\x00why?", "Rename user_id and why?"),
        ("Write it in e.g. Python 3.12", "Write it in e.g"),
        ("", None),
        (" \n ", None),
    ],
)
def test_a_title_is_the_first_question_without_its_greeting(question: str, title: str | None) -> None:
    assert title_by_rules(question) == title


def test_a_long_title_ends_with_a_word_and_says_that_it_was_cut() -> None:
    title = title_by_rules("Tell me everything about the history of the railway between Kunming and Hanoi") or ""
    assert len(title) <= MOST_CHARACTERS
    assert title.endswith("railway…")
    assert len(title_by_rules("昆" * 200) or "") == MOST_CHARACTERS


@pytest.mark.parametrize(
    "said",
    [
        "Hi!",
        "hello there",
        "Thanks!",
        "test",
        "你好",
        "在吗？",
        "好的，谢谢",
        "```python\nprint(1)\n```",
        "***",
        "",
        "> ",
    ],
)
def test_what_has_no_subject_gives_no_title(said: str) -> None:
    assert title_by_rules(said) is None


def test_code_is_passed_over_for_the_question_about_it() -> None:
    assert title_by_rules("```python\nprint(1)\n```\nWhy does this print 1?") == "Why does this print 1?"


@pytest.mark.parametrize("before", ["", "Use the new deploy token, of which a part has room: "])
def test_a_title_has_no_credential_and_no_part_of_one(before: str) -> None:
    title = title_by_rules(f"{before}ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8") or ""
    assert "ghp" not in title

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
        ("Can you help me plan a garden for shade?", "plan a garden for shade"),
        ("hi there, i was wondering if you could maybe check my tax form", "check my tax form"),
        ("I need help. The dryer shows E21", "The dryer shows E21"),
        ("Quick question: when does the museum open?", "when does the museum open?"),
        ("You are a patient teacher. Explain tides to a child.", "Explain tides to a child"),
        ("Thanks for the last time! Now the garage: which paint is best?", "Now the garage: which paint is best?"),
        ("1. Which bread lasts longest? 2. Why?", "Which bread lasts longest?"),
        ("Can you explain?", "Can you explain?"),
        ("请问一下，去大理坐火车要多久？", "去大理坐火车要多久？"),
        ("麻烦你帮我写一份租房合同", "写一份租房合同"),
        ("能不能帮我看看这张发票哪里错了？", "这张发票哪里错了"),
        ("王老师您好！我想咨询一下转学的手续", "转学的手续"),
        ("急！！水管漏水怎么办", "水管漏水怎么办"),
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
        "quick question",
        "Can you help me?",
        "You are a wine expert.",
        "有个问题想请教一下",
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

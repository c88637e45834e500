"""Which tags a program has wrapped its text in, and which are what somebody says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.recall.markup import blank_tags, words_of_tags


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<command-name>/init</command-name>", "/init"),
        ("hello\n<system-reminder>\nbe brief\n</system-reminder>", "hello be brief"),
        ("<environment_context>\n<cwd>/srv</cwd>\n</environment_context>", "<cwd>/srv</cwd>"),
        ("\n<task>mend the login</task>", "mend the login"),
    ],
)
def test_tags_of_programs_are_blank(text: str, left: str) -> None:
    assert blank_tags(text).split() == left.split()


@pytest.mark.parametrize(
    "text",
    [
        "put it into <nav> and not into <div>",
        "here it is: <name>Ann</name>",
        '<my-card id="1">Ann</my-card>',
        "we use `<my-card></my-card>` for it",
        "```\n<my-card>Ann</my-card>\n```",
        "a List<sorted-map> and </sorted-map>",
        "<step-one> is never closed",
        "1 < 2 </ 3 >",
    ],
)
def test_markup_that_somebody_writes_stays(text: str) -> None:
    assert blank_tags(text) == text


@given(st.text(alphabet="<>/-`ab \n。", max_size=60))
def test_whatever_stays_stands_where_it_stood(text: str) -> None:
    blank = blank_tags(text)
    assert len(blank) == len(text)
    assert all(now in (" ", before) for now, before in zip(blank, text, strict=True))


def test_a_word_that_is_also_said_is_no_word_of_tags_only() -> None:
    assert words_of_tags("<command-name>the name is init</command-name>") == {"command"}

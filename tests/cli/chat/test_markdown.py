"""An answer is printed block by block; a block that may still change is not."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from everthread.cli.chat.screen import MarkdownStream, TerminalScreen, finished_length


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("", ""),
        ("one", ""),
        ("one\n", ""),
        ("one\n\n", "one\n\n"),
        ("one\n\ntwo", "one\n\n"),
        ("```\na\n\nb", ""),
        ("```\na\n\nb\n```\n\nafter", "```\na\n\nb\n```\n\n"),
        ("````\n```\n\n", ""),
        ("~~~\n```\n\n~~~\n\n", "~~~\n```\n\n~~~\n\n"),
        ("- a\n\n- b", "- a\n\n"),
    ],
)
def test_a_block_is_finished_at_a_blank_line_outside_of_code(text: str, done: str) -> None:
    assert text[: finished_length(text)] == done


@given(st.lists(st.sampled_from(["word ", "\n", "\n\n", "```\n", "**b** ", "- x\n", "日本 "]), max_size=30))
def test_what_is_fed_in_pieces_is_shown_once(pieces: list[str]) -> None:
    """Not drawn live: whatever is finished later is printed once, nothing twice, nothing never."""
    shown, whole = io.StringIO(), "".join(pieces)
    stream = MarkdownStream(Console(file=shown, width=200, color_system=None))
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    assert shown.getvalue().count("word") == whole.count("word")
    assert shown.getvalue().count("日本") == whole.count("日本")


def test_a_line_that_was_begun_anew_stays_a_new_line() -> None:
    shown = io.StringIO()
    stream = MarkdownStream(Console(file=shown, width=40, color_system=None))
    stream.feed("Roses are red,\nviolets are blue.")
    stream.end()
    assert [line.rstrip() for line in shown.getvalue().splitlines() if line.strip()] == [
        "Roses are red,",
        "violets are blue.",
    ]


def test_texts_of_ours_are_broken_between_words_and_below_their_column() -> None:
    shown = io.StringIO()
    screen = TerminalScreen(Console(file=shown, width=40, color_system=None))
    path = f"workspace  /srv/{'long/' * 8}files"
    screen.say(f"/skills    [NAME]: list skills; activate one (none: deactivate)\n{path}")
    assert shown.getvalue().splitlines() == [
        "/skills    [NAME]: list skills; activate",
        "           one (none: deactivate)",
        path,
    ]

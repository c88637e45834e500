"""A text is cut where a reader would cut it, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.text.sentences import STRETCH_CHARS, split_sentences
from tests.compaction.spans import texts


def _texts(text: str) -> list[str]:
    return [piece.text for piece in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Dr. Smith paid $3.50 at 5 p.m. on Sunday. Then he left.", 2),
        ("See https://a.example/c.html?q=1. Version 1.2.3 is out!", 2),
        ("Use e.g. Redis. Is it fast? Yes...", 3),
        ("代号「飞鱼」。先撸后端！先定技术栈？好的。", 4),
        ("他说：“明天走吧。”然后就走了……真的吗？！是的", 3),
        ("用 FastAPI 0.110.1 跑，放在 ~/code/heron/ 下。端口 9310。", 2),
    ],
)
def test_abbreviations_addresses_versions_and_quotes_stay_whole(text: str, sentences: int) -> None:
    assert len(_texts(text)) == sentences
    assert "".join(_texts(text)).replace(" ", "") == text.replace(" ", "")


def test_a_code_block_is_one_piece() -> None:
    block = "```python\nx = 1. \nprint('a. B')\n```"
    pieces = split_sentences(f"Try this.\n{block}\nDone.")
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("prose", "Try this."),
        ("code", block),
        ("prose", "Done."),
    ]


def test_a_code_block_that_is_never_closed_runs_to_the_end() -> None:
    assert [piece.kind for piece in split_sentences("So:\n```\na\nb. C\n\nd")] == ["prose", "code"]


def test_a_list_item_is_one_piece_and_knows_its_heading() -> None:
    pieces = split_sentences("## Plan\n1. First. And more.\n- second\n\nWe also need:\n- third")
    items = [(piece.text, piece.under) for piece in pieces if piece.kind == "item"]
    assert items == [("First. And more.", "Plan"), ("second", "Plan"), ("third", "We also need")]


def test_a_number_or_a_dash_at_the_start_of_a_line_makes_no_item() -> None:
    assert [piece.kind for piece in split_sentences("3.5 is good\n-5 degrees\n*so* it is")] == ["prose"] * 3


def test_a_table_gives_its_rows_without_the_rule() -> None:
    assert _texts("| name | price |\n|---|---:|\n| desk | 42 |") == ["name | price", "desk | 42"]


def test_lines_wrapped_by_an_editor_are_one_sentence() -> None:
    wrapped = "This sentence was wrapped by an editor that breaks its lines at some\ncolumn, as mail programs do."
    assert len(_texts(wrapped)) == 1


def test_a_sentence_is_not_cut_inside_inline_code() -> None:
    assert _texts("It is in the `. /src` folder. Open it.") == ["It is in the `. /src` folder.", "Open it."]


def test_long_chinese_sentences_are_taken_apart_at_semicolons() -> None:
    long = "先分清是数据库、网络还是序列化，在中间件里打总耗时，再打次数和时间；" * 3
    assert len(_texts(long)) == 3


def test_a_line_longer_than_a_stretch_loses_no_character() -> None:
    long = "".join(f"词{number}。" for number in range(STRETCH_CHARS))
    assert "".join(_texts(long)) == long


@given(st.text("ab好的 .!?。？\n", max_size=200))
def test_no_word_is_lost(text: str) -> None:
    assert _letters(" ".join(_texts(text))) == _letters(text)


@given(texts())
def test_any_text_is_cut_into_pieces_that_say_something(text: str) -> None:
    assert all(piece.text.strip() for piece in split_sentences(text))


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalpha())


def test_a_form_of_address_ends_no_sentence() -> None:
    said = [piece.text for piece in split_sentences("Our contact is Ms. Okoye now. Mme. Roux left.")]
    assert said == ["Our contact is Ms. Okoye now.", "Mme. Roux left."]


def test_a_house_number_stays_with_its_street() -> None:
    texts = [piece.text for piece in split_sentences("Bring it to Graben Str. 7, second floor. The bell is broken.")]
    assert texts == ["Bring it to Graben Str. 7, second floor.", "The bell is broken."]


@pytest.mark.parametrize(
    "text",
    [
        "Abreise am 15. Mai 2026 um 9 Uhr.",
        "Am 1. und 2. April ist zu.",
        "Wir treffen uns z.B. am 3. Juni bei Hr. Weber, Nr. 12 bzw. Str. 5.",
        "M. Dupont arrive le 5. Juin est libre.",
        "Trae el carnet, p.ej. Madrid, pág. 12, art. 5 del contrato.",
    ],
)
def test_the_dot_of_an_ordinal_or_of_an_abbreviation_of_another_language_cuts_nothing(text: str) -> None:
    assert _texts(text) == [text]


def test_a_number_ends_a_sentence_where_another_surely_begins() -> None:
    assert _texts("I have room 5. The other is 7. 我住在那里。") == [
        "I have room 5.",
        "The other is 7.",
        "我住在那里。",
    ]

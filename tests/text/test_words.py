"""Texts and questions become the same tokens: what was said is found by its own words, in any script."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core.queries import Query, Term
from everthread.history.search_query import (
    MAX_QUERY_TERMS,
    excerpt,
    fts5_match,
    parse_query,
    tsquery,
    without_common_words,
)
from everthread.text.words import (
    MAX_INDEX_BYTES,
    MAX_TOKEN_CHARS,
    SCOPE_MARK,
    WORDS_VERSION,
    index_text,
    index_tokens,
    renew_token,
    scope_token,
    simplify,
    tokenize,
)

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
HAN = st.text(alphabet=st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=1, max_size=12)
LATIN = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=70)

OF_VERSION_2 = {
    "Don't the user's plans change?": "don t the user plan chang",
    "snake_case file.py v1.2.3 me@example.org /usr/lib/x": "snake case file py v1 2 3 me exampl org usr lib x",
    "getUserName IDs 2024-03-15 1,000": "getusernam id 2024 03 15 1 000",
    "我爱Python写程序": "我爱 爱 python 写程 程序 序",
    "東京タワーへ行く": "东京 京タ タワ ワー ーへ へ行 行く く",
    "後來去雲南，裡面": "后来 来去 去云 云南 南 里面 面",
    "한국어 공부": "한국 국어 어 공부 부",
    "ภาษาไทย": "ภา าษ ษา าไ ไท ทย ย",
    "हिन्दी भाषा": "हिन्दी भाषा",
    "ＡＢＣ ﾊﾟﾋﾟ ½ ①": "abc パピ ピ 1 2 1",
    "Straße ÉCOLE naïve Ωμέγα Привет": "strass ecol naiv ωμεγα привет",
    "Łódź Nguyễn Đặng fiancées İstanbul ёж мой": "lodz nguyen dang fiance istanbul еж мой",
    "it’s the dog’s 𠀀𠀁 👍🏽 1️⃣": "it the dog 𠀀𠀁 𠀁 1",
}


@pytest.mark.parametrize("text", OF_VERSION_2)
def test_the_tokens_of_version_2_stay_as_they_are(text: str) -> None:
    """An index built with other tokens could no longer be erased from: change WORDS_VERSION, not this."""
    assert WORDS_VERSION == 2
    assert " ".join(tokenize(text)) == OF_VERSION_2[text]


def test_the_stems_of_version_2_stay_as_they_are() -> None:
    """A newer Snowball that stems otherwise needs a new WORDS_VERSION and an index built anew."""
    endings = ("", "s", "ed", "ing", "ings", "ly", "ation", "ational", "fulness", "ies", "y", "er", "est")
    roots = ("hop", "nation", "happi", "run", "gener", "univers", "commun", "sk", "d", "care", "fli", "organ", "past")
    stems = " ".join(tokenize(" ".join(root + ending for root in roots for ending in endings)))
    assert hashlib.sha256(stems.encode()).hexdigest()[:16] == "84ecb9881509eeb8"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("café", "cafe"),
        ("fiancé", "fiance"),
        ("résumé", "resum"),
        ("plan", "plan"),
        ("後來", "后来"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_a_token_of_version_1_is_renewed(old: str, new: str) -> None:
    assert new in renew_token(old)
    assert old == new or old not in renew_token(old)


def test_a_scope_is_never_renewed() -> None:
    assert renew_token(scope_token("o17")) == {scope_token("o17")}


@given(text=ANY_TEXT)
def test_any_text_gives_tokens_a_database_takes_as_they_are(text: str) -> None:
    found = tokenize(text)
    assert found == tokenize(text)
    for token in found:
        assert 0 < len(token) <= MAX_TOKEN_CHARS
        assert SCOPE_MARK not in token
        assert "\0" not in token
        assert token.encode()
        assert all(char.isalnum() or not char.isascii() for char in token)
        assert token == token.lower()


@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_fts5_keeps_each_token_apart_and_unchanged(texts: list[str]) -> None:
    """The `ascii` tokenizer must neither split nor fold what was put in, or a query would miss it."""
    fed = index_tokens(" ".join(texts), ["o1"])
    with index_of(fed) as connection:
        stored = {row[0] for row in connection.execute("SELECT term FROM vocabulary")}
    assert stored == set(fed)


@contextmanager
def index_of(fed: Sequence[str]) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5(tokens, content='', detail=none, prefix='1', tokenize='ascii')"
        )
        connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)")
        connection.execute("INSERT INTO words(rowid, tokens) VALUES (1, ?)", (" ".join(fed),))
        yield connection


def matches(text: str, question: str, *, any_term: bool = False) -> bool:
    """Ask FTS5 itself whether a text is found."""
    expression = fts5_match(parse_query(question), ["o1"], any_term=any_term)
    with index_of(index_tokens(text, ["o1"])) as connection:
        return bool(connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall())


@given(before=ANY_TEXT, word=LATIN, after=ANY_TEXT)
def test_a_word_is_found_by_itself(before: str, word: str, after: str) -> None:
    assert matches(f"{before} {word} {after}", word)
    assert matches(f"{before} {word} {after}", word.upper())


@given(run=HAN, data=st.data())
def test_every_part_of_a_chinese_run_is_found(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    end = data.draw(st.integers(start + 1, len(run)))
    assert matches(f"前言。{run}，后记", run[start:end])
    assert matches(f"see {run} there", f'"{run[start:end]}"')


@pytest.mark.parametrize("word", ["我", "京", "议", "北京", "会议", "北京参加", "我们明天去北京参加会议"])
def test_chinese_words_of_any_length_are_found(word: str) -> None:
    assert matches("我们明天去北京参加会议。", word)


@pytest.mark.parametrize("word", ["京北", "他", "天明", "南京"])
def test_chinese_that_was_not_said_is_not_found(word: str) -> None:
    assert not matches("我们明天去北京参加会议。", word)


@pytest.mark.parametrize(
    "question", ["snake", "case", "snake_case", "report.pdf", "PDF", "v1.2.3", "usr/lib", "example.org"]
)
def test_identifiers_are_found_whole_and_by_their_parts(question: str) -> None:
    assert matches("open snake_case in /usr/lib/report.pdf v1.2.3 of me@example.org", question)


@pytest.mark.parametrize("question", ["running", "RUNS", "run"])
def test_other_forms_of_a_word_find_it(question: str) -> None:
    assert matches("She runs every day.", question)


def test_all_words_are_asked_for_unless_any_is_enough() -> None:
    assert matches("a red house", "red house")
    assert not matches("a red house", "red car")
    assert matches("a red house", "red car", any_term=True)


def test_a_phrase_is_asked_for_even_when_any_word_is_enough() -> None:
    assert matches("a red house", '"red house" car', any_term=True)
    assert not matches("a red barn", '"red house" barn', any_term=True)


def test_another_scope_is_never_matched() -> None:
    count = "SELECT count(*) FROM words WHERE words MATCH ?"
    with index_of(index_tokens("a red house", ["o1"])) as connection:
        assert connection.execute(count, (fts5_match(parse_query("red"), ["o1"]),)).fetchone() == (1,)
        assert connection.execute(count, (fts5_match(parse_query("red"), ["o2"]),)).fetchone() == (0,)


@given(text=ANY_TEXT)
def test_no_text_can_pose_as_a_scope(text: str) -> None:
    assert scope_token("o1") not in index_tokens(f"{text}{SCOPE_MARK}o1 {SCOPE_MARK} o1")


@pytest.mark.parametrize("name", ["", "o 1", "o-1", "ö1", 'o"1'])
def test_a_scope_is_named_by_letters_and_digits(name: str) -> None:
    with pytest.raises(ValueError, match="scope"):
        scope_token(name)


@given(text=ANY_TEXT, any_term=st.booleans())
def test_any_question_is_valid_for_fts5(text: str, any_term: bool) -> None:
    query = parse_query(text)
    assert query == parse_query(text)
    assert len(query.terms) <= MAX_QUERY_TERMS
    expression = fts5_match(query, ["o1"], any_term=any_term)
    with index_of(["word"]) as connection:
        assert connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall() == []


@pytest.mark.parametrize("text", ["", " ", "!?", '""', '"', "😀", "\0", "\ud800", '" "', "。，"])
def test_a_question_without_a_word_is_empty(text: str) -> None:
    assert parse_query(text) == Query()
    assert not parse_query(text)
    assert not matches("a text", text)
    assert not matches("a text", text, any_term=True)
    assert tsquery(parse_query(text), ["o1"]) == ""


def test_operators_are_only_text() -> None:
    assert fts5_match(parse_query('NEAR(a, b) OR "x" AND c* NOT tokens:d ^e')) == fts5_match(
        parse_query('near a b or "x" and c not tokens d e')
    )


def test_a_question_is_written_for_both_databases() -> None:
    query = parse_query('budget "next year" 预算表 钱')
    assert fts5_match(query, ["o7"]) == (
        f'"{SCOPE_MARK}o7" AND "budget" AND "next" AND "year" AND "预算" AND "算表" AND "钱" *'
    )
    assert tsquery(query, ["o7"]) == (f"'{SCOPE_MARK}o7' & 'budget' & 'next' & 'year' & '预算' & '算表' & '钱':*")
    assert tsquery(query, ["o7"], any_term=True) == f"'{SCOPE_MARK}o7' & 'next' & 'year'"
    assert tsquery(parse_query("budget 钱"), ["o7"], any_term=True) == f"'{SCOPE_MARK}o7' & ('budget' | '钱':*)"


def test_curly_and_wide_quotation_marks_quote_too() -> None:
    assert parse_query("“next year”") == parse_query('"next year"') == parse_query("＂next year＂")


def test_an_odd_quotation_mark_is_only_text() -> None:
    assert parse_query('next "year') == parse_query("next year")


def test_a_very_long_question_is_cut_not_refused() -> None:
    query = parse_query("我们上次讨论的预算到底是多少钱啊" * 1_000)
    assert 0 < len(query.terms) <= MAX_QUERY_TERMS
    assert len(parse_query(" ".join(f"word{number}" for number in range(1_000))).terms) == MAX_QUERY_TERMS


def test_common_words_can_be_left_out_of_a_question() -> None:
    query = parse_query("what is the budget")
    counted = {"what": 900, "is": 1_000, "the": 1_000, "budget": 12}
    assert without_common_words(query, counted, 1_000) == parse_query("what budget")
    assert without_common_words(query, counted, 10) == query
    assert without_common_words(parse_query('"is the" budget'), counted, 1_000) == parse_query('"is the" budget')


def test_scope_tokens_come_first_and_tokens_once() -> None:
    assert index_tokens("to be or not to be", ["o1"]) == [scope_token("o1"), "to", "be", "or", "not"]
    assert index_text("to be", ["o1", "B2"]) == f"{SCOPE_MARK}o1 {SCOPE_MARK}b2 to be"


@given(
    text=st.lists(st.sampled_from([*"as ST_1é—我们の\u0301\u3000\xa0\x1c’İ½ไ", "'s", "'", "’s "]), max_size=20).map(
        "".join
    )
)
def test_an_index_holds_the_tokens_of_a_text_and_no_others(text: str) -> None:
    assert index_tokens(text) == list(dict.fromkeys(tokenize(text)))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Anna's dog's bowl", ["anna", "dog", "bowl"]),
        ("a's's's b", ["a", "s", "b"]),
        ("'s it's_x isn't", ["s", "it", "s", "x", "isn", "t"]),
    ],
)
def test_a_possessive_is_dropped_after_a_word(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens == tokenize(f"{text} é")[:-1]


def test_a_hundred_thousand_distinct_words_are_all_indexed() -> None:
    words = [f"w{number:06d}" for number in range(100_000)]
    assert index_tokens(" ".join(words)) == words


def test_the_index_of_one_text_ends_at_its_cap() -> None:
    source = random.Random(1)
    text = " ".join(f"{source.getrandbits(240):060x}" for _ in range(20_000))
    fed = index_tokens(text, ["o1"])
    assert MAX_INDEX_BYTES - MAX_TOKEN_CHARS * 4 < sum(map(len, fed[1:])) <= MAX_INDEX_BYTES
    assert fed[1] in text.split()[0]


@pytest.mark.parametrize(
    "unit", ["a", "我", "我们去", "\u0301\u0316", "\ufdfa", "😀", "\ud800", "\0", " ", "a's", "_", "e\u0301 "]
)
def test_a_long_text_of_anything_becomes_a_small_index(unit: str) -> None:
    assert len(index_tokens(unit * (300_000 // len(unit)))) <= 100


def test_no_pair_of_characters_is_lost_where_a_long_text_is_cut() -> None:
    source = random.Random(2)
    run = "".join(chr(source.randrange(0x4E00, 0x9FFF)) for _ in range(300_000))
    every_pair = {run[at : at + 2] for at in range(len(run) - 1)}
    assert {simplify(pair) for pair in every_pair} <= set(tokenize(run))


def test_threads_stem_the_same_at_once() -> None:
    texts = [" ".join(f"{word}{number}ing" for number in range(300)) for word in ("plan", "hop", "organiz", "runn")] * 8
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(tokenize, texts)) == [tokenize(text) for text in texts]


def test_the_stretch_of_a_long_text_holds_what_was_asked_for() -> None:
    text = "nothing here " * 10_000 + "the budgets are fixed " + "nothing more " * 10_000
    part = excerpt(text, parse_query("budgeting"), 1_000)
    assert len(part) == 1_000
    assert "budgets" in part
    assert excerpt("short", parse_query("budget"), 1_000) == "short"


@given(text=ANY_TEXT, question=ANY_TEXT, chars=st.integers(1, 20))
def test_any_stretch_is_a_part_of_its_text(text: str, question: str, chars: int) -> None:
    part = excerpt(text, parse_query(question), chars)
    assert part in text
    assert len(part) == min(chars, len(text)) or len(part) <= chars


def test_a_term_that_is_one_character_asks_for_its_beginnings() -> None:
    assert parse_query("钱").terms == (Term(token="钱", is_prefix=True),)
    assert parse_query("a").terms == (Term(token="a"),)


@given(text=ANY_TEXT)
def test_tokens_derived_again_take_a_text_out_of_the_index(text: str) -> None:
    """SQLite 3.40 deletes from a contentless table only when it is told the very tokens that went in."""
    with index_of(index_tokens(text, ["o1"])) as connection:
        put_in = (index_text(text, ["o1"]),)
        connection.execute("INSERT INTO words(words, rowid, tokens) VALUES ('delete', 1, ?)", put_in)
        connection.execute("INSERT INTO words(words) VALUES ('optimize')")
        assert connection.execute("SELECT term FROM vocabulary").fetchall() == []

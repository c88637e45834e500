"""Hits come best first: rare words, words said often, words said together; and of equals the newest."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.history.search import rank_texts
from everthread.history.search_query import parse_query

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
WORDS = st.lists(st.sampled_from(["budget", "travel", "the", "of", "预算", "旅行"]), min_size=1, max_size=12)


def ordered(question: str, *texts: str, frequencies: dict[str, int] | None = None, total: int = 1_000) -> list[int]:
    """Give the places of the texts that were hits, best first; a later text is a newer message."""
    hits = rank_texts(parse_query(question), dict(enumerate(texts)), frequencies or {}, total)
    return [hit.key for hit in hits]


def test_a_message_with_more_of_the_words_comes_first() -> None:
    assert ordered("travel budget", "the budget", "travel and a budget", "some travel")[0] == 1


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    counted = {"meet": 900, "zanzibar": 3}
    assert ordered("meeting zanzibar", "the meeting was long", "zanzibar was hot", frequencies=counted) == [1, 0]


def test_a_word_that_most_candidates_have_weighs_little() -> None:
    """Counts are capped, so `is` and `budget` may be counted alike."""
    counted = {"what": 10, "is": 10, "the": 10, "budget": 10}
    texts = [*["what is the matter"] * 20, "here stands our budget for it"]
    assert ordered("what is the budget", *texts, frequencies=counted, total=100)[0] == 20


def test_a_word_said_often_counts_more() -> None:
    assert ordered("budget", "the budget is a thing", "budget after budget is") == [1, 0]


def test_the_same_word_counts_more_in_a_short_text() -> None:
    assert ordered("budget", "budget " + "and so on " * 50, "budget and so on")[0] == 1


def test_words_that_stand_together_count_more() -> None:
    assert ordered("travel budget", "the travel budget for us", "the budget for us travel") == [0, 1]
    assert ordered("snake_case", "a case and a snake here", "a name in snake_case here") == [1, 0]
    assert ordered("销售数据", "数据在此，销售在彼，售数", "这是销售数据在此，在彼") == [1, 0]


def test_a_phrase_must_stand_as_it_was_quoted() -> None:
    assert ordered(
        '"travel budget"', "travel budget", "budget travel", "travel for a budget", "the travel budgets"
    ) == [
        0,
        3,
    ]
    assert ordered('"北京 大学"', "北京大学", "在北京 大学里") == [1]
    assert ordered('"去北京" 我', "我们去北京了", "我们去了北京") == [0]
    assert ordered('"python 爱"', "python 爱好者", "爱 python") == [0]


def test_a_phrase_is_found_anywhere_in_a_long_text() -> None:
    long = "budget of travel and " * 5_000 + "the travel budget"
    assert ordered('"travel budget"', long, "budget of travel and " * 5_000) == [0]


def test_one_chinese_character_is_found_and_counted() -> None:
    assert ordered("京", "东京和北京", "我去东京", "我去上海") == [0, 1]


def test_characters_in_a_compatible_form_are_found_too() -> None:
    assert ordered("パピ", "see ﾊﾟﾋﾟ there", "nothing") == [0]


def test_of_equal_messages_the_newest_comes_first() -> None:
    assert ordered("ok", "ok", "ok", "ok") == [2, 1, 0]


def test_a_candidate_without_any_of_the_words_is_no_hit() -> None:
    """An index may lag behind an erasure."""
    assert ordered("budget", "", "budget", "something else") == [1]


def test_a_long_text_is_a_hit_though_not_all_of_it_is_read() -> None:
    long = "budget " + "and so on " * 10_000 + "zanzibar"
    assert ordered("budget zanzibar", long, "budget for zanzibar") == [1, 0]


def test_nothing_is_found_for_nothing() -> None:
    assert rank_texts(parse_query(""), {1: "a"}, {}, 1) == []
    assert rank_texts(parse_query("a"), {}, {}, 0) == []


@given(question=ANY_TEXT, texts=st.lists(ANY_TEXT), frequency=st.integers(0, 2_000), total=st.integers(0, 1_000))
def test_any_question_and_texts_give_scores_above_zero_in_order(
    question: str, texts: list[str], frequency: int, total: int
) -> None:
    query = parse_query(question)
    counted = {term.token: frequency for term in query.terms}
    hits = rank_texts(query, dict(enumerate(texts)), counted, total)
    assert all(hit.score > 0 for hit in hits)
    assert all((one.score, one.key) >= (other.score, other.key) for one, other in pairwise(hits))


@given(question=WORDS, texts=st.lists(WORDS, min_size=1), data=st.data())
def test_the_order_of_the_candidates_does_not_matter(
    question: list[str], texts: list[list[str]], data: st.DataObject
) -> None:
    query = parse_query(" ".join(question))
    candidates = {key: " ".join(words) for key, words in enumerate(texts)}
    shuffled = dict(data.draw(st.permutations(list(candidates.items()))))
    assert rank_texts(query, candidates, {}, 9) == rank_texts(query, shuffled, {}, 9)


@given(words=WORDS, others=st.lists(WORDS))
def test_a_text_is_a_hit_for_each_of_its_words(words: list[str], others: list[list[str]]) -> None:
    candidates = {key: " ".join(text) for key, text in enumerate([words, *others])}
    assert all(0 in {hit.key for hit in rank_texts(parse_query(word), candidates, {}, 100)} for word in words)


@pytest.mark.parametrize("total", [0, 1, 10**9])
def test_counts_that_do_not_fit_together_do_no_harm(total: int) -> None:
    assert ordered("budget", "a budget", frequencies={"budget": 5_000}, total=total) == [0]

"""Facts are ranked as someone who goes on needs them, and a summary keeps them in any spelling."""

from __future__ import annotations

from hypothesis import given

from everthread.compaction.fact_ranking import facts_of_sources, is_askable, rank_facts, split_kept
from everthread.compaction.sources import Source, SourceCall
from everthread.text.facts import find_facts
from tests.compaction.spans import assistant, result, spans, texts, user


def test_what_a_summary_still_says_is_kept_in_whatever_spelling() -> None:
    facts = find_facts("on 3 May 2024 we paid 1,000 km to Jane Smith")
    assert [fact.text for fact in split_kept("Jane smith, 1000 km, 2024-05-03", facts)[1]] == []


def test_a_part_of_a_longer_number_or_word_does_not_keep_a_fact() -> None:
    facts = find_facts("15% of port 801 went to Anna")
    assert split_kept("150% of 9310 went to Annabelle", facts)[0] == []


def test_a_full_date_holds_the_day_and_the_month_it_names() -> None:
    facts = find_facts("5月3日") + find_facts("in May 2024")
    assert split_kept("by 2024-05-03", facts) == (facts, [])


def test_the_seq_of_a_line_keeps_no_fact() -> None:
    facts = find_facts("see #12")
    assert split_kept("- we looked at it [#12, 2024-05-03]", facts)[1] == facts


def test_a_fact_is_counted_once_however_often_it_is_said() -> None:
    sources = [user(1, "port 9310"), assistant(2, "9310 it is")]
    assert [fact.normal for fact in rank_facts(facts_of_sources(sources), sources)] == ["9310"]


def test_arguments_of_calls_hold_facts() -> None:
    sources = [assistant(3, "", SourceCall(name="book", arguments='{"id": "JG7FMM"}'))]
    assert [(fact.text, fact.seq) for fact in facts_of_sources(sources)] == [("JG7FMM", 3)]


def test_what_a_user_said_ranks_before_what_others_did() -> None:
    sources = [user(1, "it is 4711"), assistant(2, "I think 5822"), result(3, "t", "6933")]
    assert [fact.text for fact in rank_facts(facts_of_sources(sources), sources)][:1] == ["4711"]


def test_of_equal_facts_the_rarer_and_the_newer_rank_first() -> None:
    sources = [user(1, "room 401"), user(2, "room 402"), user(3, "room 402"), user(4, "room 403")]
    assert [fact.text for fact in rank_facts(facts_of_sources(sources), sources)] == ["403", "401", "402"]


def test_a_repeated_fact_points_to_where_a_user_said_it_last() -> None:
    sources = [user(1, "port 9310"), user(2, "port 9310"), assistant(3, "9310, yes")]
    assert [fact.seq for fact in rank_facts(facts_of_sources(sources), sources)] == [2]


@given(texts())
def test_a_text_keeps_all_its_own_facts(text: str) -> None:
    assert split_kept(text, find_facts(text))[1] == []


@given(spans())
def test_ranking_gives_every_fact_of_any_span_once_and_those_of_users_first(sources: list[Source]) -> None:
    facts = [fact for fact in facts_of_sources(sources) if is_askable(fact)]
    ranked = rank_facts(facts_of_sources(sources), sources)
    assert {fact.normal for fact in ranked} == {fact.normal for fact in facts}
    assert len(ranked) == len({fact.normal for fact in ranked})
    users = {source.seq for source in sources if source.role in ("user", "human")}
    said_by_user = [fact.seq in users for fact in ranked]
    assert said_by_user == sorted(said_by_user, reverse=True)


def test_a_word_in_quotes_or_a_stop_word_is_no_fact() -> None:
    said = [user(1, 'He was "late" again, and `is` is a keyword. The order was "Late Harvest", `9310`.')]
    assert {fact.text for fact in rank_facts(facts_of_sources(said), said)} == {"Late Harvest", "9310"}

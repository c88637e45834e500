"""Facts are found by plain rules, compare in any spelling, and are ranked as someone who goes on needs them."""

from __future__ import annotations

import pytest
from hypothesis import given

from everthread.compaction import CallSketch, Source, facts_of, find_facts, kept, rank_facts
from tests.compaction.spans import assistant, result, spans, texts, user


def _found(text: str) -> set[tuple[str, str]]:
    return {(fact.kind, fact.text) for fact in find_facts(text)}


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        ("it costs $1,200.50 now", "money", "$1,200.50"),
        ("预算￥3000以内", "money", "￥3000"),
        ("一共3.5万元", "money", "3.5万元"),
        ("一个人三百八十块", "money", "三百八十块"),
        ("up by 15% since", "number", "15%"),
        ("takes 250 ms there", "number", "250 ms"),
        ("moved 4 years ago", "number", "4 years"),
        ("I have two kids", "number", "two kids"),
        ("120单的波次", "number", "120单"),
        ("最多三万五", "number", "三万五"),
        ("阿哲只剩六天年假", "number", "六天"),
        ("端口9310能用", "number", "9310"),
        ("due 2024-05-12 at noon", "date", "2024-05-12"),
        ("due 12 May 2024 at noon", "date", "12 May 2024"),
        ("due May 12th, 2024", "date", "May 12th, 2024"),
        ("5月3日出发", "date", "5月3日"),
        ("四月七号去", "date", "四月七号"),
        ("2024年5月开始", "date", "2024年5月"),
        ("call at 3:30 pm", "time", "3:30 pm"),
        ("下午3点开会", "time", "下午3点"),
        ("I met Jane Smith there", "name", "Jane Smith"),
        ("thanks to Caroline's help", "name", "Caroline"),
        ("前端是老周出的", "name", "老周"),
        ("找王老师问问", "name", "王老师"),
        ("住在浦东新区那边", "name", "浦东新区"),
        ("ask @mel_b about it", "handle", "@mel_b"),
        ("在看《三体》", "title", "三体"),
        ("代号「飞鱼」", "title", "飞鱼"),
        ("in /var/log/app.log today", "path", "/var/log/app.log"),
        ("代码放 ~/code/heron/ 下", "path", "~/code/heron/"),
        ("see app/domain/wave.py please", "path", "app/domain/wave.py"),
        ("edit setup.cfg first", "file", "setup.cfg"),
        ("at https://a.example/b?c=1.", "url", "https://a.example/b?c=1"),
        ("write to a.b@c.example now", "email", "a.b@c.example"),
        ("as 550e8400-e29b-41d4-a716-446655440000", "id", "550e8400-e29b-41d4-a716-446655440000"),
        ("reservation JG7FMM please", "id", "JG7FMM"),
        ("fixed in ABC-123", "id", "ABC-123"),
        ("see #4417", "id", "#4417"),
        ("at commit 3fa9c1d", "id", "3fa9c1d"),
        ("user omar_davis_3817", "id", "omar_davis_3817"),
        ("host 10.20.3.41 is up", "id", "10.20.3.41"),
        ("call get_user_details", "code", "get_user_details"),
        ("a FastAPI app", "code", "FastAPI"),
        ("call close() then", "code", "close()"),
        ("run `git reflog` first", "code", "git reflog"),
        ("with --dry-run on", "code", "--dry-run"),
        ("since 1.2.3 it works", "version", "1.2.3"),
        ("on Python 3.11 only", "version", "Python 3.11"),
        ("raised KeyError there", "error", "KeyError"),
        ("ended with exit code 137", "error", "exit code 137"),
        ("返回状态码 502", "error", "状态码 502"),
        ('it said "disk is full" again', "quote", "disk is full"),
    ],
)
def test_a_fact_is_told_by_its_form(text: str, kind: str, fact: str) -> None:
    assert (kind, fact) in _found(text)


@pytest.mark.parametrize(
    "text",
    [
        "we met last Tuesday",
        "and/or he/she/they",
        "Thanks! That is great. Yes.",
        "### Define Your Project Scope",
        "first do Step 2 then",
        "一点也不贵，十分好，万一呢",
        "a well-known trade-off",
    ],
)
def test_ordinary_words_are_no_facts(text: str) -> None:
    assert _found(text) == set()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("张伟说明天交稿", "张伟"),
        ("听李晓明也说过", "李晓明"),
        ("因为陈建国负责后端", "陈建国"),
        ("水电师傅姓白，下周来", "姓白"),
        ("她叫欧阳雪，住二楼", "欧阳雪"),
        ("我家猫名叫团子，三岁", "团子"),
        ("在杭州市开会", "杭州市"),
        ("下个月去京都玩", "京都"),
        ("住在解放路，离公司近", "解放路"),
    ],
)
def test_chinese_names_of_people_and_places_are_facts(text: str, name: str) -> None:
    assert ("name", name) in _found(text)


@pytest.mark.parametrize(
    "text",
    ["他很高兴说出来", "马上说", "方便说吗", "周末说好了", "谢谢推荐", "在网站上看", "哪家酒店好"],
)
def test_words_that_begin_like_a_chinese_name_are_no_names(text: str) -> None:
    assert [kind for kind, _ in _found(text) if kind == "name"] == []


def test_a_key_of_a_json_object_is_no_fact_but_its_value_is() -> None:
    assert _found('{"user_id": "mia_li_3668", "total": 1255}') == {("id", "mia_li_3668"), ("number", "1255")}


def test_a_date_inside_an_address_is_part_of_it() -> None:
    assert _found("https://a.example/2024-05-03/x") == {("url", "https://a.example/2024-05-03/x")}


def test_of_a_code_block_only_what_it_defines_and_names_outside_counts() -> None:
    block = "```python\ndef create_app(size=4096):\n    other_name('text')  # see /etc/app.conf\n```"
    assert _found(block) == {("code", "create_app"), ("path", "/etc/app.conf")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,000 km", "1000 km"),
        ("１０００元", "1000元"),
        ("一千元", "1000 元"),
        ("3.5万元", "￥35000"),
        ("12 May 2024", "2024-05-12"),
        ("May 12, 2024", "2024年5月12日"),
        ("四月七号", "4月7日"),
        ("3pm", "下午三点"),
        ("three years", "3 years"),
        ("百分之十五", "15%"),
        ("https://a.example/x/", "http://a.example/x"),
    ],
)
def test_two_spellings_are_one_fact(one: str, other: str) -> None:
    assert [fact.normal for fact in find_facts(one)] == [fact.normal for fact in find_facts(other)]


def test_large_numbers_that_differ_in_the_last_digit_differ() -> None:
    assert find_facts("12345678901234")[0].normal != find_facts("12345678901235")[0].normal


def test_what_a_summary_still_says_is_kept_in_whatever_spelling() -> None:
    facts = find_facts("on 3 May 2024 we paid 1,000 km to Jane Smith")
    assert [fact.text for fact in kept("Jane smith, 1000 km, 2024-05-03", facts)[1]] == []


def test_a_part_of_a_longer_number_or_word_does_not_keep_a_fact() -> None:
    facts = find_facts("15% of port 801 went to Anna")
    assert kept("150% of 9310 went to Annabelle", facts)[0] == []


def test_a_full_date_holds_the_day_and_the_month_it_names() -> None:
    facts = find_facts("5月3日") + find_facts("in May 2024")
    assert kept("by 2024-05-03", facts) == (facts, [])


def test_the_seq_of_a_line_keeps_no_fact() -> None:
    facts = find_facts("see #12")
    assert kept("- we looked at it [#12, 2024-05-03]", facts)[1] == facts


def test_a_fact_is_counted_once_however_often_it_is_said() -> None:
    sources = [user(1, "port 9310"), assistant(2, "9310 it is")]
    assert [fact.normal for fact in rank_facts(facts_of(sources), sources)] == ["9310"]


def test_arguments_of_calls_hold_facts() -> None:
    sources = [assistant(3, "", CallSketch(name="book", arguments='{"id": "JG7FMM"}'))]
    assert [(fact.text, fact.seq) for fact in facts_of(sources)] == [("JG7FMM", 3)]


def test_what_a_user_said_ranks_before_what_others_did() -> None:
    sources = [user(1, "it is 4711"), assistant(2, "I think 5822"), result(3, "t", "6933")]
    assert [fact.text for fact in rank_facts(facts_of(sources), sources)][:1] == ["4711"]


def test_of_equal_facts_the_rarer_and_the_newer_rank_first() -> None:
    sources = [user(1, "room 401"), user(2, "room 402"), user(3, "room 402"), user(4, "room 403")]
    assert [fact.text for fact in rank_facts(facts_of(sources), sources)] == ["403", "401", "402"]


def test_a_repeated_fact_points_to_where_a_user_said_it_last() -> None:
    sources = [user(1, "port 9310"), user(2, "port 9310"), assistant(3, "9310, yes")]
    assert [fact.seq for fact in rank_facts(facts_of(sources), sources)] == [2]


@given(texts())
def test_every_fact_stands_in_the_text(text: str) -> None:
    for fact in find_facts(text):
        assert fact.text in text
        assert fact.normal


@given(texts())
def test_a_text_keeps_all_its_own_facts(text: str) -> None:
    assert kept(text, find_facts(text))[1] == []


@given(spans())
def test_ranking_gives_every_fact_of_any_span_once_and_those_of_users_first(sources: list[Source]) -> None:
    facts = facts_of(sources)
    ranked = rank_facts(facts, sources)
    assert {fact.normal for fact in ranked} == {fact.normal for fact in facts}
    assert len(ranked) == len({fact.normal for fact in ranked})
    users = {source.seq for source in sources if source.role in ("user", "human")}
    said_by_user = [fact.seq in users for fact in ranked]
    assert said_by_user == sorted(said_by_user, reverse=True)

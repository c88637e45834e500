"""Facts are found by plain rules and compare in any spelling."""

from __future__ import annotations

import pytest
from hypothesis import given

from everthread.text.facts import find_facts
from tests.compaction.spans import texts


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


@given(texts())
def test_every_fact_stands_in_the_text(text: str) -> None:
    for fact in find_facts(text):
        assert fact.text in text
        assert fact.normal

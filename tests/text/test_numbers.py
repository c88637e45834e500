"""Numbers of a search: each is one term, found in every usual spelling, and never in another number."""

from __future__ import annotations

import pytest

from everthread.core.queries import Term
from everthread.history.search_query import has_term, parse_query
from everthread.recall.query import TermCounter, parse_question
from everthread.text.numbers import number_pattern, split_numbers
from everthread.text.words import fold, tokenize


def is_found(searched: str, text: str) -> bool:
    """Whether an index and the patterns together find a text, as every store does."""
    words, folded = frozenset(tokenize(text)), fold(text)
    return all(
        has_term(term, words) and (not term.pattern or number_pattern(term).search(folded) is not None)
        for term in parse_query(searched).terms
    )


@pytest.mark.parametrize(
    ("searched", "text"),
    [
        ("40000", "cost ¥40,000 total"),
        ("40000", "it is 40k"),
        ("40000", "预算4万块"),
        ("40000", "预算是四万元"),
        ("40000", "RMB 40,000.00!"),
        ("40,000", "40000元"),
        ("¥40,000", "a 40000 thing"),
        ("4万", "about 40,000"),
        ("4万块", "$40,000"),
        ("四万", "花了40000"),
        ("两千", "一共2000"),
        ("2000", "一共两千块"),
        ("1.2 million", "1,200,000 users"),
        ("1,200,000", "1.2M users"),
        ("120万", "1,200,000"),
        ("40k", "40 000 tokens"),
        ("3,124", "there were 3124 rows"),
        ("3,124", "there were 3,124."),
        ("12.50", "it was $12.50"),
        ("$12.50", "price 12.5 dollars"),
        ("13800138000", "call 138 0013 8000"),
        ("138-0013-8000", "13800138000"),
        ("+86 138 0013 8000", "电话13800138000,谢谢"),
        ("13800138000", "电话是+8613800138000"),
        ("5550107788", "(555) 010-7788"),
        ("(555) 010-7788", "555.010.7788"),
        ("555-010-7788", "+1 555 010 7788"),
        ("442079460958", "+44 20 7946 0958"),
        ("06 12 34 56 78", "0612345678"),
        ("0612345678", "06 12 34 56 78"),
        ("2024-05-03", "on May 3, 2024 we"),
        ("2024-05-03", "5月3日开会"),
        ("2024-05-03", "2024年5月3日"),
        ("May 3", "2024-05-03 is it"),
        ("May 3rd", "3 May"),
        ("5月3日", "May 3"),
        ("2024年5月3日", "2024/5/3"),
        ("3 May 2024", "05/03/2024"),
        ("v1.2.3", "upgrade to 1.2.3 now"),
        ("1.2.3", "v1.2.3"),
        ("version 1.2.3", "version v1.2.3-rc1"),
        ("3.11", "python 3.11"),
        ("ORD-10045", "order ord_10045 is late"),
        ("ORD-10045", "ORD 10045"),
        ("ord10045", "ORD-10045"),
        ("10045", "ORD-10045"),
        ("#10045", "ORD-10045"),
        ("INV-2024-0007", "see INV-2024-0007.pdf"),
        ("550e8400-e29b-41d4-a716-446655440000", "id 550E8400-E29B-41D4-A716-446655440000 ok"),
        ("covid19", "covid-19"),
        ("src/app2/main.py", "open /srv/a/src/app2/main.py:10"),
        ("10:30", "at 10:30 today"),
        ("2024", "in 2024.05.03 file"),
        ("2024", "2024-05-03"),
        ("2024", "2024年"),
        ("3", "1, 2, 3"),
        ("2", "1,2,3"),
        ("192.168.1.10", "ping 192.168.1.10 now"),
        ("gpt-4o-mini", "gpt4o-mini"),
        ("100万", "1000000"),
        ("1000000", "1 million"),
        ("2-week", "2 weeks"),
        ("0007", "id 0007"),
        ("3,124,567", "3124567"),
        ("6222 0212 3456 7890", "6222021234567890"),
        ("6222021234567890", "card 6222-0212-3456-7890"),
        ("12%", "12% of"),
        ("下午3点", "下午3点见"),
        ("第3章", "第3章"),
        ("file_2.py", "file_2.py"),
    ],
)
def test_a_number_is_found_in_every_usual_spelling(searched: str, text: str) -> None:
    assert is_found(searched, text)


@pytest.mark.parametrize(
    ("searched", "text"),
    [
        ("3,124", "there are 3,214"),
        ("3124", "3,214"),
        ("124", "3,124"),
        ("3", "3,214"),
        ("40000", "140,000"),
        ("40000", "400,000"),
        ("40,000", "40,0001"),
        ("40000", "4000"),
        ("40", "40,000"),
        ("40", "40k"),
        ("4", "4万"),
        ("1.2.3", "1.2.4"),
        ("v1.2.3", "1.2.31"),
        ("3.10", "3.1"),
        ("3.1", "3.14"),
        ("2024-05-03", "May 3, 2023"),
        ("2024-05-03", "2024-05-30"),
        ("May 3", "May 30"),
        ("ORD-10045", "ORD-10054"),
        ("13800138000", "13800138001"),
        ("10:30", "1030"),
    ],
)
def test_a_number_is_never_found_in_another(searched: str, text: str) -> None:
    assert not is_found(searched, text)


@pytest.mark.parametrize(
    "text", ["40000 ORD-7 May 3, 2024", "v1.2.3 十万 3.5k", "no number at all", "四川 一起 千万别忘 5 万"]
)
def test_what_stands_between_numbers_stays(text: str) -> None:
    folded = fold(text)
    kept = [part for part in split_numbers(folded) if isinstance(part, str)]
    at = 0
    for part in kept:
        at = folded.index(part, at) + len(part)
    assert "千万别忘" in "".join(kept) or "千万别忘" not in folded


def test_a_phrase_is_searched_as_it_is_written() -> None:
    assert not any(term.pattern for term in parse_query('"40,000 yuan"').terms)


def test_recall_counts_a_number_in_any_spelling_and_no_other() -> None:
    counter = TermCounter(parse_question("who paid 40000?").terms)
    numbers = [at for at, term in enumerate(parse_question("who paid 40000?").terms) if term.token == "40000"]
    assert [count for at, count in counter.count("he paid ¥40,000, then 4万 again").counts if at in numbers] == [2]
    assert [count for at, count in counter.count("he paid 40 and 000").counts if at in numbers] == []


@pytest.mark.parametrize(
    "text", ["1" * 2_000, "1-" * 1_000, "1," * 1_000, "a1." * 600, "(" * 2_000, "+1 " * 600, "十" * 900]
)
def test_any_text_is_parsed(text: str) -> None:
    assert all(isinstance(part, str | Term) for part in split_numbers(fold(text)))


@pytest.mark.parametrize(
    ("searched", "text"),
    [
        ("1200", "给物业转了一千二，是停车费"),
        ("一千二", "paid 1,200"),
        ("三万五", "a bonus of 35k"),
        ("35000", "年终奖发了三万五"),
        ("maxRetryCount", "max_retry_count was read too early"),
        ("maxRetryCount", "maxRetryCount = 3"),
        ("MaxRetryCount", "set max-retry-count"),
        ("HTTPServer", "the http_server module"),
        ("GitHub", "pushed to github"),
        ("McDonald", "at McDonald's"),
        ("iPhone", "a new iphone"),
    ],
)
def test_a_short_numeral_and_an_identifier_are_found_however_they_are_written(searched: str, text: str) -> None:
    assert is_found(searched, text)


@pytest.mark.parametrize(
    ("searched", "text"),
    [
        ("1200", "一千二百五十"),
        ("120", "一百二十五"),
        ("maxRetryCount", "the max of any retry count"),
        ("iPhone", "I saw his phone"),
    ],
)
def test_neither_is_found_in_another(searched: str, text: str) -> None:
    assert not is_found(searched, text)

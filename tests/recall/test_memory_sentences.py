"""What users say about themselves is remembered whole or not at all; the figures are in docs/benchmarks/context.md."""

from __future__ import annotations

from hashlib import sha256

import pytest

from benchmarks.memory_sentences import FOLDER, measure
from everthread.recall.memory_rules import extract_by_rules
from everthread.recall.memory_wording import in_own_words


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        ("我叫 Max，在深圳上班。", "用户的名字是Max。"),
        ("我更喜欢用 VS Code。", "用户喜欢用 VS Code。"),
        ("我对 penicillin 过敏，开药时注意。", "用户对penicillin过敏。"),
        ("My name is Max.", "The user's name is Max."),
        ("You can call me Dr. Marsh.", "The user wants to be called Marsh."),
        ("Please don't put the customer's name into the logs, ever.",
         "Please don't put the customer's name into the logs, ever"),
        ("I drive a 2019 Skoda Octavia.", 'The user said: "I drive a 2019 Skoda Octavia".'),
        ("I drive a 2019 Skoda Octavia, it won't start", 'The user said: "I drive a 2019 Skoda Octavia".'),
        ("My favourite painter is Paula Rego, anything like that?", "The user's favourite painter is Paula Rego."),
        ("no fish for us", 'The user said: "we never eat fish".'),
        ("医生一直让我少吃盐，你看着办", "用户说：“医生一直让我少吃盐，你看着办”。"),
    ],
)  # fmt: skip
def test_a_sentence_is_remembered_whole(said: str, remembered: str) -> None:
    assert remembered in [memory.text for memory in extract_by_rules(said)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sealed_sentences_are_remembered_as_published(language: str) -> None:
    row = measure("sealed", language)
    assert row["right %"] >= 92
    assert row["wrong %"] <= 2


@pytest.mark.parametrize(("language", "right"), [("en", 72), ("zh", 83)])
def test_sentences_in_other_styles_are_remembered_as_published(language: str, right: int) -> None:
    row = measure("styles_sealed", language)
    assert row["right %"] >= right
    assert row["wrong %"] <= 2


@pytest.mark.parametrize(("language", "right"), [("en", 72), ("zh", 82)])
def test_messy_sentences_are_remembered_as_published(language: str, right: int) -> None:
    row = measure("messy_sealed", language)
    assert row["right %"] >= right
    assert row["wrong %"] <= 8


@pytest.mark.parametrize(("language", "right"), [("en", 81), ("zh", 88)])
def test_everyday_sentences_are_remembered_as_published(language: str, right: int) -> None:
    row = measure("daily_sealed", language)
    assert row["right %"] >= right
    assert row["wrong %"] <= 5


@pytest.mark.parametrize(("language", "right"), [("en", 95), ("zh", 87)])
def test_what_is_taken_back_or_said_in_jest_is_remembered_as_published(language: str, right: int) -> None:
    row = measure("changed_sealed", language)
    assert row["right %"] >= right
    assert row["wrong %"] <= 5


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        ("I live in Lyon and tomorrow I'm going to the dentist at 3", ["The user lives in Lyon."]),
        ("I'm not vegan, let's have steak tonight", ["The user is not vegan."]),
        ("I'm coeliac btw, whats good for dinner 2nite?", ["The user is coeliac."]),
        ("Always answer in short bullet points, and fix my typos", ["Always answer in short bullet points"]),
        ("我叫小李，在腾讯上班，今晚加班", ["用户的名字是小李。", "用户在腾讯工作。"]),
        ("以后请用 English 回答我，顺便查下天气", ["以后请用 English 回答我"]),
        ("I live in Rome, right?", []),
        ("Tomorrow I fly to Rome, I hate flying", []),
    ],
)
def test_a_plan_or_a_request_in_the_same_sentence_is_not_remembered(said: str, remembered: list[str]) -> None:
    assert [memory.text for memory in extract_by_rules(said)] == remembered


def test_what_belongs_to_a_statement_is_not_cut_off() -> None:
    for said in ("I speak Polish, Czech and a bit of Welsh.", "My mother's name is Ingrid and she has dementia."):
        (memory,) = extract_by_rules(said)
        assert memory.text == f'The user said: "{said[:-1]}".'
    (name, *_) = extract_by_rules("My name is Max, nice to meet you.")
    assert name.text == "The user's name is Max."


def test_the_sealed_sentences_are_those_that_were_sealed() -> None:
    for line in (FOLDER / "sealed.sha256").read_text("utf-8").splitlines():
        sealed, name = line.split()
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == sealed


@pytest.mark.parametrize(
    ("said", "quoted"),
    [
        ("My father insists: add 玉龙雪山 on Oct 9.", 'The user said: "My father insists: add 玉龙雪山 on Oct 9".'),
        ("我们在 Berlin 租了房子。", "用户说：“我们在 Berlin 租了房子”。"),
    ],
)
def test_a_quotation_is_introduced_in_the_language_of_its_words(said: str, quoted: str) -> None:
    assert in_own_words(said) == quoted

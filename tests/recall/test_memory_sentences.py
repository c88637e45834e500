"""What users say about themselves is remembered whole or not at all; the figures are in docs/benchmarks/context.md."""

from __future__ import annotations

from hashlib import sha256

import pytest

from benchmarks.memory_sentences import FOLDER, measure
from everthread.recall.memory_rules import extract_by_rules


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
        ("I drive a 2019 Skoda Octavia.", "The user: I drive a 2019 Skoda Octavia."),
    ],
)  # fmt: skip
def test_a_sentence_is_remembered_whole(said: str, remembered: str) -> None:
    assert remembered in [memory.text for memory in extract_by_rules(said)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sealed_sentences_are_remembered_as_published(language: str) -> None:
    row = measure("sealed", language)
    assert row["right %"] >= 92
    assert row["wrong %"] <= 2


def test_the_sealed_sentences_are_those_that_were_sealed() -> None:
    sealed, name = (FOLDER / "sealed.sha256").read_text("utf-8").split()
    assert sha256((FOLDER / name).read_bytes()).hexdigest() == sealed

"""What a model's summary says and its sources do not is struck, and the record says which sentence and why."""

from __future__ import annotations

import pytest

from benchmarks import summary_truth
from everthread.compaction.claims import check_claims
from everthread.compaction.fact_ranking import facts_of_sources
from everthread.compaction.gate import Accepted, Rejected, check_summary
from everthread.compaction.policy import CompactionPolicy
from everthread.compaction.sources import Source
from everthread.compaction.summarise import CheckedSummary, summarise
from everthread.context.tokens import count_tokens
from tests.compaction.spans import assistant, user

TRIP = [
    user(11, "Anna is allergic to peanuts. We fly on 12 May with LH1204, for €1,250 in all."),
    assistant(12, "Noted. Which hotel do you want in Lisbon?"),
    user(13, "Hotel Avenida. We do not need breakfast. Ben pays, he can't stand mushrooms."),
]
旅行 = [
    user(21, "王敏对花生过敏。我们5月12日坐 MU5718 出发，一共12,500元。"),
    assistant(22, "好的，昆明住哪家酒店？"),
    user(23, "翠湖宾馆，不要早餐。李强付钱，他受不了蘑菇。"),
]


def _reasons(sentence: str, sources: list[Source]) -> list[str]:
    return [one.reason for one in check_claims(f"- {sentence}", sources).struck]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The flight is LH1304. [#11]", "id"),
        ("The trip costs €1,350. [#11]", "number"),
        ("They leave on 19 May. [#11]", "date"),
        ("Ben has a peanut allergy. [#11]", "person"),
        ("They need breakfast. [#13]", "negation"),
        ("Contact is Marcus Webb. [#13]", "name"),
        ("They stay at Hotel Avenida. [#240]", "citation"),
        ("They stay at Hotel Avenida. [#11–#240]", "citation"),
    ],
)
def test_what_nobody_said_is_struck_with_its_reason(sentence: str, reason: str) -> None:
    assert _reasons(sentence, TRIP) == [reason]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("航班是 MU5719。[#21]", "id"),
        ("总共 12600 元。[#21]", "number"),
        ("5月19日出发。[#21]", "date"),
        ("李强对花生过敏。[#21]", "person"),
        ("要早餐。[#23]", "negation"),
        ("住在翠湖宾馆。[#99]", "citation"),
    ],
)
def test_what_nobody_said_is_struck_in_chinese(sentence: str, reason: str) -> None:
    assert _reasons(sentence, 旅行) == [reason]


@pytest.mark.parametrize(
    "sentence",
    [
        "Departure: May 12th, flight LH1204, 1250 euros together. [#11]",
        "Anna must not eat peanuts because of an allergy. [#11]",
        "Ben dislikes mushrooms and covers the bill. [#13]",
        "They chose the Hotel Avenida, without breakfast. [#12–#13]",
    ],
)
def test_what_was_said_may_stand_in_other_words_and_spellings(sentence: str) -> None:
    assert _reasons(sentence, TRIP) == []


@pytest.mark.parametrize(
    "sentence",
    ["五月十二日出发，航班 ＭＵ５７１８，共 12500 元。[#21]", "王敏不能吃花生（过敏）。[#21]", "李强不喜欢蘑菇。[#23]"],
)
def test_what_was_said_in_chinese_may_stand_in_other_words(sentence: str) -> None:
    assert _reasons(sentence, 旅行) == []


def test_only_the_sentence_goes_and_the_rest_stays_with_its_head() -> None:
    told = (
        "## Facts\n- Anna is allergic to peanuts. Tickets cost €9,999. [#11]\n## Decisions\n- They fly on 13 May. [#11]"
    )
    checked = check_claims(told, TRIP)
    assert checked.text == "## Facts\n- Anna is allergic to peanuts. [#11]"
    assert [one.reason for one in checked.struck] == ["number", "date"]


def _judged(summary: str) -> Accepted | Rejected:
    return check_summary(
        summary,
        TRIP,
        facts_of_sources(TRIP),
        count_tokens=count_tokens,
        source_tokens=1_000,
        max_tokens=400,
        by_model=True,
    )


def test_a_summary_that_is_mostly_invented_is_refused() -> None:
    judged = _judged("- The price is €2,000. [#11]\n- The flight is BA77. [#11]\n- Ben pays. [#13]")
    assert isinstance(judged, Rejected)
    assert judged.reason == "untrue"
    assert "2,000" in judged.detail


class Invents:
    name = "invents"

    async def summarise(self, text: str, *, kind: str, max_tokens: int, is_terse: bool) -> str:
        return "- Anna is allergic to peanuts. [#11]\n- Ben pays for it. [#13]\n- The flight is QF9999. [#11]"


async def test_the_record_of_a_summary_says_what_was_struck() -> None:
    made = await summarise(TRIP, 1_000, CompactionPolicy(), model=Invents())
    assert isinstance(made, CheckedSummary)
    assert made.model == "invents"
    assert "QF9999" not in made.text
    assert made.struck == ("id QF9999: The flight is QF9999. [#11]",)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_planted_lies_are_caught_and_true_sentences_stand(language: str) -> None:
    """On the conversations that were not looked at while the rules were written; the figures are in the docs."""
    row = summary_truth.measure(language, seed=26, tagged=True, held_back=True, show=False)
    assert row["lies"] >= 130
    assert row["digit %"] == row["date %"] == row["citation %"] == 100
    assert row["caught %"] >= 90
    assert row["struck %"] < 4

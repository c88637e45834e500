"""Which lines a summary gets: within the room, nothing said twice, facts and what is wanted first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from everthread.compaction.selection import (
    LEAST_FOR_MESSAGE,
    POOL_SIZE,
    UNDIVIDED_TOKENS,
    CandidateLine,
    select_candidates,
)
from everthread.compaction.summary_format import Section

SECTIONS: list[Section] = ["goal", "decisions", "facts", "open", "tools"]
WORDS = ["ship", "rail", "depot", "budget", "launch", "invoice", "cat", "Lisbon"]


def words(text: str) -> int:
    return len(text.split())


def line(
    text: str,
    seq: int = 1,
    *,
    section: Section = "facts",
    weight: float = 1.0,
    index: int = 0,
    facts: Mapping[str, float] | None = None,
) -> CandidateLine:
    return CandidateLine(
        section=section,
        text=text,
        speaker="user",
        first_seq=seq,
        last_seq=seq,
        index=index,
        weight=weight,
        facts=facts or {},
        terms=frozenset(text.split()),
    )


def select(*lines: CandidateLine, room: int = 1_000, first: Sequence[CandidateLine] = ()) -> list[str]:
    chosen = select_candidates(lines, room_tokens=room, shares={}, first=first, count_tokens=words)
    return [one.text for one in chosen]


candidates = st.lists(
    st.builds(
        line,
        text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join),
        seq=st.integers(1, 6),
        section=st.sampled_from(SECTIONS),
        weight=st.floats(0, 3),
        index=st.integers(0, 5),
    ),
    max_size=30,
)


@given(candidates, st.integers(0, 120), st.floats(0.05, 1), st.floats(0.05, 1))
def test_words_stay_within_the_room_and_within_every_share_of_it(
    lines: list[CandidateLine], room: int, section_share: float, message_share: float
) -> None:
    chosen = select_candidates(
        lines,
        room_tokens=room,
        shares=dict.fromkeys(SECTIONS, section_share),
        message_share=message_share,
        count_tokens=words,
    )
    by_section: Counter[str] = Counter()
    by_message: Counter[int] = Counter()
    for one in chosen:
        by_section[one.section] += words(one.text)
        by_message[one.last_seq] += words(one.text)
    assert by_section.total() <= room
    assert room <= UNDIVIDED_TOKENS or all(used <= section_share * room for used in by_section.values())
    assert all(used <= max(message_share * room, min(room, LEAST_FOR_MESSAGE)) for used in by_message.values())


@given(candidates, st.integers(0, 120))
def test_each_is_chosen_once_from_those_given_and_always_the_same_way(lines: list[CandidateLine], room: int) -> None:
    chosen = select_candidates(lines, room_tokens=room, shares={}, count_tokens=words)
    assert Counter(map(id, chosen)) <= Counter(map(id, lines))
    assert chosen == select_candidates(lines, room_tokens=room, shares={}, count_tokens=words)


def test_the_weightier_line_comes_first() -> None:
    assert select(line("the cat", 1, weight=0.5), line("the budget", 2, weight=2.0)) == ["the budget", "the cat"]


def test_of_equal_worth_the_shorter_line_comes_first() -> None:
    long = line("rail depot budget launch invoice Lisbon ship cat", 1)
    assert select(long, line("ten euro", 2))[0] == "ten euro"


def test_what_was_said_already_is_not_said_again_unless_it_adds_a_fact() -> None:
    said = line("we ship by rail from the depot", 1, weight=2.0)
    again = line("we ship by rail from the depot", 2)
    assert select(said, again) == [said.text]
    assert select(said, replace(again, facts={"4711": 1.0})) == [said.text, again.text]


def test_a_fact_counts_for_the_first_line_that_holds_it_only() -> None:
    holds = line("invoice 4711 is paid", 1, weight=0.3, facts={"4711": 2.0})
    repeats = line("who owes us 4711", 2, weight=0.2, facts={"4711": 2.0})
    other = line("launch in Lisbon", 3, weight=0.8)
    assert select(holds, repeats, other) == [holds.text, other.text, repeats.text]


def test_what_is_wanted_first_is_taken_before_weightier_lines_and_left_out_where_it_does_not_fit() -> None:
    goal = line("plan the launch", 1, section="goal", weight=0.4)
    rest = line("budget is ten euro", 2, weight=3.0)
    assert select(goal, rest, first=[goal]) == [goal.text, rest.text]
    long_goal = line("plan " * 40, 1, section="goal", weight=0.4)
    assert select(long_goal, rest, room=20, first=[long_goal]) == [rest.text]


def test_a_line_that_is_worth_nearly_nothing_is_left_out_of_an_empty_room() -> None:
    assert select(line("well yes", weight=0.1)) == []
    assert select(line("well yes", weight=0.1, facts={"4711": 0.2})) == ["well yes"]


def test_pieces_of_one_line_share_what_the_line_costs() -> None:
    pieces = [line("ship by rail", 1, index=0), line("launch in May", 1, index=1)]
    apart = [line("ship by rail", 1), line("launch in May", 2)]
    assert len(select(*pieces, room=16)) == 2
    assert len(select(*apart, room=16)) == 1


def test_only_the_best_of_very_many_are_compared() -> None:
    lines = [line(f"word{number}", number, weight=1 + number / 1_000) for number in range(1, POOL_SIZE + 51)]
    chosen = select(*lines, room=100_000)
    assert len(chosen) == POOL_SIZE
    assert "word1" not in chosen

"""A row of summaries begins with the first message and has no hole; what is full is condensed, oldest first."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from everthread.compaction.summary_chain import (
    choose_to_condense,
    expand_to_level,
    gap_end,
    summary_chain,
)
from everthread.core.compactions import Compaction
from everthread.core.log import Segment

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PATH = [Segment(0, 0, 1_000)]


def leaf(first: int, last: int, *, branch: int = 0, level: int = 1, children: tuple[str, ...] = ()) -> Compaction:
    return Compaction(
        id=f"{branch}/{first}-{last}/{level}", level=level, first_seq=first, last_seq=last, after_seq=first - 1,
        branch=branch, span_hash=f"{first}-{last}", children=children, summary=f"{first} to {last}", strategy="x",
        model=None, trigger="manual", original_count=9, new_count=3, tokens_before=900, tokens_after=100,
        facts_total=1, facts_kept=1, seconds=0.1, created_at=NOW,
    )  # fmt: skip


def over(*children: Compaction) -> Compaction:
    ids = tuple(child.id for child in children)
    return leaf(children[0].first_seq, children[-1].last_seq, level=children[0].level + 1, children=ids)


A, B, C, D = leaf(1, 10), leaf(11, 20), leaf(21, 30), leaf(31, 40)


def test_the_row_goes_as_far_as_there_is_no_hole() -> None:
    assert summary_chain([A, B, D], PATH) == [A, B]
    assert summary_chain([B, C], PATH) == []
    assert summary_chain([D, C, B, A], PATH) == [A, B, C, D]


def test_the_undone_and_the_invalid_are_not_in_it() -> None:
    assert summary_chain([A, replace(B, undone_at=NOW), C], PATH) == [A]
    assert summary_chain([A, B, replace(C, invalid_at=NOW)], PATH) == [A, B]


def test_a_parent_stands_in_the_place_of_its_children() -> None:
    parent = over(A, B)
    assert summary_chain([A, B, C, parent], PATH) == [parent, C]
    assert summary_chain([A, B, C, replace(parent, undone_at=NOW)], PATH) == [A, B, C]
    known = {one.id: one for one in (A, B, C, parent)}
    assert expand_to_level([parent, C], known, 1) == [A, B, C]
    assert expand_to_level([parent, C], known, 2) == [parent, C]


def test_a_branch_uses_a_summary_only_if_it_has_all_of_its_messages() -> None:
    other = leaf(21, 50, branch=1)
    assert summary_chain([A, B, other], [Segment(0, 0, 25), Segment(1, 25, 60)]) == [A, B, other]
    assert summary_chain([A, B, C], [Segment(0, 0, 25), Segment(1, 25, 60)]) == [A, B]
    assert summary_chain([A, B, other], PATH) == [A, B]


def test_only_neighbours_of_one_level_are_condensed_the_lowest_first() -> None:
    assert choose_to_condense([A, B], 2) == []
    assert choose_to_condense([A, B, C], 2) == [A, B]
    high = leaf(1, 10, level=2)
    assert choose_to_condense([high, B, C, D], 2) == [B, C]
    apart = [A, leaf(11, 20, level=2), C, leaf(31, 40, level=2), leaf(41, 50)]
    assert choose_to_condense(apart, 2) == []


def test_summaries_resume_after_a_stretch_that_lost_its_own() -> None:
    assert gap_end([A, C, D], PATH, covered=10) == 20
    assert gap_end([A, B], PATH, covered=20) is None
    assert gap_end([A, replace(C, invalid_at=NOW), D], PATH, covered=10) == 30

"""Paths: the stretches of any tree of branches give the messages from the first one to the leaf."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everthread.core.log import BranchRow, Segment
from everthread.core.paths import segments, within
from everthread.core.ports import PathQuery

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 99), st.integers(1, 3)), max_size=30)
"""Each step forks somewhere or not, then appends a few messages to some branch."""


def branch(number: int, parent: int | None, at: int) -> BranchRow:
    return BranchRow(number=number, parent=parent, fork_seq=at, leaf_seq=at, leaf_depth=0, created_at=0)


def grown(steps: list[tuple[bool, int, int]]) -> tuple[dict[int, BranchRow], dict[int, int], dict[int, list[int]]]:
    """Branch rows, the branch that each seq was written to, and each branch's path written out in full."""
    rows = {0: branch(0, None, 0)}
    paths: dict[int, list[int]] = {0: []}
    home: dict[int, int] = {}
    for forks, where, count in steps:
        number = where % len(rows)
        if forks:
            at = where % (len(home) + 1)
            number, parent = len(rows), home.get(at)
            rows[number] = branch(number, parent, at)
            paths[number] = [seq for seq in paths[parent] if seq <= at] if parent is not None else []
        for _ in range(count):
            seq = len(home) + 1
            home[seq] = number
            paths[number].append(seq)
            rows[number] = rows[number]._replace(leaf_seq=seq)
    return rows, home, paths


def read(home: dict[int, int], stretches: list[Segment]) -> list[int]:
    return [
        seq
        for stretch in stretches
        for seq in range(stretch.after + 1, stretch.last + 1)
        if home.get(seq) == stretch.branch
    ]


@given(STEPS)
def test_stretches_are_the_path_of_any_nested_branch(steps: list[tuple[bool, int, int]]) -> None:
    rows, home, paths = grown(steps)
    for number, path in paths.items():
        assert read(home, segments(rows, number)) == path


@given(STEPS, st.integers(0, 99))
def test_a_path_can_be_cut_short_at_any_of_its_messages(steps: list[tuple[bool, int, int]], place: int) -> None:
    rows, home, paths = grown(steps)
    for number, path in paths.items():
        own = [seq for seq in path if home[seq] == number]
        if own:
            last = own[place % len(own)]
            assert read(home, segments(rows, number, last)) == [seq for seq in path if seq <= last]


@given(STEPS, st.integers(0, 40), st.none() | st.integers(0, 40))
def test_a_query_narrows_every_stretch(steps: list[tuple[bool, int, int]], after: int, before: int | None) -> None:
    rows, home, paths = grown(steps)
    query = PathQuery(after=after, before=before)
    for number, path in paths.items():
        narrowed = [within(stretch, query) for stretch in segments(rows, number)]
        assert read(home, narrowed) == [seq for seq in path if seq > after and (before is None or seq < before)]


@given(STEPS)
def test_no_message_is_read_twice(steps: list[tuple[bool, int, int]]) -> None:
    rows, home, _ = grown(steps)
    for number in rows:
        seqs = read(home, segments(rows, number))
        assert seqs == sorted(set(seqs))

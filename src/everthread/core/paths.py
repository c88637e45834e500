"""A path through a conversation, as stretches of the log that a store can read one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from everthread.core.compactions import Compaction
from everthread.core.entries import Entry
from everthread.core.errors import NotFound
from everthread.core.log import BranchName, BranchRow, LogHead, Segment, named_branches
from everthread.core.ports import PathQuery


def segments(branches: Mapping[int, BranchRow], number: int, last: int | None = None) -> list[Segment]:
    """The path of a branch as stretches, oldest first. `last` cuts it short."""
    found: list[Segment] = []
    row: BranchRow | None = branches[number]
    end = branches[number].leaf_seq if last is None else last
    while row is not None:
        if end > row.fork_seq:
            found.append(Segment(row.number, row.fork_seq, end))
            end = row.fork_seq
        row = branches[row.parent] if row.parent is not None and end > 0 else None
    return found[::-1]


def path_segments(
    branches: Mapping[int, BranchRow], head: LogHead, name: BranchName, named: Sequence[Entry]
) -> list[Segment]:
    """The stretches of the path a caller means. `named` holds the entry at a seq given as a name."""
    if name is None:
        return segments(branches, head.active)
    if isinstance(name, str):
        for row in branches.values():
            if row.id == name:
                return segments(branches, row.number)
        raise NotFound(f"no branch {name!r} in conversation {head.id!r}; there are {named_branches(branches.values())}")
    if name == 0:
        return []
    if not named or not named[0].is_place:
        raise NotFound(f"no message with seq {name} in conversation {head.id!r}")
    return segments(branches, named[0].branch, last=name)


def is_on(path: Sequence[Segment], branch: int, seq: int) -> bool:
    """Whether a path has this message of this branch: asked of hundreds for a question, so a plain loop."""
    for stretch in path:  # noqa: SIM110
        if stretch.branch == branch and stretch.after < seq <= stretch.last:
            return True
    return False


def holds(branches: Mapping[int, BranchRow], compaction: Compaction, place: Entry) -> bool:
    """Whether a message is in the stretch that a compaction stands for: between its ends, and on its path."""
    if not compaction.after_seq < place.seq <= compaction.last_seq:
        return False
    return is_on(segments(branches, compaction.branch, last=compaction.last_seq), place.branch, place.seq)


def path_depth(branches: Mapping[int, BranchRow], head: LogHead, name: BranchName, named: Sequence[Entry]) -> int:
    """How many messages the path a caller means has, deleted ones counted; the path exists."""
    if isinstance(name, int):
        return named[0].depth if named else 0
    row = branches[head.active] if name is None else next(row for row in branches.values() if row.id == name)
    return row.leaf_depth


def within(stretch: Segment, query: PathQuery) -> Segment:
    """The part of a stretch that a query asks for."""
    last = stretch.last if query.before is None else min(stretch.last, query.before - 1)
    return stretch._replace(after=max(stretch.after, query.after), last=last)

"""Which compactions a path shows: the chain of summaries from its first message on, without hole or overlap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from everthread.core.compactions import Compaction
from everthread.core.log import Segment
from everthread.core.paths import is_on


def on_path(compactions: Iterable[Compaction], path: Sequence[Segment]) -> list[Compaction]:
    """The live ones whose whole stretch lies on this path: it does when the last message does, because a message's
    ancestors are the same on every path that has it."""
    return [one for one in compactions if one.is_live and is_on(path, one.branch, one.last_seq)]


def summary_chain(compactions: Iterable[Compaction], path: Sequence[Segment]) -> list[Compaction]:
    """The highest of them, oldest first, as far as they follow each other without a hole."""
    valid = on_path(compactions, path)
    condensed = {child for compaction in valid for child in compaction.children}
    by_start: dict[int, list[Compaction]] = {}
    for compaction in valid:
        if compaction.id not in condensed:
            by_start.setdefault(compaction.after_seq, []).append(compaction)
    summaries: list[Compaction] = []
    end = 0
    while candidates := by_start.get(end):
        summaries.append(max(candidates, key=lambda compaction: (compaction.level, compaction.last_seq)))
        end = summaries[-1].last_seq
    return summaries


def expand_to_level(summaries: Sequence[Compaction], known: Mapping[str, Compaction], level: int) -> list[Compaction]:
    """The same stretch in more detail: each summary above the level replaced by those it was made from, as far as
    they are known."""
    told: list[Compaction] = []
    for compaction in summaries:
        below = [known[child] for child in compaction.children if child in known]
        told += below if compaction.level > level and below else [compaction]
    return told


def choose_to_condense(summaries: Sequence[Compaction], fan_in: int) -> list[Compaction]:
    """The oldest of the lowest level that has more than `fan_in` neighbours in a row; else none."""
    runs = [list(run) for _, run in groupby(summaries, key=lambda compaction: compaction.level)]
    full = [run for run in runs if len(run) > fan_in]
    return min(full, key=lambda run: run[0].level)[:fan_in] if full else []


def gap_end(compactions: Iterable[Compaction], path: Sequence[Segment], covered: int) -> int | None:
    """Where summaries go on after a stretch that lost its own (a message in it was changed): the seq of the last
    message of that stretch. None when there are none further on."""
    return min((one.after_seq for one in on_path(compactions, path) if one.after_seq > covered), default=None)

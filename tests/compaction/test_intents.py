"""Keeping and undoing compactions decide on what the store shows them under its lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from everthread.compaction.intents import KeepCompaction, UndoCompaction
from everthread.core.compactions import Compaction
from everthread.core.entries import Entry, Flag, Kind, Mark, Revision
from everthread.core.errors import Conflict, Erased, NotFound
from everthread.core.log import IntentInputs, LogHead
from tests.compaction.test_summary_chain import NOW, PATH, A, B, C, leaf, over


def seen(
    known: Sequence[Compaction], since: Sequence[Entry] = (), *, entries: Sequence[Entry] = (), is_erased: bool = False
) -> IntentInputs:
    head = LogHead("local", "c", 100, b"", 0, is_erased, False)
    by_seq = {entry.seq: entry for entry in entries}
    return IntentInputs(head=head, branches={}, by_id={}, by_seq=by_seq, answer=None, compactions=known, since=since)


def entry(kind: Kind, change_kind: int | None, revises: int | None, flags: int = 0) -> Entry:
    return Entry(
        90, "m", kind, "user", revises, change_kind, 1, None, 0, 1, 0, 1, b"", b"", b"{}", None, None, flags, None
    )


def keep(new: Compaction) -> KeepCompaction:
    return KeepCompaction(compaction=new, path=PATH, read_at=80, entries=[90])


def undo(id: str) -> UndoCompaction:
    return UndoCompaction(id=id, stretch=(0, 1_000))


def test_a_compaction_that_follows_the_row_is_kept() -> None:
    decision = keep(B).decide(seen([A]), 5)
    assert decision.result[1]
    assert [one.id for one in decision.compactions] == [B.id]
    assert decision.entries == ()


def test_the_same_span_again_is_nothing_new() -> None:
    decision = keep(replace(B, id="again")).decide(seen([A, B]), 5)
    assert decision.result == (B, False)
    assert decision.compactions == ()


@pytest.mark.parametrize("known", [[], [A, leaf(11, 15)], [A, B, C]], ids=["a hole", "an overlap", "behind"])
def test_what_does_not_follow_the_row_is_refused(known: list[Compaction]) -> None:
    with pytest.raises(Conflict):
        keep(leaf(11, 22)).decide(seen(known), 5)


@pytest.mark.parametrize(
    ("change", "is_refused"),
    [
        (entry(Kind.MESSAGE, Revision.REPLACE, 12), True),
        (entry(Kind.MARK, Mark.DELETED, 12), True),
        (entry(Kind.MARK, Mark.RESTORED, 12), True),
        (entry(Kind.MARK, Mark.PINNED, 12), False),
        (entry(Kind.MESSAGE, Revision.EDIT, 12), False),
        (entry(Kind.MESSAGE, Revision.STUB, 12), False),
        (entry(Kind.MESSAGE, Revision.REPLACE, 5), False),
        (entry(Kind.MESSAGE, None, None), False),
    ],
)
def test_what_changed_inside_in_the_meantime_decides(change: Entry, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(Conflict, match="changed while"):
            keep(B).decide(seen([A], [change]), 5)
    else:
        assert keep(B).decide(seen([A], [change]), 5).result[1]


def test_nothing_is_kept_of_what_was_erased_in_the_meantime() -> None:
    with pytest.raises(Conflict):
        keep(B).decide(seen([A], entries=[entry(Kind.MESSAGE, None, None, Flag.ERASED)]), 5)
    with pytest.raises(Erased):
        keep(B).decide(seen([A], is_erased=True), 5)


def test_summaries_that_were_cut_off_retire_when_others_stand_for_their_messages() -> None:
    decision = keep(leaf(1, 25)).decide(seen([B, C]), 5)
    assert [(one.id, one.is_live) for one in decision.compactions] == [
        (B.id, False),
        (C.id, False),
        (leaf(1, 25).id, True),
    ]


def test_undoing_goes_from_the_top_and_from_the_end() -> None:
    parent = over(A, B)
    known = [A, B, C, parent]
    for id, why in ((A.id, "part of"), (B.id, "part of")):
        with pytest.raises(Conflict, match=why):
            undo(id).decide(seen(known), 5)
    with pytest.raises(Conflict, match="follows"):
        undo(A.id).decide(seen([A, B]), 5)
    for id in (parent.id, C.id):
        assert undo(id).decide(seen(known), 5).result.undone_at is not None
    with pytest.raises(NotFound):
        undo("nothing").decide(seen(known), 5)


def test_undoing_again_changes_nothing() -> None:
    undone = replace(B, undone_at=NOW)
    decision = undo(B.id).decide(seen([A, undone]), 5)
    assert (decision.result, decision.compactions) == (undone, ())

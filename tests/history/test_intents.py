"""Intents as pure decisions: whatever is written in whatever order, the chain links and the branches hold."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.core import chain
from everthread.core.entries import Entry, Flag, Kind, Mark, Revision
from everthread.core.errors import Conflict, Erased, HeadMoved, Invalid, KeyReused, NotFound
from everthread.core.paths import segments
from everthread.history.intents import Append, CopyLog, Edit, Fork, MarkMessage, SetActive, as_sibling
from tests.history.fake_log import FakeLog, prepared

NUMBERS = st.integers(0, 10_000)
STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "replace", "edit", "mark", "fork", "switch", "at"]), NUMBERS, NUMBERS),
    max_size=25,
)


def written(steps: list[tuple[str, int, int]]) -> FakeLog:
    """A log after these steps; each number picks a message, a branch or a mark from those there are."""
    log = FakeLog()
    log.write(Append(messages=[prepared("first", "m0")]))
    for verb, one, other in steps:
        target = log.places()[one % len(log.places())]
        branch = sorted(log.branches)[other % len(log.branches)]
        if verb == "append":
            batch = [prepared(f"said {n}") for n in range(1 + one % 3)]
            log.write(Append(messages=batch, branch=log.branches[branch].id))
        elif verb == "at":
            log.write(Append(messages=[prepared("here")], branch=target.seq))
        elif verb == "replace":
            log.write(Append(messages=[prepared(f"revised {other}", target.id), prepared("and more")]))
        elif verb == "edit":
            log.write(Edit(target=target.id, message=prepared(f"edited {other}"), activate=bool(other % 2)))
        elif verb == "mark":
            log.write(MarkMessage(target=target.id, mark=list(Mark)[other % 4]))
        elif verb == "fork":
            log.write(Fork(at_seq=target.seq if other % 5 else 0, activate=bool(other % 2)))
        else:
            log.write(SetActive(branch=log.branches[branch].id))
    return log


def relinked(entries: list[Entry]) -> bytes:
    link = chain.genesis("local", "c")
    for entry in entries:
        commitment = chain.commitment_of(entry)
        assert commitment is not None
        link = chain.relink(link, entry, commitment)
        assert link == entry.chain
    return link


@settings(deadline=None)
@given(STEPS)
def test_the_chain_of_any_sequence_of_decisions_verifies(steps: list[tuple[str, int, int]]) -> None:
    log = written(steps)
    assert [entry.seq for entry in log.entries] == list(range(1, len(log.entries) + 1))
    assert relinked(log.entries) == log.chain


@settings(deadline=None)
@given(STEPS)
def test_the_stretches_of_any_branch_follow_the_parents_of_its_leaf(steps: list[tuple[str, int, int]]) -> None:
    log = written(steps)
    own = {place.seq: place for place in log.places()}
    for number, row in log.branches.items():
        path = [
            seq
            for stretch in segments(log.branches, number)
            for seq in range(stretch.after + 1, stretch.last + 1)
            if seq in own and own[seq].branch == stretch.branch
        ]
        assert path == log.parents(row.leaf_seq)
        assert row.leaf_depth == len(path)
        assert [own[seq].depth for seq in path] == list(range(1, len(path) + 1))


@settings(deadline=None)
@given(STEPS)
def test_rows_repeat_what_the_log_says(steps: list[tuple[str, int, int]]) -> None:
    log = written(steps)
    for place in log.places():
        revisions = [
            e
            for e in log.entries
            if e.change_kind == Revision.REPLACE and e.kind != Kind.MARK and e.revises == place.seq
        ]
        assert place.newest_seq == (revisions[-1].seq if revisions else None)
        expected = Flag.NONE
        for entry in log.entries:
            if entry.kind == Kind.MARK and entry.revises == place.seq:
                expected = {
                    Mark.DELETED: expected | Flag.DELETED,
                    Mark.RESTORED: expected & ~Flag.DELETED,
                    Mark.PINNED: expected | Flag.PINNED,
                    Mark.UNPINNED: expected & ~Flag.PINNED,
                }[Mark(entry.change_kind or 0)]
        assert place.flags == expected
        if revisions:
            assert revisions[-1].flags == expected
        numbers = [place.revision, *(revision.revision for revision in revisions)]
        assert numbers == list(range(place.revision, place.revision + len(numbers)))


@settings(deadline=None)
@given(STEPS, NUMBERS)
def test_a_copy_of_any_log_has_the_same_paths_and_a_chain_of_its_own(
    steps: list[tuple[str, int, int]], erased: int
) -> None:
    log = written(steps)
    ids = sorted({place.id for place in log.places()})
    for id in ids[:: 2 + erased % 5]:
        log.erase(id)
    copy = FakeLog()
    rows = [log.branches[number] for number in sorted(log.branches)]
    copy.write(CopyLog(entries=log.entries, branches=rows, active=log.active))
    assert relinked(copy.entries) == copy.chain
    assert not any(entry.raw is None for entry in copy.entries)
    for number in log.branches:
        assert [copy.entries[seq - 1].id for seq in copy.parents(copy.branches[number].leaf_seq)] == [
            log.entries[seq - 1].id
            for seq in log.parents(log.branches[number].leaf_seq)
            if log.entries[seq - 1].raw is not None
        ]
    known = {place.seq for place in copy.places()}
    assert all(entry.revises in known for entry in copy.entries if entry.kind == Kind.MARK)
    assert not {entry.salt for entry in copy.entries} & {entry.salt for entry in log.entries if entry.salt}


def test_a_decision_changes_nothing_it_was_shown() -> None:
    log = written([("append", 2, 0), ("edit", 1, 1)])
    before = (list(log.entries), dict(log.branches), log.chain)
    intent = Append(messages=[prepared("x"), prepared("revised", "m0")])
    seen = log.seen(intent)
    first, second = intent.decide(seen, 9), intent.decide(seen, 9)
    assert (list(log.entries), dict(log.branches), log.chain) == before
    assert first.chain != second.chain, "each has salts of its own"
    assert [entry._replace(salt=None, chain=b"") for entry in first.entries] == [
        entry._replace(salt=None, chain=b"") for entry in second.entries
    ]


def test_salts_are_never_used_twice() -> None:
    log = written([("append", number, 0) for number in range(20)])
    salts = [entry.salt for entry in log.entries]
    assert all(salt is not None and len(salt) == chain.SALT_BYTES for salt in salts)
    assert len(set(salts)) == len(salts)


def test_needs_name_only_what_the_caller_named() -> None:
    intent = Append(messages=[prepared("made"), prepared("given", "m1")], idempotency_key="k")
    needs = intent.needs()
    assert list(needs.ids) == ["m1"]
    assert (list(needs.seqs), needs.every_branch, needs.idempotency_key) == ([], False, "k")
    needs = Append(messages=[], branch=7).needs()
    assert (list(needs.seqs), needs.every_branch) == ([7], True)


def test_what_changes_nothing_writes_nothing() -> None:
    log = written([])
    for intent in (
        Append(messages=[prepared("first", "m0")], expected_head=99),
        MarkMessage(target="m0", mark=Mark.RESTORED),
        MarkMessage(target="m0", mark=Mark.UNPINNED),
    ):
        decision = intent.decide(log.seen(intent), 2)
        assert (list(decision.entries), list(decision.touches), list(decision.branches)) == ([], [], [])
        assert (decision.chain, decision.active) == (None, None)


def test_a_key_keeps_its_receipts_and_no_text() -> None:
    log = FakeLog()
    receipts = log.write(Append(messages=[prepared("secret")], idempotency_key="k"))
    answer = log.answers["k"]
    assert b"secret" not in answer.body + answer.receipts
    assert log.write(Append(messages=[prepared("secret")], idempotency_key="k")) == receipts
    with pytest.raises(KeyReused):
        log.write(Append(messages=[prepared("other")], idempotency_key="k"))
    assert answer.tells_of(receipts[0].id)
    assert not answer.tells_of("another")
    log.answers["k"] = answer.blanked()
    assert not log.answers["k"].tells_of(receipts[0].id)
    with pytest.raises(Erased):
        log.write(Append(messages=[prepared("secret")], idempotency_key="k"))


def test_one_text_cut_otherwise_is_another_body() -> None:
    log = FakeLog()
    log.write(Append(messages=[prepared("ab"), prepared("c")], idempotency_key="k"))
    with pytest.raises(KeyReused):
        log.write(Append(messages=[prepared("a"), prepared("bc")], idempotency_key="k"))


@pytest.mark.parametrize(
    ("intent", "problem"),
    [
        (Append(messages=[prepared("x")], expected_head=0), HeadMoved),
        (Append(messages=[prepared("x")], branch="b9"), NotFound),
        (Append(messages=[prepared("x")], branch=99), NotFound),
        (Append(messages=[prepared("x")], branch=2), Invalid),
        (Edit(target="nobody", message=prepared("x")), NotFound),
        (Edit(target="m0", message=prepared("x", "m0")), Conflict),
        (MarkMessage(target="nobody", mark=Mark.PINNED), NotFound),
        (Fork(at_seq=2), Invalid),
        (Fork(at_seq=3), NotFound),
        (SetActive(branch="b9"), NotFound),
        (CopyLog(entries=[], branches=[], active=0), Conflict),
    ],
)
def test_what_the_state_does_not_allow_is_refused(intent: Append, problem: type[Exception]) -> None:
    log = FakeLog()
    log.write(Append(messages=[prepared("first", "m0")]))
    log.write(Append(messages=[prepared("revised", "m0")]))
    log.write(MarkMessage(target="m0", mark=Mark.PINNED))
    with pytest.raises(problem):
        log.write(intent)


@pytest.mark.parametrize(
    "intent",
    [
        Append(messages=[prepared("x")]),
        Edit(target="m0", message=prepared("x")),
        MarkMessage(target="m0", mark=Mark.DELETED),
        Fork(at_seq=0),
        SetActive(branch="main"),
    ],
)
def test_an_erased_conversation_refuses_every_intent(intent: Append) -> None:
    log = written([])
    log.is_erased = True
    with pytest.raises(Erased):
        log.write(intent)


def test_an_edit_keeps_its_bytes_and_gets_an_id_of_its_own() -> None:
    message = prepared("x", "m0")
    sibling = as_sibling(message, "m0", "fresh")
    assert (sibling.id, sibling.has_own_id, sibling.raw) == ("fresh", False, message.raw)
    assert as_sibling(message, "other", "fresh") is message


def test_a_revision_of_a_summary_is_a_summary() -> None:
    log = FakeLog()
    marker = {"role": "user", "content": "short", "id": "s", "additional_kwargs": {"lc_source": "summarization"}}
    summary = prepared("short", "s")._replace(kind=Kind.SUMMARY, raw=json.dumps(marker).encode(), payload=marker)
    log.write(Append(messages=[summary]))
    log.write(Append(messages=[prepared("no longer", "s")]))
    assert [entry.kind for entry in log.entries] == [Kind.SUMMARY, Kind.SUMMARY]
    assert log.branches[0].leaf_seq == 0


@pytest.mark.parametrize(
    ("mark", "before"),
    [
        (Mark.DELETED, Flag.NONE),
        (Mark.RESTORED, Flag.DELETED),
        (Mark.PINNED, Flag.NONE),
        (Mark.UNPINNED, Flag.PINNED),
    ],
)
def test_a_mark_is_an_entry_that_names_its_message(mark: Mark, before: Flag) -> None:
    log = written([])
    log.entries[0] = log.entries[0]._replace(flags=int(before))
    log.write(MarkMessage(target="m0", mark=mark))
    entry = log.entries[-1]
    assert (entry.kind, entry.change_kind, entry.revises, entry.id) == (Kind.MARK, mark, 1, "m0")
    assert entry.raw == json.dumps({"mark": mark.name.lower()}).encode()

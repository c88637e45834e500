"""Any sequence of calls: after each one the store shows what a plain model shows, and its proof holds."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import everthread
from everthread import Conversation, Erased, Everthread, HeadMoved, KeyReused, NotFound, Receipt
from tests.contracts.reference_model import Answered, Said, Talk
from tests.postgres import Server

R = TypeVar("R")
NewDatabase = Callable[[], AbstractContextManager[str]]

TEXTS = st.sampled_from(["ok", "a longer text", "", "\0", "\ud800", "\ud83d\ude00", "中文", "😀"]) | st.text(max_size=6)
MARKS = st.sampled_from(["delete_message", "restore_message", "pin", "unpin"])
QUICK = settings(max_examples=12, stateful_step_count=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
"""Without shrinking, which would outlast the time a test has; the long run shrinks what it finds."""
LONG = settings(max_examples=200, stateful_step_count=40)


def says(text: str, id: str | None = None) -> dict[str, str]:
    return {"role": "user", "content": text} | ({} if id is None else {"id": id})


class LogMachine(RuleBasedStateMachine):
    """Drives one database and the model side by side."""

    def __init__(self, new_database: NewDatabase) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.url = self.stack.enter_context(new_database())
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.et: Everthread = everthread.open(self.url)
        self.run(self.et.__aenter__())
        self.numbers = itertools.count()
        self.talks: list[Talk] = []

    def run(self, call: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(call)

    def teardown(self) -> None:
        self.run(self.et.close())
        self.stack.close()

    # -- choosing ------------------------------------------------------------------------------------------

    def living(self, data: st.DataObject) -> tuple[Talk, Conversation]:
        talk = data.draw(st.sampled_from([talk for talk in self.talks if not talk.is_erased]), label="talk")
        return talk, self.run(self.et.conversations.get(talk.id))

    def message(self, data: st.DataObject) -> tuple[Talk, Conversation, Said]:
        talks = [talk for talk in self.talks if not talk.is_erased and talk.log]
        talk = data.draw(st.sampled_from(talks), label="talk")
        said = data.draw(st.sampled_from(talk.said), label="message")
        return talk, self.run(self.et.conversations.get(talk.id)), said

    def has_living(self) -> bool:
        return any(not talk.is_erased for talk in self.talks)

    def has_messages(self) -> bool:
        return any(not talk.is_erased and talk.log for talk in self.talks)

    def new_name(self, kind: str) -> str:
        return f"{kind}{next(self.numbers)}"

    # -- conversations -------------------------------------------------------------------------------------

    @initialize()
    def first(self) -> None:
        self.create()

    @rule()
    def create(self) -> None:
        if len(self.talks) < 2:
            talk = Talk(self.new_name("c"))
            self.run(self.et.conversations.create(id=talk.id))
            self.talks.append(talk)

    @precondition(has_living)
    @rule(data=st.data(), is_deleted=st.booleans())
    def delete_or_restore(self, data: st.DataObject, is_deleted: bool) -> None:
        talk, conv = self.living(data)
        self.run(conv.delete() if is_deleted else conv.restore())
        talk.is_deleted = is_deleted

    @precondition(has_living)
    @rule(data=st.data())
    def copy(self, data: st.DataObject) -> None:
        talk, conv = self.living(data)
        if len(self.talks) < 3:
            name = self.new_name("copy")
            self.run(conv.copy(id=name))
            self.talks.append(talk.copied(name))

    # -- appending -----------------------------------------------------------------------------------------

    @precondition(has_living)
    @rule(data=st.data(), texts=st.lists(TEXTS, min_size=1, max_size=3), with_ids=st.booleans(), with_key=st.booleans())
    def append(self, data: st.DataObject, texts: list[str], with_ids: bool, with_key: bool) -> None:
        talk, conv = self.living(data)
        named = data.draw(st.none() | st.sampled_from(sorted(talk.branches)), label="branch")
        key = self.new_name("k") if with_key else None
        batch = [says(text, self.new_name("m") if with_ids else None) for text in texts]
        branch = named or talk.active
        head = talk.branches[branch][-1].seq if talk.branches[branch] else 0
        receipts = self.run(conv.append(batch, branch=named, idempotency_key=key, expected_head=head))
        self.note(talk, branch, texts, receipts)
        if key is not None:
            talk.keys[key] = Answered(batch, tuple(receipts))

    def note(self, talk: Talk, branch: str, texts: list[str], receipts: list[Receipt]) -> None:
        """The model learns the ids that were made; all else it knew before."""
        for text, receipt in zip(texts, receipts, strict=True):
            added = talk.add(branch, receipt.id, text)
            assert (receipt.seq, receipt.revision, receipt.new) == (added.seq, 1, True)

    @precondition(has_living)
    @rule(data=st.data(), text=TEXTS, off_by=st.sampled_from([-1, 1, 7]))
    def append_to_another_head(self, data: st.DataObject, text: str, off_by: int) -> None:
        talk, conv = self.living(data)
        path = talk.branches[talk.active]
        head = max(0, (path[-1].seq if path else 0) + off_by)
        if head != (path[-1].seq if path else 0):
            with pytest.raises(HeadMoved):
                self.run(conv.append([says(text)], expected_head=head))

    @precondition(has_messages)
    @rule(data=st.data(), text=TEXTS)
    def append_at_a_message(self, data: st.DataObject, text: str) -> None:
        talk, conv, said = self.message(data)
        ending = [name for name, path in talk.branches.items() if path and path[-1] is said]
        (receipt,) = self.run(conv.append([says(text)], branch=said.seq))
        if ending:
            leaves = {branch.id: branch.leaf_seq for branch in self.run(branches_of(conv))}
            (branch,) = [name for name in ending if leaves[name] == receipt.seq]
        else:
            branch = talk.next_branch()
            talk.branches[branch] = said.path
        self.note(talk, branch, [text], [receipt])

    # -- retrying, replacing, editing ----------------------------------------------------------------------

    @precondition(has_messages)
    @rule(data=st.data())
    def retry_by_id(self, data: st.DataObject) -> None:
        _, conv, said = self.message(data)
        again = says(said.texts[-1], said.id)
        if said.is_erased:
            with pytest.raises(Erased):
                self.run(conv.append([again]))
        else:
            (receipt,) = self.run(conv.append([again]))
            assert tuple(receipt) == (said.id, said.entry_seq, said.revision, False)

    @precondition(lambda self: any(talk.keys for talk in self.talks if not talk.is_erased))
    @rule(data=st.data(), is_same=st.booleans())
    def retry_by_key(self, data: st.DataObject, is_same: bool) -> None:
        talk = data.draw(st.sampled_from([talk for talk in self.talks if talk.keys and not talk.is_erased]))
        key = data.draw(st.sampled_from(sorted(talk.keys)))
        answered = talk.keys[key]
        body = (answered.body or [says("gone")]) + ([] if is_same else [says("more")])
        conv = self.run(self.et.conversations.get(talk.id))
        if answered.body is None or not is_same:
            with pytest.raises(Erased if answered.body is None else KeyReused):
                self.run(conv.append(body, idempotency_key=key))
        else:
            assert tuple(self.run(conv.append(body, idempotency_key=key))) == answered.receipts

    @precondition(has_messages)
    @rule(data=st.data(), text=TEXTS, other=st.none() | TEXTS)
    def replace(self, data: st.DataObject, text: str, other: str | None) -> None:
        """Alone, or in one batch with a new message."""
        talk, conv, said = self.message(data)
        batch = [says(text, said.id)] + ([] if other is None else [says(other)])
        if said.is_erased:
            with pytest.raises(Erased):
                self.run(conv.append(batch))
            return
        receipt, *more = self.run(conv.append(batch))
        is_new = text != said.texts[-1]
        if is_new:
            talk.replace(said, text)
        assert tuple(receipt) == (said.id, said.entry_seq, said.revision, is_new)
        if other is not None:
            self.note(talk, talk.active, [other], more)

    @precondition(has_messages)
    @rule(data=st.data(), text=TEXTS, activate=st.booleans())
    def edit(self, data: st.DataObject, text: str, activate: bool) -> None:
        talk, conv, said = self.message(data)
        if said.is_erased:
            with pytest.raises(Erased):
                self.run(conv.edit(said.id, says(text), activate=activate))
            return
        receipt = self.run(conv.edit(said.id, says(text), activate=activate))
        sibling = talk.edit(said, receipt.id, text)
        assert (receipt.seq, receipt.revision, receipt.new) == (sibling.seq, sibling.revision, True)
        if activate:
            talk.active = list(talk.branches)[-1]

    # -- branches and marks --------------------------------------------------------------------------------

    @precondition(has_messages)
    @rule(data=st.data(), activate=st.booleans(), from_nothing=st.booleans())
    def fork(self, data: st.DataObject, activate: bool, from_nothing: bool) -> None:
        talk, conv, said = self.message(data)
        name = talk.next_branch()
        talk.branches[name] = [] if from_nothing else said.path
        branch = self.run(conv.fork(0 if from_nothing else said.seq, activate=activate))
        assert (branch.id, branch.is_active) == (name, activate)
        if activate:
            talk.active = name

    @precondition(has_living)
    @rule(data=st.data())
    def set_active(self, data: st.DataObject) -> None:
        talk, conv = self.living(data)
        talk.active = data.draw(st.sampled_from(sorted(talk.branches)), label="branch")
        self.run(conv.set_active(talk.active))

    @precondition(has_messages)
    @rule(data=st.data(), verb=MARKS)
    def mark(self, data: st.DataObject, verb: str) -> None:
        talk, conv, said = self.message(data)
        if said.is_erased:
            with pytest.raises(Erased):
                self.run(getattr(conv, verb)(said.id))
            return
        self.run(getattr(conv, verb)(said.id))
        flag = "is_pinned" if "pin" in verb else "is_deleted"
        talk.mark(said, flag, verb in ("pin", "delete_message"))

    # -- erasing and reopening -----------------------------------------------------------------------------

    @precondition(has_messages)
    @rule(data=st.data())
    def erase_message(self, data: st.DataObject) -> None:
        talk, _, said = self.message(data)
        if said.is_erased:
            with pytest.raises(NotFound):
                self.run(self.et.erase(conversation=talk.id, message=said.id))
        else:
            proof = self.run(self.et.erase(conversation=talk.id, message=said.id))
            assert proof.entries == len(said.texts)
            talk.erase(said)

    @precondition(lambda self: sum(not talk.is_erased for talk in self.talks) > 1)
    @rule(data=st.data())
    def erase_conversation(self, data: st.DataObject) -> None:
        talk, conv = self.living(data)
        proof = self.run(self.et.erase(conversation=talk.id))
        assert proof.entries == len(talk.log) - talk.erased_entries()
        talk.is_erased = True
        with pytest.raises(Erased):
            self.run(conv.append([says("late")]))

    @precondition(lambda self: not self.url.startswith("memory"))
    @rule()
    def reopen(self) -> None:
        self.run(self.et.close())
        self.et = everthread.open(self.url)
        self.run(self.et.__aenter__())

    # -- what must hold after every step -------------------------------------------------------------------

    @invariant()
    def the_store_shows_what_the_model_shows(self) -> None:
        self.run(self.compare())

    async def compare(self) -> None:
        listed = await self.et.conversations.list()
        assert {c.id for c in listed.items} == {t.id for t in self.talks if not (t.is_erased or t.is_deleted)}
        for talk in self.talks:
            if talk.is_erased:
                with pytest.raises(NotFound):
                    await self.et.conversations.get(talk.id)
            else:
                await compare_talk(talk, await self.et.conversations.get(talk.id))
        heads = {head.conversation_id: head.count for head in await self.et.heads()}
        assert heads == {talk.id: len(talk.log) for talk in self.talks}
        report = await self.et.verify()
        assert list(report.problems) == []
        assert report.messages == sum(talk.message_count() for talk in self.talks)
        assert report.erased == sum(talk.erased_entries() for talk in self.talks)


async def branches_of(conv: Conversation) -> list[everthread.Branch]:
    return [branch async for branch in conv.branches()]


async def compare_talk(talk: Talk, conv: Conversation) -> None:
    assert conv.is_deleted is talk.is_deleted
    assert {branch.id: (branch.leaf_seq, branch.is_active) for branch in await branches_of(conv)} == {
        name: (path[-1].seq if path else 0, name == talk.active) for name, path in talk.branches.items()
    }
    for name in talk.branches:
        read = [message async for message in conv.messages(branch=name)]
        assert list(map(as_read, read)) == list(map(as_said, talk.shown(name, include_deleted=False)))
        every = conv.messages(branch=name, include_deleted=True, revisions=True)
        expected = [(said.seq, text) for said in talk.shown(name, include_deleted=True) for text in said.texts]
        assert [(message.seq, message.text) async for message in every] == expected
    active = list(talk.shown(talk.active, include_deleted=False))
    assert list(map(as_read, await conv.tail(3))) == list(map(as_said, active[-3:]))
    for said in talk.said:
        if said.is_erased:
            with pytest.raises(NotFound):
                await conv.message(said.id)
        else:
            assert as_read(await conv.message(said.id)) == as_said(said)


def as_read(message: everthread.Message) -> tuple[object, ...]:
    return (
        *(message.seq, message.id, message.text, message.payload["content"], message.entry_seq, message.revision),
        *(message.parent_seq, message._entry.depth, message.is_deleted, message.is_pinned),
    )


def as_said(said: Said) -> tuple[object, ...]:
    parent = said.before[-1].seq if said.before else None
    return (
        *(said.seq, said.id, said.texts[-1], said.texts[-1], said.entry_seq, said.revision),
        *(parent, len(said.path), said.is_deleted, said.is_pinned),
    )


# -- on every store ----------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new_database(request: pytest.FixtureRequest, tmp_path: Path, empty_file: Path) -> NewDatabase:
    """Gives the address of an empty database for each example."""
    numbers = itertools.count()

    @contextmanager
    def sqlite() -> Iterator[str]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        shutil.copyfile(empty_file, folder / "et.db")
        yield f"sqlite:///{folder / 'et.db'}"
        shutil.rmtree(folder)

    @contextmanager
    def memory() -> Iterator[str]:
        yield "memory://"

    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres_server")
        return server.database
    return memory if request.param == "memory" else sqlite


def drive(new_database: NewDatabase, limits: settings) -> None:
    class OnThisStore(LogMachine):
        def __init__(self) -> None:
            super().__init__(new_database)

    patient = settings(limits, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(OnThisStore, settings=patient)


@pytest.mark.timeout(600)  # twelve histories on PostgreSQL: where other work takes the cores, two minutes are too few
def test_i3_any_sequence_of_calls_leaves_what_the_model_has(new_database: NewDatabase) -> None:
    drive(new_database, QUICK)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_i3_any_long_sequence_of_calls_leaves_what_the_model_has(new_database: NewDatabase) -> None:
    drive(new_database, LONG)

"""Slots for turns, and the line before them: bounded, and fair between owners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.http.admission import Admission, AdmissionLimits, Outcome, Slot
from everthread.http.errors import HttpProblem

PATIENT = 60.0


def admission(
    running: int, waiting: int = 100, wait_seconds: float = PATIENT, counted: list[Outcome] | None = None
) -> Admission:
    limits = AdmissionLimits(running=running, waiting=waiting, wait_seconds=wait_seconds)
    return Admission(limits, None if counted is None else counted.append)


class Asker:
    """Somebody who takes a slot and keeps it until told to leave."""

    def __init__(self, gate: Admission, owner: str, conversation: str | None, began: list[Asker]) -> None:
        self.owner = owner
        self._leave = asyncio.Event()
        self.task = asyncio.create_task(self._ask(gate, conversation, began))

    async def _ask(self, gate: Admission, conversation: str | None, began: list[Asker]) -> None:
        async with gate.slot(self.owner, conversation):
            began.append(self)
            await self._leave.wait()

    async def leave(self) -> None:
        self._leave.set()
        await asyncio.wait([self.task])

    def refusal(self) -> str:
        problem = self.task.exception()
        assert isinstance(problem, HttpProblem)
        return problem.code


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@asynccontextmanager
async def askers(gate: Admission, *owners: str) -> AsyncIterator[tuple[list[Asker], list[Asker]]]:
    """One after the other, each in a conversation of its own; and those who have begun."""
    began: list[Asker] = []
    asking = []
    for owner in owners:
        asking.append(Asker(gate, owner, None, began))
        await settle()
    try:
        yield asking, began
    finally:
        for one in asking:
            one.task.cancel()
        await asyncio.gather(*(one.task for one in asking), return_exceptions=True)


async def test_no_more_run_at_once_than_there_are_slots() -> None:
    gate = admission(2)
    async with askers(gate, "a", "a", "a", "a") as (asking, began):
        assert (gate.running, gate.waiting) == (2, 2)
        await asking[0].leave()
        await settle()
        assert began == asking[:3]
        assert (gate.running, gate.waiting) == (2, 1)
    assert (gate.running, gate.waiting) == (0, 0)


async def test_without_a_limit_nobody_waits() -> None:
    async with askers(admission(0, waiting=0), *["a"] * 50) as (asking, began):
        assert began == asking


async def test_an_owner_with_many_requests_does_not_hold_up_another() -> None:
    gate = admission(2, waiting=1000)
    async with askers(gate, *["a"] * 500, "b", "c") as (_, began):
        for number in range(4):
            await began[number].leave()
            await settle()
        assert [one.owner for one in began] == ["a", "a", "a", "b", "c", "a"]


async def test_a_full_line_refuses_whoever_has_most_in_it() -> None:
    counted: list[Outcome] = []
    gate = admission(1, waiting=3, counted=counted)
    async with askers(gate, "a", "a", "a", "a", "b") as (asking, _):
        assert asking[3].refusal() == "too_busy"
        assert not asking[4].task.done()
        late = Asker(gate, "a", None, [])
        await settle()
        assert late.refusal() == "too_busy"
        assert gate.waiting == 3
        assert counted == ["admitted", "full", "full"]


async def test_who_waits_too_long_is_refused() -> None:
    counted: list[Outcome] = []
    gate = admission(1, wait_seconds=0.01, counted=counted)
    async with askers(gate, "a", "a") as (asking, _):
        await asyncio.wait([asking[1].task])
        assert asking[1].refusal() == "too_busy"
        assert (gate.running, gate.waiting) == (1, 0)
        assert counted == ["admitted", "timeout"]


async def test_turns_of_one_conversation_share_a_slot() -> None:
    gate = admission(1)
    began: list[Asker] = []
    one, interrupting = Asker(gate, "a", "c", began), Asker(gate, "a", "c", began)
    await settle()
    foreign = Asker(gate, "b", "c", began)  # another owner's conversation of the same name
    await settle()
    assert began == [one, interrupting]
    await one.leave()
    await settle()
    assert foreign not in began
    await interrupting.leave()
    await settle()
    assert began[-1] is foreign
    await foreign.leave()


async def test_a_conversation_cannot_pile_up_turns_without_end() -> None:
    gate = admission(1, waiting=2)
    began: list[Asker] = []
    asking = [Asker(gate, "a", "c", began) for _ in range(4)]
    await settle()
    assert asking[3].refusal() == "too_busy"
    for one in asking[:3]:
        await one.leave()
    assert gate.running == 0


async def test_a_slot_is_kept_until_the_task_it_was_given_to_has_ended() -> None:
    gate = admission(1)
    end = asyncio.Event()

    async def turn() -> None:
        await end.wait()

    async with gate.slot("a", None) as slot:
        task = asyncio.create_task(turn())
        slot.hold(task)
        slot.hold(None)
    assert gate.running == 1
    end.set()
    await task
    await settle()
    assert gate.running == 0


async def test_a_slot_is_free_again_when_its_block_fails() -> None:
    gate = admission(1)
    with pytest.raises(ValueError, match="no"):
        async with gate.slot("a", None):
            raise ValueError("no")
    assert gate.running == 0


async def test_once_closed_nobody_is_admitted_and_those_who_wait_are_told() -> None:
    gate = admission(1)
    async with askers(gate, "a", "b") as (asking, _):
        gate.close()
        await settle()
        assert asking[1].refusal() == "stopping"
        late = Asker(gate, "c", None, [])
        await settle()
        assert late.refusal() == "stopping"
        await asking[0].leave()
    assert (gate.running, gate.waiting) == (0, 0)


async def test_closing_can_wait_for_turns_that_are_just_being_begun() -> None:
    gate = admission(2)
    async with askers(gate, "a", "b") as (asking, _):
        gate.close()
        waiting = asyncio.create_task(gate.wait_for_blocks())
        await asking[0].leave()
        await settle()
        assert not waiting.done()
        await asking[1].leave()
        await settle()
        assert waiting.done()


async def test_whoever_gives_up_waiting_leaves_the_line() -> None:
    gate = admission(1)
    async with askers(gate, "a", "b", "c") as (asking, began):
        asking[1].task.cancel()
        await settle()
        assert gate.waiting == 1
        await asking[0].leave()
        await settle()
        assert began[-1] is asking[2]


async def test_a_slot_given_to_somebody_who_just_left_goes_to_the_next() -> None:
    gate = admission(1)
    async with askers(gate, "a", "b", "c") as (asking, began):
        asking[0]._leave.set()
        await asyncio.sleep(0)  # the slot is b's now, but b has not run since
        asking[1].task.cancel()
        await settle()
        assert began[-1] is asking[2]
        assert gate.running == 1


Step = tuple[str, int]


@given(
    st.integers(1, 3),
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from(["ask a", "ask b", "ask c", "leave", "cancel"]), st.integers(0, 20))),
)
def test_slots_are_never_lost_nor_given_twice(running: int, waiting: int, steps: list[Step]) -> None:
    asyncio.run(_walk(running, waiting, steps))


async def _walk(running: int, waiting: int, steps: list[Step]) -> None:
    gate = admission(running, waiting)
    inside: set[Slot] = set()
    tasks: list[tuple[asyncio.Task[None], asyncio.Event]] = []

    async def ask(owner: str, leave: asyncio.Event) -> None:
        async with gate.slot(owner, None) as slot:
            inside.add(slot)
            try:
                await leave.wait()
            finally:
                inside.discard(slot)

    for what, number in steps:
        if what.startswith("ask"):
            leave = asyncio.Event()
            tasks.append((asyncio.create_task(ask(what[-1], leave)), leave))
        elif tasks:
            task, leave = tasks[number % len(tasks)]
            leave.set() if what == "leave" else task.cancel()
        if number % 2:
            await settle()
            assert len(inside) == gate.running <= running
            assert gate.waiting <= waiting
            assert not gate.waiting or gate.running == running
    for _, leave in tasks:
        leave.set()
        await settle()
    await asyncio.gather(*(task for task, _ in tasks), return_exceptions=True)
    assert (gate.running, gate.waiting) == (0, 0)

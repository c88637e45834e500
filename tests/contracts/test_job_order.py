"""Which job is taken next: the most urgent, then owners in turn, then small before large; and never two of a kind."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everthread
from everthread import Conversation, Everthread, Job, Pace, Priority
from everthread.compaction.policy import CompactionPolicy
from everthread.core.ids import new_id
from everthread.core.jobs import COMPACT, EMBED, TITLE, priority_name, rounds_behind
from everthread.testing import ScriptedModel
from everthread.turn import run_turn
from tests.contracts.job_helpers import QUICK, Diary, put, refuse, settled, the_job, working
from tests.contracts.message_helpers import appended, says
from tests.contracts.views import tell, tight

ONE_AT_A_TIME = Pace(concurrency=1)
FIRST_CHECK = CompactionPolicy().ahead_mark + 1


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    """An empty database in which conversations are compacted ahead, by whoever takes the jobs."""
    async with everthread.open(url, worker=False, compaction=CompactionPolicy(compact_ahead=True)) as opened:
        yield opened


async def talk(et: Everthread, owner: str, id: str | None = None) -> Conversation:
    return await et.conversations.create(owner=owner, id=id)


async def order_of(et: Everthread) -> list[str]:
    """The conversations in the order in which their jobs are done, one at a time."""
    diary = Diary()
    async with working(et, ONE_AT_A_TIME, test=diary.do):
        await settled(et)
    return diary.done


# -- how urgent a job is -----------------------------------------------------------------------------------------------


async def test_a_more_urgent_job_is_taken_first_whoever_came_before(et: Everthread) -> None:
    levels = sorted(Priority)
    for level in levels:
        await put(et, await talk(et, "anna", priority_name(level)), priority=level)
    assert await order_of(et) == [priority_name(level) for level in reversed(levels)]


async def test_a_job_that_waits_is_raised_by_a_more_urgent_one_like_it(et: Everthread) -> None:
    for id in ("first", "second"):
        await put(et, await talk(et, "anna", id), priority=Priority.IN_USE)
    raised = await talk(et, "anna", "raised")
    await put(et, raised)
    await put(et, raised, priority=Priority.WAITED_FOR)
    await put(et, raised)
    assert (await et.jobs()).waiting == 3
    assert await order_of(et) == ["raised", "first", "second"]


async def test_a_compaction_that_an_append_made_due_is_automatic(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(str(number)) for number in range(FIRST_CHECK)])
    job = await the_job(et)
    assert (job.kind, job.priority) == (COMPACT, Priority.AUTOMATIC)


async def test_while_a_turn_is_open_its_compaction_is_waited_for(et: Everthread, conv: Conversation) -> None:
    await conv.append([says(str(number)) for number in range(FIRST_CHECK - 1)])
    agent = everthread.agent(et, tools=None, builtin=())
    async for _ in run_turn(conv, "and now?", agent=agent, model=ScriptedModel(["Fine."])):
        pass
    (job,) = [job for job in (await et.jobs()).jobs if job.kind == COMPACT]
    assert job.priority == Priority.WAITED_FOR


async def test_what_a_request_finds_due_is_in_use(et: Everthread, conv: Conversation) -> None:
    await tell(conv, 10)
    await conv.context(budget=tight(2500), compaction={"max_message_history": 40})
    (job,) = [job for job in (await et.jobs()).jobs if job.kind == COMPACT]
    assert job.priority == Priority.IN_USE


async def test_what_a_request_at_the_hard_limit_has_no_time_for_is_waited_for(
    et: Everthread, conv: Conversation
) -> None:
    await tell(conv, 120)
    (before,) = (await et.jobs()).jobs
    assert before.priority == Priority.AUTOMATIC
    await conv.context(budget=tight(900))
    (job,) = [job for job in (await et.jobs()).jobs if job.kind == COMPACT]
    assert (job.id, job.priority) == (before.id, Priority.WAITED_FOR)


async def test_a_title_is_in_use(et: Everthread, conv: Conversation) -> None:
    await conv.request_title()
    job = await the_job(et)
    assert (job.kind, job.priority) == (TITLE, Priority.IN_USE)


def test_every_level_says_what_it_is_for() -> None:
    names = [priority_name(level) for level in Priority]
    assert names == ["manual", "waited_for", "in_use", "automatic", "when_idle"]
    assert priority_name(7) == "7"


# -- owners take turns -------------------------------------------------------------------------------------------------


async def test_one_job_of_a_second_owner_is_not_behind_forty_of_the_first(et: Everthread) -> None:
    for _ in range(40):
        await put(et, await talk(et, "anna"))
    await put(et, await talk(et, "bert", "berts"))
    served = await order_of(et)
    assert len(served) == 41
    assert served.index("berts") < 3


async def test_an_owner_who_comes_while_others_are_served_does_not_wait_for_them_all(et: Everthread) -> None:
    done: list[str] = []

    async def do(job: Job) -> None:
        done.append(job.ref.owner)
        if done == ["anna"] * 10:
            await put(et, await talk(et, "bert"))

    for _ in range(30):
        await put(et, await talk(et, "anna"))
    async with working(et, ONE_AT_A_TIME, test=do):
        await settled(et)
    assert len(done) == 31
    assert 10 <= done.index("bert") < 13


async def test_owners_with_many_jobs_each_take_turns(et: Everthread) -> None:
    for owner in ("anna", "bert", "carl"):
        for _ in range(6):
            await put(et, await talk(et, owner, f"{owner}-{new_id()}"))
    served = [id.partition("-")[0] for id in await order_of(et)]
    for start in range(0, 18, 3):
        assert sorted(served[start : start + 3]) == ["anna", "bert", "carl"]


async def test_an_owner_with_one_job_after_the_other_does_not_keep_those_waiting_who_have_many(et: Everthread) -> None:
    done: list[str] = []

    async def do(job: Job) -> None:
        done.append(job.ref.owner)
        if job.ref.owner == "bert" and len(done) < 60:
            await put(et, await talk(et, "bert"))

    for _ in range(20):
        await put(et, await talk(et, "anna"))
    await put(et, await talk(et, "bert"))
    async with working(et, ONE_AT_A_TIME, test=do):
        await settled(et)
    assert Counter(done[:20])["anna"] >= 8


async def test_a_more_urgent_job_of_an_owner_with_many_goes_before_all(et: Everthread) -> None:
    for _ in range(10):
        await put(et, await talk(et, "anna"))
    await put(et, await talk(et, "bert", "berts"))
    await put(et, await talk(et, "anna", "urgent"), priority=Priority.WAITED_FOR)
    assert (await order_of(et))[0] == "urgent"


# -- small before large ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("owner", ["anna", "bert"])
async def test_a_small_job_is_done_before_a_large_one_that_came_first(et: Everthread, owner: str) -> None:
    await put(et, await talk(et, "anna", "large"), size=100_000)
    await put(et, await talk(et, owner, "small"))
    assert await order_of(et) == ["small", "large"]


async def test_a_large_job_is_not_kept_waiting_for_ever_by_small_ones(et: Everthread) -> None:
    done: list[str] = []

    async def do(job: Job) -> None:
        done.append(job.ref.id)
        if len(done) < 40 and job.ref.id != "large":
            await put(et, await talk(et, f"owner {len(done)}"))

    await put(et, await talk(et, "anna", "large"), size=1_000_000)
    await put(et, await talk(et, "owner 0"))
    async with working(et, ONE_AT_A_TIME, test=do):
        await settled(et)
    assert done.index("large") <= 10


@given(st.integers(min_value=0), st.integers(min_value=0))
def test_a_larger_job_never_comes_before_a_smaller_one_and_never_waits_for_long(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert 0 <= rounds_behind(small) <= rounds_behind(large) <= 8


# -- never two of a kind -----------------------------------------------------------------------------------------------


async def test_of_one_kind_and_conversation_one_waits_whoever_puts_it_and_however_often(
    et: Everthread, url: str
) -> None:
    """Appends, raises, jobs that fail and come back, and retries by hand, all at once, over two open databases."""
    async with everthread.open(url, worker=False) as second:
        others = [et] if url.startswith("memory") else [et, second]
        talks = [await talk(et, owner) for owner in ("anna", "anna", "bert")]
        found: list[Counter[tuple[str, str]]] = []

        async def put_often(number: int) -> None:
            for step in range(8):
                level = Priority.WAITED_FOR if step % 3 == number % 3 else Priority.AUTOMATIC
                await put(others[number % len(others)], talks[(number + step) % 3], priority=level)
                await et.retry_dead_jobs()
                waiting = (await et.jobs(state=everthread.JobState.WAITING)).jobs
                found.append(Counter((job.ref.id, job.kind) for job in waiting))

        async with working(et, replace(QUICK, pause_seconds=0.01), test=refuse):
            await asyncio.gather(*(put_often(number) for number in range(12)))
    assert max((max(counts.values(), default=0) for counts in found), default=0) <= 1
    assert any(found)


async def test_a_conversation_has_at_most_one_waiting_job_of_each_kind_however_much_is_said(
    et: Everthread, conv: Conversation
) -> None:
    await asyncio.gather(*(appended(conv, *map(str, range(FIRST_CHECK))) for _ in range(8)))
    waiting = [job.kind for job in (await et.jobs()).jobs]
    assert waiting.count(COMPACT) == 1
    assert len(waiting) == len(set(waiting))
    assert EMBED not in waiting

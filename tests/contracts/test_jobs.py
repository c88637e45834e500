"""Jobs: written with what caused them, one of a kind waiting, one of a conversation running, taken again when their
worker is gone, tried again when they fail, and kept with their error when they are given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

import everthread
from everthread import Conversation, Everthread, HeadMoved, Job, JobState, Pace, Priority
from everthread.compaction.policy import CompactionPolicy
from everthread.core.jobs import COMPACT, NewJob, WakeFilter, pause_before_next
from tests.contracts.job_helpers import QUICK, Diary, put, refuse, settled, the_job, until, working
from tests.contracts.message_helpers import appended, says

FIRST_LOOK = CompactionPolicy().ahead_mark + 1
ONE_LANE = replace(QUICK, concurrency=1, most_attempts=2)


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    """An empty database in which conversations are compacted ahead, by whoever takes the jobs."""
    async with everthread.open(url, worker=False, compaction=CompactionPolicy(compact_ahead=True)) as opened:
        yield opened


# -- written with what caused them -------------------------------------------------------------------------------------


async def test_an_append_that_passes_the_mark_writes_a_job_with_its_messages(
    et: Everthread, conv: Conversation
) -> None:
    await conv.append([says(f"{number}") for number in range(FIRST_LOOK - 1)])
    assert (await et.jobs()).waiting == 0
    await conv.append(says("one more"))
    job = await the_job(et)
    assert (job.kind, job.ref, job.state, job.attempts) == (COMPACT, (conv.owner, conv.id), JobState.WAITING, 0)


async def test_an_append_that_is_refused_leaves_no_job(et: Everthread, conv: Conversation) -> None:
    with pytest.raises(HeadMoved):
        await conv.append([says(f"{number}") for number in range(FIRST_LOOK)], expected_head=7)
    assert (await et.jobs()).jobs == []


async def test_messages_that_are_there_already_write_no_job(et: Everthread, conv: Conversation) -> None:
    batch = [says(f"{number}", id=f"m{number}") for number in range(FIRST_LOOK)]
    await conv.append(batch)
    async with working(et, compact=Diary().do):
        await settled(et)
    await conv.append(batch)
    assert (await et.jobs()).jobs == []


async def test_the_mark_moves_on_when_it_is_passed(et: Everthread, conv: Conversation) -> None:
    await appended(conv, *map(str, range(FIRST_LOOK)))
    diary = Diary()
    async with working(et, compact=diary.do):
        await settled(et)
        for number in range(FIRST_LOOK - 1):
            await appended(conv, str(number))
        await settled(et)
        assert len(diary.done) == 1
        await appended(conv, "past the second mark")
        await settled(et)
    assert len(diary.done) == 2


async def test_an_append_to_a_branch_that_is_not_active_writes_no_job(et: Everthread, conv: Conversation) -> None:
    await appended(conv, "first")
    fork = await conv.fork(1)
    await appended(conv, *map(str, range(FIRST_LOOK)), branch=fork)
    assert (await et.jobs()).jobs == []


async def test_a_branch_that_becomes_active_is_looked_at_anew(et: Everthread, conv: Conversation) -> None:
    await appended(conv, *map(str, range(FIRST_LOOK)))
    async with working(et, compact=Diary().do):
        await settled(et)
    await conv.fork(FIRST_LOOK - 1, activate=True)
    await appended(conv, "on another path")
    assert (await et.jobs()).waiting == 1


async def test_where_nothing_is_compacted_by_itself_no_job_is_written(url: str) -> None:
    async with everthread.open(url, compaction=CompactionPolicy(enabled=False, compact_ahead=True), worker=False) as et:
        conv = await et.conversations.create()
        await appended(conv, *map(str, range(2 * FIRST_LOOK)))
        assert (await et.jobs()).jobs == []


# -- waiting -----------------------------------------------------------------------------------------------------------


async def test_of_one_kind_and_conversation_one_waits(et: Everthread, conv: Conversation) -> None:
    await put(et, conv)
    await put(et, conv)
    await put(et, conv, "other")
    await put(et, await et.conversations.create())
    assert (await et.jobs()).waiting == 3


async def test_the_one_that_waits_learns_from_the_one_that_comes(et: Everthread, conv: Conversation) -> None:
    await put(et, conv)
    await put(et, conv, priority=Priority.WAITED_FOR, details={"tokens": 7})
    await put(et, conv, priority=Priority.IN_USE, details={"tokens": 8})
    job = await the_job(et)
    assert (job.priority, job.details) == (Priority.WAITED_FOR, {"tokens": 7})


async def test_a_job_can_wait_behind_the_one_that_runs(et: Everthread, conv: Conversation) -> None:
    diary = Diary()
    diary.may_end.clear()
    await put(et, conv)
    async with working(et, test=diary.do):
        await until(lambda: _is(bool(diary.running)))
        await put(et, conv)
        report = await et.jobs()
        assert (report.waiting, report.running) == (1, 1)
        diary.may_end.set()
        await settled(et)
    assert diary.done == [conv.id, conv.id]


async def test_a_job_that_waited_for_another_is_begun_when_that_ends_though_nobody_looks(
    et: Everthread, conv: Conversation
) -> None:
    diary = Diary()
    diary.may_end.clear()
    await put(et, conv)
    async with working(et, replace(QUICK, poll_seconds=3600, lease_seconds=3600), test=diary.do):
        await until(lambda: _is(bool(diary.running)))
        await put(et, conv)
        await asyncio.sleep(0.3)  # in which the worker hears of it, and cannot begin it
        diary.may_end.set()
        await settled(et)
    assert diary.done == [conv.id, conv.id]


async def test_a_job_that_gathers_waits_for_more_and_is_done_once(et: Everthread, conv: Conversation, url: str) -> None:
    await put(et, conv, gather_seconds=0.3)
    begins_at_once = url.startswith("postgres")
    assert ((await the_job(et)).due_at is None) == begins_at_once
    await put(et, conv, gather_seconds=0.3)
    diary = Diary()
    async with working(et, test=diary.do):
        await settled(et)
    assert diary.done == [conv.id]


async def test_jobs_that_gather_are_begun_when_they_are_due_though_nobody_looks(et: Everthread) -> None:
    diary = Diary()
    talks = [await et.conversations.create() for _ in range(3)]
    async with working(et, replace(QUICK, poll_seconds=3600, lease_seconds=3600), test=diary.do):
        for conv in talks:
            await put(et, conv, gather_seconds=0.2)
        await settled(et)
        await put(et, talks[0], gather_seconds=0.2)
        await settled(et)
    assert sorted(diary.done) == sorted([*(conv.id for conv in talks), talks[0].id])


def test_of_jobs_that_gather_the_first_wakes_the_worker() -> None:
    patient, hasty = NewJob(kind="embed", gather_seconds=60), NewJob(kind="compact")
    gathering = WakeFilter()
    assert gathering.should_wake([patient])
    assert not gathering.should_wake([patient])
    assert gathering.should_wake([hasty, patient])
    assert gathering.should_wake([])


async def _is(state: bool) -> bool:
    return state


# -- taken -------------------------------------------------------------------------------------------------------------


async def test_the_highest_priority_is_taken_first_and_equals_in_their_order(et: Everthread) -> None:
    talks = [await et.conversations.create(id=f"c{number}") for number in range(4)]
    levels = (Priority.AUTOMATIC, Priority.IN_USE, Priority.AUTOMATIC, Priority.MANUAL)
    for talk, priority in zip(talks, levels, strict=True):
        await put(et, talk, priority=priority)
    diary = Diary()
    async with working(et, Pace(concurrency=1), test=diary.do):
        await settled(et)
    assert diary.done == ["c3", "c1", "c0", "c2"]


async def test_of_one_conversation_one_runs_and_others_beside_it(et: Everthread) -> None:
    talks = [await et.conversations.create() for _ in range(3)]
    diary = Diary()
    for talk in talks:
        for kind in ("one", "two", "three"):
            await put(et, talk, kind)
    diary.may_end.clear()
    async with working(et, one=diary.do, two=diary.do, three=diary.do):
        await until(lambda: _is(diary.most_at_once > 1))
        diary.may_end.set()
        await settled(et)
    assert len(diary.done) == 9
    assert [pair for pair in diary.together if pair[0] == pair[1]] == []


async def test_two_workers_do_each_job_once(et: Everthread) -> None:
    diary = Diary()
    async with working(et, test=diary.do), working(et, test=diary.do):
        for number in range(12):
            await put(et, await et.conversations.create(id=f"c{number}"))
        await settled(et)
    assert sorted(diary.done) == sorted(f"c{number}" for number in range(12))


async def test_a_job_of_a_kind_that_a_worker_does_not_know_is_left_alone(et: Everthread, conv: Conversation) -> None:
    diary = Diary()
    await put(et, conv)
    await put(et, conv, "of the next version")
    async with working(et, test=diary.do):
        await until(lambda: _is(bool(diary.done)))
        await until(lambda: _has_only_waiting(et))
    assert (await the_job(et)).kind == "of the next version"


async def _has_only_waiting(et: Everthread) -> bool:
    return len((await et.jobs()).jobs) == 1


async def test_a_long_job_is_not_taken_from_a_worker_that_lives(et: Everthread, conv: Conversation) -> None:
    diary = Diary()
    diary.may_end.clear()
    await put(et, conv)
    async with working(et, test=diary.do), working(et, test=diary.do):
        await until(lambda: _is(bool(diary.running)))
        await asyncio.sleep(2.5 * QUICK.lease_seconds)
        diary.may_end.set()
        await settled(et)
    assert diary.done == [conv.id]
    assert diary.most_at_once == 1


async def test_a_worker_that_is_stopped_gives_back_what_it_cannot_end(et: Everthread, conv: Conversation) -> None:
    diary = Diary()
    diary.may_end.clear()
    await put(et, conv, details={"tokens": 7})
    async with working(et, Pace(stop_seconds=0.1), test=diary.do):
        await until(lambda: _is(bool(diary.running)))
    job = await the_job(et)
    assert (job.state, job.attempts, job.details) == (JobState.WAITING, 0, {"tokens": 7})
    assert diary.running == []


async def test_a_worker_that_is_stopped_lets_a_short_job_end(et: Everthread, conv: Conversation) -> None:
    diary = Diary()
    await put(et, conv)
    async with working(et, test=diary.do):
        await until(lambda: _is(bool(diary.running)))
    assert diary.done == [conv.id]
    assert (await et.jobs()).jobs == []


# -- failing -----------------------------------------------------------------------------------------------------------


async def test_a_job_that_fails_is_tried_again_and_then_given_up_with_its_error(
    et: Everthread, conv: Conversation
) -> None:
    other = await et.conversations.create()
    diary = Diary()
    await put(et, conv, "bad")
    async with working(et, bad=refuse, test=diary.do):
        await put(et, other)
        await settled(et)
    job = await the_job(et)
    assert (job.state, job.attempts) == (JobState.DEAD, QUICK.most_attempts)
    assert job.error == "RuntimeError: cannot do bad"
    assert diary.done == [other.id]
    assert await appended(conv, "the conversation goes on") == [1]


async def test_a_job_that_failed_once_succeeds_when_it_can(et: Everthread, conv: Conversation) -> None:
    tries: list[int] = []

    async def at_last(job: Job) -> None:
        tries.append(job.attempts)
        if len(tries) < QUICK.most_attempts:
            raise ValueError("not yet")

    await put(et, conv)
    async with working(et, test=at_last):
        await settled(et)
    assert tries == [1, 2, 3]
    assert (await et.jobs()).jobs == []


async def test_while_a_job_waits_to_be_tried_again_a_new_one_is_not_needed(et: Everthread, conv: Conversation) -> None:
    await put(et, conv)
    async with working(et, Pace(pause_seconds=60), test=refuse):
        await until(lambda: _has_failed(et))
    await put(et, conv)
    job = await the_job(et)
    assert (job.state, job.attempts) == (JobState.WAITING, 1)
    assert job.due_at is not None


async def _has_failed(et: Everthread) -> bool:
    jobs = (await et.jobs()).jobs
    return [(job.state, job.error is None) for job in jobs] == [(JobState.WAITING, False)]


async def test_of_a_kind_and_conversation_one_dead_job_is_kept_until_one_succeeds(
    et: Everthread, conv: Conversation
) -> None:
    for _ in range(2):
        await put(et, conv)
        async with working(et, test=refuse):
            await settled(et)
        assert (await et.jobs()).dead == 1
    await put(et, conv)
    async with working(et, test=Diary().do):
        await settled(et)
    assert (await et.jobs()).jobs == []


def test_the_pause_doubles_and_ends() -> None:
    pace = Pace(pause_seconds=2.0, most_attempts=4)
    assert [pause_before_next(attempts, pace) for attempts in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, None]


# -- erasing -----------------------------------------------------------------------------------------------------------


async def test_jobs_of_an_erased_conversation_are_gone(et: Everthread, conv: Conversation) -> None:
    other = await et.conversations.create()
    await put(et, conv, "bad")
    async with working(et, bad=refuse):
        await settled(et)
    await put(et, conv)
    await put(et, other)
    report = await et.erase(conversation=conv.id)
    assert report.reached["jobs"] == 2
    assert (await the_job(et)).ref.id == other.id


async def test_an_erased_message_is_not_quoted_by_an_error(et: Everthread, conv: Conversation) -> None:
    await conv.append(says("xylotomous", id="m"))

    async def quote(job: Job) -> None:
        raise ValueError("cannot make sense of 'xylotomous'")

    await put(et, conv)
    async with working(et, test=quote):
        await settled(et)
    await et.erase(conversation=conv.id, message="m")
    job = await the_job(et)
    assert (job.state, job.error) == (JobState.DEAD, None)


async def test_a_job_that_runs_while_its_conversation_is_erased_ends_quietly(
    et: Everthread, conv: Conversation
) -> None:
    diary = Diary()
    diary.may_end.clear()
    await put(et, conv)
    async with working(et, test=diary.do):
        await until(lambda: _is(bool(diary.running)))
        await et.erase(conversation=conv.id)
        diary.may_end.set()
        await settled(et)
    assert (await et.jobs()).jobs == []


async def test_jobs_off_the_record_go_with_it_at_close(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        await put(et, await et.conversations.create(off_record=True))
        assert (await et.jobs()).waiting == 1
    async with everthread.open(durable_url, worker=False) as et:
        assert (await et.jobs()).jobs == []


# -- surviving ---------------------------------------------------------------------------------------------------------


async def test_jobs_survive_a_restart_and_are_found_by_the_next_to_open(durable_url: str) -> None:
    ahead = CompactionPolicy(compact_ahead=True)
    async with everthread.open(durable_url, worker=False, compaction=ahead) as et:
        conv = await et.conversations.create(id="c")
        await appended(conv, *(f"{number}: {'words ' * 40}" for number in range(FIRST_LOOK + 3)))
        assert (await et.jobs()).waiting == 1
    async with everthread.open(durable_url) as et:
        await settled(et)
        assert [one.trigger async for one in (await et.conversations.get("c")).compactions()] == ["messages"]


async def test_stats_count_the_jobs(et: Everthread, conv: Conversation) -> None:
    await put(et, conv, "bad")
    async with working(et, bad=refuse):
        await settled(et)
    await put(et, conv)
    counted = await et.stats()
    assert (counted["jobs_waiting"], counted["jobs_dead"]) == (1, 1)


# -- a worker is not lost ------------------------------------------------------------------------------------------


async def test_a_job_that_raises_a_cancellation_by_itself_has_failed(et: Everthread, conv: Conversation) -> None:
    async def drop(job: Job) -> None:
        raise asyncio.CancelledError

    diary = Diary()
    other = await et.conversations.create()
    async with working(et, ONE_LANE, test=drop, note=diary.do):
        await put(et, conv)
        await settled(et)
        await put(et, other, "note")
        await until(lambda: _has(diary, other.id))
    assert (await the_job(et)).error == "CancelledError: "


async def test_a_job_that_ends_the_task_it_runs_in_does_not_end_the_worker(
    et: Everthread, conv: Conversation, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()
    ended: list[asyncio.Task[object]] = []

    async def end_the_lane_once(job: Job) -> None:
        if not ended and (lane := asyncio.current_task()) is not None:
            ended.append(lane)
            lane.cancel()
        await diary.do(job)

    async with working(et, ONE_LANE, test=end_the_lane_once):
        await put(et, conv)
        await until(lambda: _has(diary, conv.id))
    if not url.startswith("postgres"):  # there each job has a task of its own
        assert "a loop of the worker ended; restarting: it was cancelled" in caplog.text


async def _has(diary: Diary, id: str) -> bool:
    return id in diary.done

"""Dead jobs: listed with what they died of and when, retried one by one or all, discarded; and what the queue tells of
its length."""

from __future__ import annotations

import pytest

from everthread import Conversation, Everthread, Invalid, JobState, NotFound, Priority
from everthread.core.clock import system_clock
from everthread.core.jobs import COMPACT
from everthread.core.nouns import Ref
from tests.contracts.job_helpers import QUICK, Diary, put, refuse, settled, the_job, working
from tests.contracts.message_helpers import appended


async def let_die(et: Everthread, *conversations: Conversation) -> None:
    for conv in conversations:
        await put(et, conv, details={"tokens": 7})
    async with working(et, test=refuse):
        await settled(et)


async def test_a_dead_job_says_what_it_was_and_when_it_died(et: Everthread, conv: Conversation) -> None:
    before = system_clock()
    await let_die(et, conv)
    (job,) = (await et.jobs(state=JobState.DEAD)).jobs
    assert (job.kind, job.ref, job.attempts) == ("test", (conv.owner, conv.id), QUICK.most_attempts)
    assert job.error == "RuntimeError: cannot do test"
    assert job.died_at is not None
    assert before <= job.died_at <= system_clock()


async def test_jobs_in_one_state_are_listed_and_all_are_counted(et: Everthread, conv: Conversation) -> None:
    await let_die(et, conv)
    waiting = await et.conversations.create()
    await put(et, waiting)
    for state, id in ((JobState.DEAD, conv.id), (JobState.WAITING, waiting.id)):
        report = await et.jobs(state=state)
        assert [job.ref.id for job in report.jobs] == [id]
        assert (report.waiting, report.running, report.dead) == (1, 0, 1)
    assert (await et.jobs(state=JobState.RUNNING)).jobs == []
    assert len((await et.jobs()).jobs) == 2
    with pytest.raises(Invalid):
        await et.jobs(state="broken")  # type: ignore[arg-type]


async def test_a_dead_job_is_retried_by_hand_as_if_it_were_new(et: Everthread, conv: Conversation) -> None:
    await let_die(et, conv)
    dead = await the_job(et)
    await et.retry_job(dead.id)
    job = await the_job(et)
    assert (job.state, job.attempts, job.error, job.died_at) == (JobState.WAITING, 0, None, None)
    assert job.details == {"tokens": 7}
    assert job.put_at > dead.put_at
    diary = Diary()
    async with working(et, test=diary.do):
        await settled(et)
    assert diary.done == [conv.id]
    assert (await et.jobs()).jobs == []


async def test_a_job_that_a_person_retries_goes_before_automatic_ones(et: Everthread, conv: Conversation) -> None:
    await let_die(et, conv)
    await put(et, await et.conversations.create(), priority=Priority.WAITED_FOR)
    await et.retry_job((await et.jobs(state=JobState.DEAD)).jobs[0].id)
    first = (await et.jobs()).jobs[0]
    assert (first.ref.id, first.priority) == (conv.id, Priority.MANUAL)


async def test_a_retry_where_one_like_it_waits_raises_that_one(et: Everthread, conv: Conversation) -> None:
    await let_die(et, conv)
    dead = await the_job(et)
    await put(et, conv)
    await et.retry_job(dead.id)
    job = await the_job(et)
    assert (job.state, job.priority, job.details) == (JobState.WAITING, Priority.MANUAL, {"tokens": 7})


async def test_all_dead_jobs_are_retried_with_the_priority_they_had(et: Everthread) -> None:
    talks = [await et.conversations.create() for _ in range(5)]
    await let_die(et, *talks)
    assert await et.retry_dead_jobs() == 5
    report = await et.jobs()
    assert (report.waiting, report.dead) == (5, 0)
    assert {job.priority for job in report.jobs} == {Priority.AUTOMATIC}
    assert await et.retry_dead_jobs() == 0


async def test_a_dead_job_is_discarded_and_nothing_else_is(et: Everthread, conv: Conversation) -> None:
    other = await et.conversations.create()
    await let_die(et, conv, other)
    dead = {job.ref.id: job.id for job in (await et.jobs()).jobs}
    await et.discard_job(dead[conv.id])
    assert (await the_job(et)).ref.id == other.id
    with pytest.raises(NotFound):
        await et.discard_job(dead[conv.id])
    await put(et, conv)
    assert (await et.jobs()).waiting == 1


async def test_only_a_dead_job_can_be_retried_or_discarded(et: Everthread, conv: Conversation) -> None:
    await put(et, conv)
    for id in (4711, (await the_job(et)).id):
        with pytest.raises(NotFound):
            await et.retry_job(id)
        with pytest.raises(NotFound):
            await et.discard_job(id)
    assert (await et.jobs()).waiting == 1


async def test_the_backlog_is_told_by_kind_and_priority_with_the_age_of_the_oldest(et: Everthread) -> None:
    before = system_clock()
    talks = [await et.conversations.create() for _ in range(3)]
    for conv in talks:
        await put(et, conv, "one")
    await put(et, talks[0], "two", priority=Priority.WAITED_FOR)
    await put(et, talks[1], "two")
    found = (await et.store.jobs.backlog()).waiting
    assert {(one.kind, one.priority): one.count for one in found} == {
        ("one", Priority.AUTOMATIC): 3,
        ("two", Priority.AUTOMATIC): 1,
        ("two", Priority.WAITED_FOR): 1,
    }
    oldest = min(one.oldest_put_at for one in found)
    assert before <= oldest <= system_clock()
    assert (await et.jobs(limit=0)).oldest_put_at == oldest


async def test_an_empty_queue_has_no_oldest_job(et: Everthread) -> None:
    assert (await et.jobs()).oldest_put_at is None
    backlog = await et.store.jobs.backlog()
    assert (list(backlog.waiting), backlog.unsummarised_messages) == ([], 0)


async def test_messages_that_wait_to_be_summarised_are_counted(et: Everthread, conv: Conversation) -> None:
    await appended(conv, *(f"{number}: {'words ' * 40}" for number in range(30)))
    await conv.compact()
    covered = (await et.store.views.inputs(Ref(conv.owner, conv.id), None)).covered_depth
    assert covered > 0
    await appended(conv, *(f"{number}: again" for number in range(5)))
    await put(et, conv, COMPACT)
    silent = await et.conversations.create()
    await appended(silent, "no compaction of this waits")
    assert (await et.store.jobs.backlog()).unsummarised_messages == 35 - covered

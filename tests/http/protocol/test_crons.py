"""Crons: runs that are started again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fastapi import FastAPI
from langgraph_sdk import errors
from langgraph_sdk.client import LangGraphClient

import everthread
from everthread import Invalid
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.core.items import ItemChanges
from everthread.http.app import create_app
from everthread.http.protocol import crons
from everthread.http.protocol.cron_runner import CronRunner
from everthread.http.protocol.cron_schedule import check_schedule, last_tick, next_tick
from everthread.settings import Settings
from tests.http.protocol.rig import CONFIG, Server, says, serving

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


# -- when it is due --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedule", "zone", "last", "coming"),
    [
        ("* * * * *", None, "2027-03-01T12:00", "2027-03-01T12:01"),
        ("0 9 * * 1-5", None, "2027-03-01T09:00", "2027-03-02T09:00"),
        ("0 9 * * *", "America/New_York", "2027-02-28T14:00", "2027-03-01T14:00"),
        ("@monthly", "Asia/Shanghai", "2027-02-28T16:00", "2027-03-31T16:00"),
        ("30 2 29 3 *", "Europe/Berlin", "2026-03-29T01:00", "2027-03-29T00:30"),
    ],
)
def test_a_schedule_says_when_it_was_due_and_will_be(schedule: str, zone: str | None, last: str, coming: str) -> None:
    check_schedule(schedule, zone)
    assert last_tick(schedule, zone, NOON) == datetime.fromisoformat(last).replace(tzinfo=UTC)
    assert next_tick(schedule, zone, NOON) == datetime.fromisoformat(coming).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "zone", "field"),
    [
        ("odd", None, "schedule"),
        ("* * * * * *", None, "schedule"),
        ("0 0 30 2 *", None, "schedule"),
        ("r 9 * * *", None, "schedule"),
        ("* * * * *", "Nowhere/None", "timezone"),
        ("* * * * *", "../../etc/passwd", "timezone"),
    ],
)
def test_a_wrong_schedule_is_refused_with_its_field(schedule: str, zone: str | None, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_schedule(schedule, zone)
    assert refused.value.field == field


# -- documents -------------------------------------------------------------------------------------------------------


async def test_a_cron_is_created_found_changed_and_deleted(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    one: Any = await client.crons.create("agent", schedule="0 0 1 1 *", input=says("hi"), metadata={"k": 1})
    other: Any = await client.crons.create_for_thread(
        thread, "agent", schedule="0 9 * * *", timezone=ZoneInfo("Asia/Shanghai"), enabled=False
    )
    assert one["next_run_date"].startswith(f"{datetime.now(UTC).year + 1}-01-01T00:00:00")
    assert (other["thread_id"], other["next_run_date"], other["on_run_completed"]) == (thread, None, None)
    assert [cron["cron_id"] for cron in await client.crons.search()] == [other["cron_id"], one["cron_id"]]
    assert [cron["cron_id"] for cron in await client.crons.search(enabled=True)] == [one["cron_id"]]
    assert [cron["cron_id"] for cron in await client.crons.search(thread_id=thread)] == [other["cron_id"]]
    assert await client.crons.count(metadata={"k": 1}) == 1
    assert await client.crons.count(assistant_id=one["assistant_id"]) == 2
    later = datetime.now(UTC) + timedelta(days=1)
    changed: Any = await client.crons.update(one["cron_id"], metadata={"l": 2}, end_time=later)
    assert (changed["metadata"], changed["next_run_date"]) == ({"k": 1, "l": 2}, None)
    again: Any = await client.crons.update(one["cron_id"], end_time=None)
    assert again["next_run_date"] == one["next_run_date"]
    await client.crons.delete(one["cron_id"])
    assert await client.crons.count() == 1
    with pytest.raises(errors.NotFoundError):
        await client.crons.delete(one["cron_id"])


async def test_what_could_never_run_is_refused_when_it_is_made(client: LangGraphClient) -> None:
    with pytest.raises(errors.NotFoundError):
        await client.crons.create("no such graph", schedule="* * * * *")
    with pytest.raises(errors.NotFoundError):
        await client.crons.create_for_thread("no such thread", "agent", schedule="* * * * *")
    with pytest.raises(errors.UnprocessableEntityError):
        await client.crons.create("agent", schedule="* * * * *", webhook="http://127.0.0.1/")
    assert await client.crons.count() == 0


async def test_an_owner_sees_none_of_anothers_crons(light: Server) -> None:
    made = [new_key(owner, is_admin=False, now=system_clock()) for owner in ("ann", "ben")]
    for one in made:
        await light.et.store.api_keys.add(one.key)
    async with light.sdk(made[0].written) as ann, light.sdk(made[1].written) as ben:
        cron: Any = await ann.crons.create("agent", schedule="0 0 1 1 *")
        assert await ben.crons.search() == []
        with pytest.raises(errors.NotFoundError):
            await ben.crons.delete(cron["cron_id"])


# -- runs ------------------------------------------------------------------------------------------------------------


def _app(et: everthread.Everthread) -> FastAPI:
    """As a server process of its own would have it."""
    return create_app(et, Settings(langgraph_config=CONFIG, requests_per_minute=0), needs_key=False)


async def _ends(client: LangGraphClient, thread: str, count: int) -> Sequence[Any]:
    """The thread's runs, once there are so many and all have ended."""
    while True:
        runs = await client.runs.list(thread)
        if len(runs) == count and all(run["status"] not in ("pending", "running") for run in runs):
            return runs
        await asyncio.sleep(0.02)


async def test_of_several_servers_one_starts_what_is_due_and_each_minute_once(url: str) -> None:
    async with serving(url) as server, server.sdk() as client:
        thread = (await client.threads.create())["thread_id"]
        cron: Any = await client.crons.create_for_thread(thread, "agent", schedule="0 9 * * *", input=says("hi"))
        now = datetime.now(UTC)
        today = now.replace(hour=9, minute=0, second=0)
        due = today if today > now else today + timedelta(days=1)  # else today's would be made up for
        servers = [CronRunner(_app(server.et).state.langgraph) for _ in range(3)]
        await asyncio.gather(*(one.start_due(due - timedelta(minutes=1)) for one in servers))
        assert await client.runs.list(thread) == []
        await asyncio.gather(*(one.start_due(due + timedelta(seconds=2)) for one in servers))
        await servers[0].start_due(due + timedelta(hours=3))
        runs = await _ends(client, thread, 1)
        assert runs[0]["status"] == "success"
        assert runs[0]["kwargs"]["config"]["configurable"] == {"cron_id": cron["cron_id"]}
        await servers[1].start_due(due + timedelta(days=1))
        await _ends(client, thread, 2)


async def test_a_minute_that_no_server_saw_is_made_up_for_once_within_a_day(light: Server) -> None:
    async with light.sdk() as client:
        thread = (await client.threads.create())["thread_id"]
        await client.crons.create_for_thread(thread, "agent", schedule="0 9 1 * *", input=says("hi"))
        after = datetime.now(UTC).replace(day=1, hour=9, minute=0, second=0) + timedelta(days=32)
        due = after.replace(day=1)
        await CronRunner(_app(light.et).state.langgraph).start_due(due + timedelta(days=2))
        assert await client.runs.list(thread) == []
        await CronRunner(_app(light.et).state.langgraph).start_due(due + timedelta(hours=20))
        await CronRunner(_app(light.et).state.langgraph).start_due(due + timedelta(hours=21))
        await _ends(client, thread, 1)


@pytest.mark.parametrize("kept", ["keep", "delete"])
async def test_without_a_thread_each_run_has_one_of_its_own(light: Server, kept: Any) -> None:
    async with light.sdk() as client:
        await client.crons.create("agent", schedule="0 9 * * *", input=says("hi"), on_run_completed=kept)
        due = datetime.now(UTC).replace(hour=9, minute=0, second=30) + timedelta(days=1)
        runner = CronRunner(_app(light.et).state.langgraph)
        for day in range(2):
            await runner.start_due(due + timedelta(days=day))
            await CronRunner(_app(light.et).state.langgraph).start_due(due + timedelta(days=day))
        if kept == "keep":
            threads = await client.threads.search()
            assert len(threads) == 2
            assert [len(await _ends(client, thread["thread_id"], 1)) for thread in threads] == [1, 1]
        else:
            assert await client.threads.search() == []


async def test_a_disabled_and_an_ended_cron_start_nothing(light: Server) -> None:
    async with light.sdk() as client:
        thread = (await client.threads.create())["thread_id"]
        due = datetime.now(UTC).replace(hour=9, minute=0, second=30) + timedelta(days=1)
        for more in ({"enabled": False}, {"end_time": due - timedelta(hours=1)}):
            await client.crons.create_for_thread(thread, "agent", schedule="0 9 * * *", input=says("hi"), **more)
        await CronRunner(_app(light.et).state.langgraph).start_due(due)
        assert await client.runs.list(thread) == []


async def test_a_cron_of_a_revoked_key_starts_nothing_until_a_good_key_takes_it_over(light: Server) -> None:
    gone, good = (new_key("ann", now=system_clock()) for _ in range(2))
    for one in (gone, good):
        await light.et.store.api_keys.add(one.key)
    async with light.sdk(gone.written) as before, light.sdk(good.written) as client:
        thread = (await client.threads.create())["thread_id"]
        cron: Any = await before.crons.create_for_thread(thread, "agent", schedule="0 9 * * *", input=says("hi"))
        assert crons.KEY not in cron
        await light.et.store.api_keys.revoke(gone.key.id)
        due = datetime.now(UTC).replace(hour=9, minute=0, second=30) + timedelta(days=1)
        await CronRunner(_app(light.et).state.langgraph).start_due(due)
        assert await client.runs.list(thread) == []
        await client.crons.update(cron["cron_id"], metadata={})
        await CronRunner(_app(light.et).state.langgraph).start_due(due + timedelta(days=1))
        await _ends(client, thread, 1)


async def test_one_that_cannot_start_holds_up_no_other(light: Server) -> None:
    async with light.sdk() as client:
        gone, thread = [(await client.threads.create())["thread_id"] for _ in range(2)]
        for one in (gone, thread):
            await client.crons.create_for_thread(one, "agent", schedule="0 9 * * *", input=says("hi"))
        await client.threads.delete(gone)
        due = datetime.now(UTC).replace(hour=9, minute=0, second=30) + timedelta(days=1)
        await CronRunner(_app(light.et).state.langgraph).start_due(due)
        await _ends(client, thread, 1)


async def test_a_server_starts_by_itself_what_comes_due(light: Server) -> None:
    """On the clock: the schedule is every minute, and a document that was written a minute ago is due now."""
    async with light.sdk() as client:
        thread = (await client.threads.create())["thread_id"]
        await client.crons.create_for_thread(thread, "agent", schedule="* * * * *", input=says("hi"))
        items = light.et.store.items
        [item] = await items.under("local", crons.DOCUMENTS.namespace)
        earlier = item.updated_at - 61_000_000
        await items.change("local", ItemChanges(put=[item._replace(updated_at=earlier)]))
        assert (await _ends(client, thread, 1))[0]["status"] == "success"


async def test_an_owner_whose_crons_are_gone_is_forgotten(light: Server) -> None:
    async with light.sdk() as client:
        made: Any = await client.crons.create("agent", schedule="0 9 * * *")
        items = light.et.store.items
        runner = CronRunner(_app(light.et).state.langgraph)
        await client.crons.delete(made["cron_id"])
        await runner.start_due(datetime.now(UTC))
        assert list(await crons.owners(items)) == ["local"]
        await runner.start_due(datetime.now(UTC) + timedelta(hours=2))
        assert await crons.owners(items) == {}


async def test_no_owner_can_erase_the_list_of_those_that_have_crons(light: Server) -> None:
    async with light.sdk() as client:
        await client.crons.create("agent", schedule="0 0 1 1 *", input=says("hi"))
    assert await crons.owners(light.et.store.items)
    await light.et.erase(owner="everthread")
    assert await crons.owners(light.et.store.items)
    with pytest.raises(Invalid):
        await light.et.erase(owner=crons.SERVER)

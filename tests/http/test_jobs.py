"""Background jobs for whoever runs the service: what waits, what was given up and why, and what to do about it."""

from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families

from everthread import Everthread, Priority
from everthread.core.jobs import COMPACT
from tests.contracts.job_helpers import put, refuse, settled, working
from tests.contracts.message_helpers import appended

API = "/api/v1"


async def let_die(et: Everthread, *ids: str) -> None:
    for id in ids:
        await put(et, await et.conversations.create(id=id, owner="alice"), "bad")
    async with working(et, bad=refuse):
        await settled(et)


async def test_an_admin_sees_what_was_given_up_and_why(et: Everthread, admin: httpx.AsyncClient) -> None:
    await let_die(et, "c")
    await put(et, await et.conversations.create(id="d"), priority=Priority.WAITED_FOR)
    every = (await admin.get(f"{API}/jobs")).json()
    assert (every["waiting"], every["running"], every["dead"]) == (1, 0, 1)
    assert [(job["state"], job["priority"]) for job in every["items"]] == [
        ("dead", "automatic"),
        ("waiting", "waited_for"),
    ]
    assert every["oldest_put_at"] == every["items"][1]["put_at"]
    (job,) = (await admin.get(f"{API}/jobs", params={"state": "dead"})).json()["items"]
    assert (job["kind"], job["owner"], job["conversation_id"]) == ("bad", "alice", "c")
    assert (job["attempts"], job["error"]) == (3, "RuntimeError: cannot do bad")
    assert job["died_at"] >= job["put_at"]
    assert (await admin.get(f"{API}/jobs", params={"state": "lost"})).status_code == 422


async def test_an_admin_retries_one_or_all_and_discards(et: Everthread, admin: httpx.AsyncClient) -> None:
    await let_die(et, "a", "b", "c")
    dead = {job["conversation_id"]: job["id"] for job in (await admin.get(f"{API}/jobs")).json()["items"]}
    assert (await admin.post(f"{API}/jobs/{dead['a']}/retry")).json() == {"retried": 1}
    assert (await admin.delete(f"{API}/jobs/{dead['b']}")).status_code == 204
    for gone in (await admin.post(f"{API}/jobs/{dead['a']}/retry"), await admin.delete(f"{API}/jobs/{dead['b']}")):
        assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
    assert (await admin.post(f"{API}/jobs/retry")).json() == {"retried": 1}
    report = await et.jobs()
    assert (report.waiting, report.dead) == (2, 0)
    assert [(job.ref.id, job.priority) for job in report.jobs] == [
        ("a", Priority.MANUAL),
        ("c", Priority.AUTOMATIC),
    ]


async def test_metrics_tell_what_waits_for_how_long_and_what_it_would_summarise(
    et: Everthread, admin: httpx.AsyncClient
) -> None:
    await let_die(et, "a")
    conv = await et.conversations.create(id="c")
    await appended(conv, "one", "two", "three")
    await put(et, conv, COMPACT)
    await put(et, conv, "title", priority=Priority.IN_USE)
    found = _samples((await admin.get("/metrics")).text)
    assert found["everthread_jobs", "dead"] == 1
    assert found["everthread_jobs_waiting", COMPACT, "automatic"] == 1
    assert found["everthread_jobs_waiting", "title", "in_use"] == 1
    assert found["everthread_job_oldest_seconds", COMPACT] >= 0
    assert found["everthread_unsummarised_messages",] == 3
    assert found["everthread_append_seconds_count",] == 1
    await et.erase(conversation="c")
    after = _samples((await admin.get("/metrics")).text)
    assert ("everthread_jobs_waiting", COMPACT, "automatic") not in after
    assert ("everthread_job_oldest_seconds", COMPACT) not in after


def _samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }

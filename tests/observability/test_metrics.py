"""What is counted, and that every count is documented."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

import everthread
from everthread import CompactionPolicy, Everthread, Pace, RecallPolicy
from everthread.adapters.observability.metrics import PrometheusMetrics
from everthread.compaction.policy import Trigger
from everthread.http.request_metrics import RequestMetrics
from everthread.testing import FakeEmbedder, ScriptedModel
from everthread.turn import run_turn
from everthread.turn.agent import TurnLimits
from tests.context.views.hostile import Hostile
from tests.contracts.job_helpers import settled
from tests.contracts.views import tell, tight

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


async def compact(et: Everthread) -> everthread.CompactionOutcome:
    conv = await et.conversations.create()
    await tell(conv, 12)
    return await conv.compact()


async def test_a_compaction_is_counted_with_what_it_changed() -> None:
    async with everthread.open("memory://", worker=False) as et:
        assert math.isnan(et.metrics.values()["everthread_compaction_success_ratio"])
        outcome = await compact(et)
        found = et.metrics.values()
    assert found['everthread_compaction_triggers_total{trigger="manual"}'] == 1
    assert found['everthread_compactions_completed_total{by="extract"}'] == 1
    assert found["everthread_compaction_success_ratio"] == 1
    assert found["everthread_compaction_seconds_count"] == 1
    assert found['everthread_compaction_messages_total{when="before"}'] == outcome.original_count
    assert found['everthread_compaction_messages_total{when="after"}'] == outcome.new_count
    assert found['everthread_compaction_tokens_total{when="before"}'] == outcome.tokens_before
    assert found['everthread_compaction_tokens_total{when="after"}'] == outcome.tokens_after


async def test_failures_are_counted_by_reason_and_lower_the_rate() -> None:
    async with everthread.open("memory://", worker=False, compaction=CompactionPolicy(keep_recent=1)) as et:
        await compact(et)
        short = await et.conversations.create()
        await short.append([{"role": "user", "content": "ok"}, {"role": "assistant", "content": "ok"}] * 5)
        await short.compact()
        found = et.metrics.values()
    assert found['everthread_compaction_failures_total{reason="not-smaller"}'] == 1
    assert found["everthread_compaction_success_ratio"] == 0.5


async def test_a_model_in_vain_is_counted_by_reason() -> None:
    async with everthread.open("memory://", worker=False, summariser=Hostile(["fails", "empty"])) as et:
        failures = [failure.kind for _ in range(2) for failure in (await compact(et)).failures]
        found = et.metrics.values()
    assert found['everthread_compaction_exceptions_total{error="ModelError"}'] == failures.count("error") > 0
    assert found['everthread_summary_refusals_total{reason="empty"}'] == failures.count("empty") > 0
    assert found["everthread_compaction_success_ratio"] == 1


async def test_a_request_over_the_limit_is_counted() -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 40)
        await conv.context(budget=tight(900))
        found = et.metrics.values()
    assert found["everthread_truncations_total"] == 1
    assert found["everthread_truncated_messages_total"] > 100


async def test_two_databases_in_one_process_are_counted_apart() -> None:
    async with everthread.open("memory://", worker=False) as one, everthread.open("memory://", worker=False) as other:
        await compact(one)
        assert 'everthread_compaction_triggers_total{trigger="manual"}' in one.metrics.values()
        assert 'everthread_compaction_triggers_total{trigger="manual"}' not in other.metrics.values()


async def test_the_text_is_what_prometheus_reads() -> None:
    async with everthread.open("memory://", worker=False) as et:
        await compact(et)
        families = {family.name: family for family in text_string_to_metric_families(et.metrics.text())}
    (sample,) = [one for one in families["everthread_compaction_triggers"].samples if one.name.endswith("_total")]
    assert (sample.labels, sample.value) == ({"trigger": "manual"}, 1)


def test_every_metric_and_label_is_documented_and_exists() -> None:
    rows = re.findall(r"^\| `(everthread_\w+)` \| (\w+) \|([^|]*)\|", DOCS.read_text(encoding="utf-8"), re.M)
    documented = {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    counts = [*vars(PrometheusMetrics()).values(), *vars(RequestMetrics()).values()]
    collectors = [one for one in counts if isinstance(one, MetricWrapperBase)]
    known = {}
    for one in collectors:
        (family,) = one.describe()
        known[family.name + "_total" * (family.type == "counter")] = (family.type, frozenset(one._labelnames))
    et = everthread.open("memory://", worker=False)
    et.runtime.job_timings.observe(0.5, "compact", "done")
    assert isinstance(et.metrics, PrometheusMetrics)
    for family in et.metrics.registry.collect():
        if family.name not in known and family.type == "histogram":
            labels = {label for sample in family.samples for label in sample.labels}
            known[family.name] = (family.type, frozenset(labels - {"le"}))
    assert documented == known


async def test_appends_and_waits_for_the_database_are_timed(url: str) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        before = et.metrics.values()
        for number in range(3):
            await conv.append({"role": "user", "content": f"{number}"})
        after = et.metrics.values()
    counted = {
        name: after[f"everthread_{name}_count"] - before[f"everthread_{name}_count"]
        for name in ("append_seconds", "database_wait_seconds")
    }
    assert counted["append_seconds"] == 3
    assert after["everthread_append_seconds_sum"] > 0
    assert counted["database_wait_seconds"] == 0 if url.startswith("memory") else counted["database_wait_seconds"] >= 3
    assert after['everthread_append_seconds_bucket{le="+Inf"}'] == 3


async def test_jobs_are_timed_by_kind_and_by_what_became_of_them() -> None:
    pace = Pace(most_attempts=2, pause_seconds=0.01, poll_seconds=0.05)
    embedder = FakeEmbedder()
    embedder.fails = OSError("away")
    async with everthread.open(
        "memory://", worker=pace, embedder=embedder, recall=RecallPolicy(embed_ahead=True)
    ) as et:
        conv = await et.conversations.create()
        await conv.append({"role": "user", "content": "Where to?"})
        await conv.request_title()
        await settled(et)
        found = et.metrics.values()
    assert found['everthread_job_seconds_count{kind="title",outcome="done"}'] == 1
    assert found['everthread_job_seconds_count{kind="embed",outcome="retried"}'] == 1
    assert found['everthread_job_seconds_count{kind="embed",outcome="dead"}'] == 1
    assert found['everthread_job_seconds_sum{kind="embed",outcome="dead"}'] > 0


async def test_turns_their_tokens_and_what_they_recall_are_counted() -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)
        agent = everthread.agent(et, tools=None, builtin=())
        for model in (ScriptedModel(["Fine."]), ScriptedModel([RuntimeError("broken")])):
            async for _ in run_turn(conv, "How is Order 3?", agent=agent, model=model):
                pass
        found = et.metrics.values()
    assert found['everthread_turns_total{state="complete"}'] == 1
    assert found['everthread_turns_total{state="failed"}'] == 1
    assert found["everthread_turn_seconds_count"] == 2
    assert (
        found['everthread_turn_tokens_total{direction="in"}'] > found['everthread_turn_tokens_total{direction="out"}']
    )
    assert found['everthread_turn_tokens_total{direction="out"}'] > 0
    assert sum(value for name, value in found.items() if name.startswith("everthread_recalls_total")) == 2
    assert found["everthread_recall_seconds_count"] == 2


async def test_a_recall_that_takes_too_long_is_counted_as_degraded() -> None:
    policy = CompactionPolicy(max_message_history=40)
    async with everthread.open("memory://", worker=False, compaction=policy) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)
        agent = everthread.agent(et, tools=None, builtin=(), limits=TurnLimits(recall_seconds=1e-9))
        async for _ in run_turn(conv, "How is Order 3?", agent=agent, model=ScriptedModel(["Fine."])):
            pass
        assert et.metrics.values()['everthread_recalls_total{outcome="degraded"}'] == 1


@pytest.mark.parametrize("trigger", get_args(Trigger))
def test_every_trigger_is_named_on_the_page(trigger: str) -> None:
    assert f"`{trigger}`" in DOCS.read_text(encoding="utf-8")

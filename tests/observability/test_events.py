"""Whatever happens in a compaction is told, with the numbers of it, and never with what anybody said."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import structlog
from structlog.testing import capture_logs

import everthread
from everthread import Budget, CompactionPolicy, Everthread, ModelError
from everthread.adapters.observability import MAX_UNCOUNTED, LogsAndMetrics
from everthread.adapters.observability.log_format import LineFormatter
from everthread.core import events
from everthread.core.events import Event, Recalled
from tests.context.views.hostile import Hostile, Manner
from tests.contracts.views import tell, tight
from tests.text.test_secrets import SECRETS

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "events.md"
QUICK = CompactionPolicy(summary_timeout_seconds=0.02)

Told = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def unconfigured() -> Iterator[None]:
    """structlog as a program finds it that never heard of it."""
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


async def told(et: Everthread, turns: int = 12, *, budget: Budget | None = None) -> Told:
    """What is told of one compaction by hand, or of one request when a budget is given."""
    conv = await et.conversations.create(id="c1")
    await tell(conv, turns)
    with capture_logs() as lines:
        if budget is None:
            await conv.compact()
        else:
            await conv.context(budget=budget)
    return [dict(line) for line in lines]


def one(lines: Told, event: str) -> dict[str, Any]:
    (found,) = [line for line in lines if line["event"] == event]
    return found


async def test_a_compaction_by_hand_is_told_from_its_beginning_to_its_end() -> None:
    async with everthread.open("memory://", worker=False) as et:
        begun, done = await told(et)
        made = [compaction async for compaction in (await et.conversations.get("c1")).compactions()][-1]
    assert begun == {
        "event": "compaction_triggered",
        "log_level": "info",
        "owner": "local",
        "conversation_id": "c1",
        "trigger": "manual",
        "used_tokens": begun["used_tokens"],
        "usage_percent": None,
        "message_count": 48,
        "threshold": 0.8,
    }
    assert begun["used_tokens"] > 1_000
    assert done.pop("seconds") >= 0
    assert done == {
        "event": "compaction_completed",
        "log_level": "info",
        "owner": "local",
        "conversation_id": "c1",
        "trigger": "manual",
        "before_count": 48,
        "after_count": made.new_count,
        "compressed": True,
        "summary_length": len(made.summary),
        "tokens_before": made.tokens_before,
        "tokens": made.tokens_after,
        "by": "extract",
    }


async def test_with_a_budget_the_share_in_use_is_told() -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)
        with capture_logs() as lines:
            await conv.compact(trigger="threshold", budget=tight(10_000))
    begun = one([dict(line) for line in lines], "compaction_triggered")
    assert begun["usage_percent"] == pytest.approx(begun["used_tokens"] / 100, abs=0.06)
    assert begun["trigger"] == "threshold"


async def test_a_request_over_the_limit_is_told_with_what_it_came_to() -> None:
    async with everthread.open("memory://", worker=False) as et:
        lines = await told(et, 40, budget=tight(900))
    assert lines[0]["event"] == "truncation_begun"
    assert lines[-1]["event"] == "truncation_done"
    begun, done = lines[0], lines[-1]
    assert (begun["log_level"], done["log_level"]) == ("warning", "warning")
    assert begun["message_count"] == done["before_count"] == 160
    assert begun["used_tokens"] > begun["max_tokens"] == 900
    assert done["removed_count"] == done["before_count"] - done["after_count"] > 100
    triggered = [line for line in lines if line["event"] == "compaction_triggered"]
    assert {line["trigger"] for line in triggered} == {"hard_limit"}
    assert triggered[0]["usage_percent"] > 100


async def test_a_request_that_fits_tells_nothing() -> None:
    async with everthread.open("memory://", worker=False) as et:
        assert await told(et, 3, budget=Budget()) == []


async def test_a_dry_run_tells_nothing() -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)
        with capture_logs() as lines:
            await conv.compact(dry_run=True)
    assert lines == []


async def test_a_compaction_that_finds_nothing_to_do_says_so() -> None:
    async with everthread.open("memory://", worker=False) as et:
        done = one(await told(et, 1), "compaction_completed")
    assert (done["compressed"], done["before_count"], done["after_count"]) == (False, 4, 4)


async def test_a_compaction_that_comes_to_nothing_is_told_with_its_reason() -> None:
    async with everthread.open("memory://", worker=False, compaction=CompactionPolicy(keep_recent=1)) as et:
        conv = await et.conversations.create()
        await conv.append([{"role": "user", "content": "ok"}, {"role": "assistant", "content": "ok"}] * 5)
        with capture_logs() as lines:
            assert (await conv.compact()).error is not None
    failed = one([dict(line) for line in lines], "compaction_failed")
    assert (failed["log_level"], failed["reason"]) == ("warning", "not-smaller")
    assert failed["will_wait_for_hard_limit"] is True


@pytest.mark.parametrize(
    ("manner", "reason"),
    [("hangs", "timeout"), ("empty", "empty"), ("too long", "too-long"), ("tool syntax", "tool-syntax")],
)
async def test_an_answer_of_a_model_in_vain_is_told_with_its_reason(manner: Manner, reason: str) -> None:
    async with everthread.open("memory://", worker=False, summariser=Hostile([manner]), compaction=QUICK) as et:
        lines = await told(et)
    refused = [line for line in lines if line["event"] == "summary_refused"]
    assert {(line["reason"], line["log_level"]) for line in refused} == {(reason, "warning")}
    assert one(lines, "compaction_completed")["by"] == "extract"


async def test_a_model_that_raises_is_an_exception_after_which_it_goes_on() -> None:
    async with everthread.open("memory://", worker=False, summariser=Hostile(["fails"]), compaction=QUICK) as et:
        raised = one(await told(et), "compaction_exception")
    assert (raised["log_level"], raised["error"], raised["will_continue"]) == ("error", "ModelError", True)


async def test_a_database_that_fails_is_an_exception_after_which_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)

        async def full(*_: object) -> None:
            raise everthread.StoreFull("no room")

        monkeypatch.setattr(et.store.log, "write", full)
        with capture_logs() as lines, pytest.raises(everthread.StoreFull):
            await conv.compact()
    raised = one([dict(line) for line in lines], "compaction_exception")
    assert (raised["error"], raised["will_continue"]) == ("StoreFull", False)


async def test_a_cancelled_compaction_is_told_and_is_no_failure() -> None:
    async with everthread.open("memory://", worker=False, summariser=Hostile(["hangs"])) as et:
        conv = await et.conversations.create()
        await tell(conv, 12)
        with capture_logs() as lines, pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await conv.compact()
    cancelled = one([dict(line) for line in lines], "compaction_cancelled")
    assert (cancelled["log_level"], cancelled["seconds"] > 0.1) == ("info", True)
    assert [line["event"] for line in lines] == ["compaction_triggered", "compaction_cancelled"]


# --- secrets and texts ---


class Blabbing:
    """A summary model whose errors quote what it was sent, and more."""

    name = "blabbing"

    def __init__(self) -> None:
        self.asked = 0

    async def summarise(self, text: str, *, kind: str, max_tokens: int, is_terse: bool) -> str:
        self.asked += 1
        if self.asked % 2:
            raise ModelError(f"refused: {text} {SECRETS['github']}") from ValueError(text)
        return f"<tool_call> {text}"


async def test_i23_no_text_and_no_secret_is_in_any_event() -> None:
    async with everthread.open("memory://", worker=False, summariser=Blabbing(), compaction=QUICK) as et:
        conv = await et.conversations.create()
        await conv.append([{"role": "user", "content": f"my key is {SECRETS['github']}, keep it"}])
        await tell(conv, 40)
        with capture_logs() as lines:
            await conv.compact()
            await conv.context(budget=tight(600))
            await conv.context(budget=tight(400))
        said = json.dumps(lines) + et.metrics.text()
    assert {line["event"] for line in lines} >= {"compaction_exception", "compaction_completed", "truncation_done"}
    for text in (SECRETS["github"], "Order", "Town", "depot", "my key", "refused:"):
        assert text not in said


# --- who hears it ---


async def test_the_library_is_silent_until_logging_is_configured(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("everthread")
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []  # pytest's own would hear it
    try:
        async with everthread.open("memory://", worker=False) as et:
            conv = await et.conversations.create()
            await tell(conv, 40)
            await conv.context(budget=tight(400))
    finally:
        root.handlers = handlers
    assert capfd.readouterr() == ("", "")
    assert logger.handlers


async def test_without_structlog_the_standard_logger_has_event_and_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "everthread")
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create(id="c1")
        await tell(conv, 12)
        await conv.compact()
    begun, done = caplog.records
    assert (begun.name, begun.levelname, begun.getMessage()) == ("everthread", "INFO", "compaction_triggered")
    assert vars(done)["conversation_id"] == "c1"
    shown = json.loads(LineFormatter("json", clean=lambda line: line.replace("c1", "***")).format(done))
    assert (shown["event"], shown["level"], shown["compressed"]) == ("compaction_completed", "info", True)
    assert shown["conversation_id"] == "***"
    assert "compaction_completed" in LineFormatter("console").format(done)


# --- the reference ---


def test_every_event_and_each_of_its_fields_is_documented() -> None:
    page = DOCS.read_text(encoding="utf-8")
    sections = {part.partition("`\n")[0]: part for part in page.split("\n### `")[1:]}
    kinds: tuple[type[Event], ...] = get_args(Event)
    assert set(sections) == {kind.name for kind in kinds}
    for kind in kinds:
        for field in fields(kind):
            assert field.name in ("owner", "conversation_id", "trigger") or f"| `{field.name}` |" in sections[kind.name]
        assert f"Level `{kind.level}`" in sections[kind.name]


def test_every_event_is_one_of_the_union() -> None:
    told_of = {value for value in vars(events).values() if isinstance(value, type) and hasattr(value, "level")}
    assert told_of == set(get_args(Event))


_NOTHING_HEAVY = """
import sys
from everthread.adapters.observability import LogsAndMetrics
from everthread.core.events import Recalled
listener = LogsAndMetrics()
listener.on_event(Recalled(owner="o", conversation_id="c", turn_id="t", found=1, seconds=0.1, degraded=False))
assert {"structlog", "prometheus_client"}.isdisjoint(sys.modules), "the event loop was held up by an import"
assert listener.metrics.values()
assert "prometheus_client" in sys.modules
"""


def test_an_event_imports_no_library_in_the_event_loop() -> None:
    subprocess.run([sys.executable, "-c", _NOTHING_HEAVY], check=True)


def test_events_that_nobody_counts_are_counted_once_they_are_many() -> None:
    listener = LogsAndMetrics()
    for _ in range(MAX_UNCOUNTED + 5):
        listener.on_event(Recalled(owner="o", conversation_id="c", turn_id="t", found=1, seconds=0.1, degraded=False))
    assert listener.metrics.values()['everthread_recalls_total{outcome="found"}'] == MAX_UNCOUNTED + 5


HOSTILE = "\x1b]52;c;QUJD\x07\x9b31m\u202e\r\n2026-01-01T00:00:00Z [error] forged"


@pytest.mark.parametrize("style", ["console", "json"])
def test_nothing_that_is_logged_reaches_the_terminal_as_an_order_or_looks_like_another_line(
    style: Literal["console", "json"],
) -> None:
    record = logging.LogRecord("everthread.x", logging.WARNING, "f", 1, "refused: %s", (HOSTILE,), None)
    record.path = f"x{HOSTILE}"
    line = LineFormatter(style).format(record)
    assert line.isprintable()
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        record.exc_info = sys.exc_info()
    first, *others = LineFormatter(style).format(record).split("\n")
    assert first.isprintable()
    assert all(other.isprintable() and other.startswith("  ") for other in others)

"""Secrets: what is in a question, a key or a provider's error is in the log at most, and in nothing told of it."""

from __future__ import annotations

import logging

import pytest
from langchain_core.messages import AIMessage
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from everthread import Everthread
from everthread.adapters.models.providers import translate_error
from everthread.core.turn_events import Failed
from everthread.testing.scripted import Reply, ScriptedModel, Step
from tests.turn.turns import agent_for, explode, of, told

SECRET = "sk-proj-4f9aVeryMuchASecret0123456789abcdef"


class ProviderError(Exception):
    status_code = 401


async def test_i23_no_secret_is_in_logs_traces_or_errors(
    et: Everthread, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    caplog.set_level(logging.DEBUG)
    conv = await et.conversations.create()
    agent = agent_for(et, tools=[explode])
    script: list[Step] = [
        Reply(calls=[("explode", {}), ("nothing", {"key": SECRET})]),
        ProviderError(f"Incorrect API key provided: {SECRET}"),
    ]
    events = await told(conv, f"my key is {SECRET}", agent, model=ScriptedModel(script))
    (failed,) = of(events, Failed)
    (turn,) = await conv.turns()
    spans = [span.to_json() for span in exporter.get_finished_spans()]
    assert spans
    shown = capfd.readouterr()
    for told_of in (failed.message, str(turn.error), caplog.text, shown.out, shown.err, *spans):
        assert SECRET not in told_of
    assert SECRET in (await conv.message_at(1)).text


@pytest.mark.parametrize("status", [None, 400, 401, 403, 404, 408, 413, 429, 500, 529])
def test_i23_of_a_providers_error_only_its_kind_is_told(status: int | None) -> None:
    problem = ProviderError(f"bad request with {SECRET}: {AIMessage('text')}")
    problem.status_code = status  # type: ignore[assignment]
    ours = translate_error(problem, "openai:gpt-5-mini")
    assert SECRET not in str(ours)
    assert "ProviderError" in str(ours)

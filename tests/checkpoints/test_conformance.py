"""LangGraph's own conformance suite, with all its capabilities, on every store."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from everthread import Everthread
from everthread.langgraph import EverthreadSaver


async def test_every_capability_of_the_conformance_suite_passes(et: Everthread) -> None:
    @checkpointer_test(name="EverthreadSaver")
    async def ours() -> AsyncGenerator[BaseCheckpointSaver[int], None]:
        yield EverthreadSaver(et)

    report = await validate(ours)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert {name for name, result in report.results.items() if result.passed} == {one.value for one in ALL_CAPABILITIES}
    assert sum(result.tests_passed for result in report.results.values()) >= 81

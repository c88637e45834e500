"""Titles by a model where one is set; a model that fails changes nothing for whoever reads the list."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from everthread import Everthread, ModelError
from everthread.bootstrap import open as opened
from everthread.compaction.policy import CompactionPolicy
from everthread.core.clock import system_clock
from everthread.core.jobs import TITLE, Job, JobState
from everthread.core.nouns import Ref
from everthread.jobs.handlers import job_handlers
from everthread.settings import Settings

KEY = "sk-ant-api03-" + "a1B2" * 20


class Model:
    """Says one thing, and remembers what it was shown."""

    def __init__(self, said: str | Exception | None) -> None:
        self._said = said
        self.shown = ""

    async def title(self, text: str) -> str:
        self.shown = text
        if self._said is None:
            await asyncio.sleep(60)
        if isinstance(self._said, Exception):
            raise self._said
        return str(self._said)


async def named(et: Everthread, model: Model, title: str | None = None) -> str | None:
    conv = await et.conversations.create(title=title)
    await conv.append([{"role": "user", "content": f"Hello! How high is Kunming? My key is {KEY}"}])
    await conv.append([{"role": "assistant", "content": "1,892 metres."}])
    runtime = replace(et._runtime, titler=model, policy=CompactionPolicy(summary_timeout_seconds=0.05))
    job = Job(
        id=1,
        kind=TITLE,
        ref=Ref(conv.owner, conv.id),
        priority=0,
        details={},
        state=JobState.RUNNING,
        attempts=1,
        error=None,
        due_at=None,
        put_at=system_clock(),
    )
    await job_handlers(runtime)[TITLE](job)
    return (await et.conversations.get(conv.id)).title


async def test_a_model_names_a_conversation_after_its_first_exchange_and_sees_no_secret(et: Everthread) -> None:
    model = Model("“Height of Kunming.”\n")
    assert await named(et, model) == "Height of Kunming"
    assert "1,892 metres." in model.shown
    assert KEY not in model.shown


@pytest.mark.parametrize("said", [ModelError("away"), None, "", "  \n"])
async def test_a_model_that_fails_or_says_nothing_leaves_it_to_the_rules(
    et: Everthread, said: str | Exception | None
) -> None:
    assert await named(et, Model(said)) == "How high is Kunming?"


async def test_a_title_that_somebody_gave_stays(et: Everthread) -> None:
    assert await named(et, Model("Another"), title="Mine") == "Mine"


def test_the_model_is_the_one_that_is_set_and_none_by_default() -> None:
    assert opened("memory://", settings=Settings(database="memory://"))._runtime.titler is None
    named_one = opened("memory://", settings=Settings(database="memory://", title_model="openai:gpt-5-mini"))
    assert getattr(named_one._runtime.titler, "name", None) == "openai:gpt-5-mini"

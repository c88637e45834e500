"""The toy on this machine: it answers without key and network, streams for real, and stops when it is told to.

Needs `everthread models fetch smollm2` and `everthread[agent]`; skips visibly without.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("langchain", reason="needs everthread[agent]")
pytest.importorskip("xllamacpp", reason="needs everthread[agent]")

import everthread
from everthread import Conversation
from everthread.adapters.models import local
from everthread.adapters.models.local import TOY_NOTICE
from everthread.adapters.models.weights import WeightsState, state_of, weights_by_name
from everthread.core.turn_events import Done, Token
from everthread.settings import Settings
from everthread.turn import Agent, run_turn

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
LEAVING = """
import asyncio
from everthread.models import resolve
async def main():
    async for chunk in resolve("local:smollm2").astream("Write a long story about a river."):
        if chunk.text:
            return
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def weights() -> None:
    if state_of(Settings.load().models_dir, weights_by_name("smollm2")) is not WeightsState.PRESENT:
        pytest.skip("needs the weights: everthread models fetch smollm2")


async def answered(conv: Conversation, agent: Agent, question: str) -> list[tuple[float, object]]:
    return [(time.monotonic(), event) async for event in run_turn(conv, question, agent=agent)]


async def test_without_a_key_the_local_model_answers_and_streams() -> None:
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        agent = everthread.agent(et, settings=Settings.load(model=None))
        assert (await agent.models.get(None, None)).name == "local:smollm2"
        events = await answered(conv, agent, "Say hello to Anna in one short sentence.")
        moments = [at for at, event in events if isinstance(event, Token)]
        assert len(moments) > 3
        assert moments[-1] - moments[0] > 0.05, "pieces come as they are made"
        done = events[-1][1]
        assert isinstance(done, Done)
        assert done.usage["output_tokens"] > 3
        assert "EVERTHREAD_MODEL" in TOY_NOTICE


async def test_an_answer_that_reaches_its_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "ANSWER_TOKENS", 8)
    async with everthread.open("memory://", worker=False) as et:
        conv = await et.conversations.create()
        agent = everthread.agent(et, settings=Settings.load(model=None))
        done = (await answered(conv, agent, "Write a long story about a river."))[-1][1]
        assert isinstance(done, Done)
        assert done.result == {"is_cut": True}


def test_a_process_may_leave_while_it_speaks() -> None:
    run = subprocess.run((sys.executable, "-c", LEAVING), cwd=ROOT, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")

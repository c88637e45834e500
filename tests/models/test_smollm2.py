"""A real, small model writes a summary: SmolLM2 with 135 million parameters, on this machine, from fetched weights.

Needs `everthread models fetch smollm2` and a runner of GGUF files (`pip install xllamacpp`); skips visibly without.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs everthread[langchain]")

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda

import everthread
from everthread import CompactionPolicy
from everthread.adapters.models.weights import WeightsState, folder_of, state_of, weights_by_name
from tests.conftest import MODELS
from tests.contracts.views import check, tell

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def smollm2() -> Runnable[Any, Any]:
    runner = pytest.importorskip("xllamacpp", reason="needs a runner of GGUF files: pip install xllamacpp")
    weights, models = weights_by_name("smollm2"), MODELS
    if state_of(models, weights) is not WeightsState.PRESENT:
        pytest.skip("needs the weights: everthread models fetch smollm2")
    params = runner.CommonParams()
    params.model.path = str(folder_of(models, weights) / weights.files[0].name)
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # two that wait for each other are slower than one on a busy machine
    server = runner.Server(params)

    def answer(messages: list[BaseMessage]) -> str:
        roles = {"system": "system", "human": "user"}
        asked = [{"role": roles[message.type], "content": message.text} for message in messages]
        said = server.handle_chat_completions({"messages": asked, "max_tokens": 120, "temperature": 0})
        text: str = said["choices"][0]["message"]["content"]
        return text

    return RunnableLambda(answer, name="smollm2")


async def test_whatever_a_very_small_model_writes_a_good_summary_is_kept(smollm2: Runnable[Any, Any]) -> None:
    policy = CompactionPolicy(leaf_max_tokens=1_500, leaf_max_messages=16, summary_timeout_seconds=300)
    async with everthread.open("memory://", worker=False, summariser=smollm2, compaction=policy) as et:
        conv = await et.conversations.create()
        await tell(conv, 6)
        outcome = await conv.compact()
        await check(conv, await conv.context())
    made = outcome.compaction
    assert made is not None
    assert made.tokens_after < made.tokens_before
    assert made.facts_kept >= made.facts_total // 2
    assert made.model is not None or outcome.failures
    print(made.strategy, made.seconds, [failure.reason for failure in outcome.failures], made.summary, sep="\n")

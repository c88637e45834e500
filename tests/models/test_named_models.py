"""Models by name: what is found, and what is said when nothing is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs everthread[agent]")

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig

import everthread
from everthread import (
    EverthreadError,
    Invalid,
    MissingExtra,
    ModelBusy,
    ModelError,
    ModelKeyMissing,
    ModelOverflow,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
    NotFound,
)
from everthread.adapters.models.chat_model import RetryingChatModel, RetryPolicy, budget_from_profile
from everthread.adapters.models.local import LocalModel
from everthread.adapters.models.named_models import NamedModels, resolve_model
from everthread.adapters.models.providers import KEY_VARIABLES, translate_error
from everthread.adapters.models.weights import LOCAL_DEFAULT
from everthread.adapters.stores.in_memory import InMemoryStore
from everthread.adapters.stores.in_memory.views import InMemoryCalibrations
from everthread.context import Budget
from everthread.core.ports import Calibrations
from everthread.models import named_models, resolve
from everthread.settings import Settings
from everthread.testing.scripted import Reply, ScriptedModel

QUICK = RetryPolicy(pause_seconds=0.001, silence_seconds=0.2)
ASKED = [HumanMessage("hello")]


async def heard(model: RetryingChatModel) -> str:
    return "".join([chunk.text async for chunk in model.stream(ASKED, (), RunnableConfig())])


# -- names -------------------------------------------------------------------------------------------------


def test_echo_gives_the_users_words_back(tmp_path: Path) -> None:
    assert resolve("scripted:echo").invoke("my words").text == "my words"


def test_a_script_in_a_file_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    steps = ["one", {"thinking": "hmm", "text": "two"}, {"calls": [{"name": "add", "args": {"a": 1}}]}, {"error": "no"}]
    file.write_text(json.dumps(steps), encoding="utf-8")
    model = resolve(f"scripted:{file}")
    assert model.invoke("a").text == "one"
    assert model.invoke("b").text == "two"
    assert model.invoke("c").tool_calls[0]["args"] == {"a": 1}
    with pytest.raises(RuntimeError, match="no"):
        model.invoke("d")


def test_a_script_may_begin_again(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(json.dumps({"repeat": True, "steps": ["a", "b"]}), encoding="utf-8")
    model = resolve(f"scripted:{file}")
    assert [model.invoke("?").text for _ in range(5)] == ["a", "b", "a", "b", "a"]


@pytest.mark.parametrize("content", ["", "[]", "no JSON", "[1]", '[{"txt": "typo"}]'])
def test_a_script_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "script.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(Invalid):
        resolve(f"scripted:{file}")


@pytest.mark.parametrize(
    ("name", "kind", "word"),
    [
        ("gpt-5", Invalid, "provider:name"),
        ("", Invalid, "provider:name"),
        ("nobody:nothing", Invalid, "provider:name"),
        ("scripted:/no/such/file.json", Invalid, "cannot read the script"),
        ("local:nothing", NotFound, "smollm2"),
        ("local:minilm", Invalid, "not a chat model"),
        ("local:smollm2", MissingExtra, "everthread models fetch smollm2"),
        ("cohere:command", ModelKeyMissing, "COHERE_API_KEY"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(tmp_path: Path, name: str, kind: type[EverthreadError], word: str) -> None:
    with pytest.raises(kind, match=word):
        resolve_model(name, models_dir=tmp_path, environ={})


@pytest.mark.parametrize("provider", sorted(KEY_VARIABLES))
def test_a_missing_key_is_named(tmp_path: Path, provider: str) -> None:
    with pytest.raises(ModelKeyMissing, match=KEY_VARIABLES[provider]):
        resolve_model(f"{provider}:some-model", models_dir=tmp_path, environ={})


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="langchain"):
        resolve_model("groq:llama", models_dir=tmp_path, environ={"GROQ_API_KEY": "x"})


def test_a_gguf_file_is_a_model(tmp_path: Path) -> None:
    model = resolve_model(f"gguf:{tmp_path / 'mine.gguf'}", models_dir=tmp_path)
    assert isinstance(model, LocalModel)


async def test_a_preference_chooses_among_the_models_that_are_set(tmp_path: Path) -> None:
    settings = Settings(model="scripted:echo", model_code="scripted:echo", models_dir=tmp_path)
    models = named_models(settings)
    assert models.default_for("vision") == "scripted:echo"
    assert NamedModels(models_dir=tmp_path).default_for("code") == LOCAL_DEFAULT
    assert NamedModels(models_dir=tmp_path, by_preference={"code": "a:b"}, default="c:d").default_for("code") == "a:b"
    assert (await models.get(None, "code")) is (await models.get("scripted:echo"))


def test_a_window_is_taken_from_the_models_profile() -> None:
    assert budget_from_profile(ScriptedModel(["x"])) == Budget()
    known = ScriptedModel(["x"])
    known.profile = {"max_input_tokens": 32_000, "max_output_tokens": 8_000}
    assert (budget_from_profile(known).window, budget_from_profile(known).output_reserve) == (32_000, 4_096)


# -- asking ------------------------------------------------------------------------------------------------


class Busy(Exception):
    status_code = 429


async def test_a_retryable_failure_is_tried_again_while_nothing_has_come() -> None:
    model = ScriptedModel([Busy("slow down"), Busy("slow down"), "at last"])
    assert await heard(RetryingChatModel(model, "m", retry=QUICK)) == "at last"
    assert len(model.requests) == 3


async def test_after_the_last_attempt_the_error_is_typed() -> None:
    model = ScriptedModel([Busy("no")] * 5)
    with pytest.raises(ModelBusy) as caught:
        await heard(RetryingChatModel(model, "m", retry=QUICK))
    assert len(model.requests) == 3
    assert isinstance(caught.value.__cause__, Busy)


async def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    model = ScriptedModel([Reply(text="half of it", error=Busy("no")), "whole"])
    with pytest.raises(ModelBusy):
        await heard(RetryingChatModel(model, "m", retry=QUICK))
    assert len(model.requests) == 1


async def test_a_model_that_is_silent_for_too_long_is_given_up() -> None:
    model = ScriptedModel([Reply(text="late", delay_seconds=5)] * 3)
    with pytest.raises(ModelTimeout, match="silent"):
        await heard(RetryingChatModel(model, "m", retry=RetryPolicy(attempts=1, silence_seconds=0.05)))


async def test_a_model_that_goes_on_talking_is_not() -> None:
    model = ScriptedModel([Reply(text="x" * 80, pace_seconds=0.03)])
    retry = RetryPolicy(attempts=1, silence_seconds=1.5)
    assert await heard(RetryingChatModel(model, "m", retry=retry)) == "x" * 80


async def test_a_stop_goes_through() -> None:
    task = asyncio.create_task(heard(RetryingChatModel(ScriptedModel([Reply(text="x", delay_seconds=9)]), "m")))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Refusal(Exception):
    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status_code = status


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Refusal("x", 401), ModelRefused),
        (Refusal("x", 404), ModelRefused),
        (Refusal("x", 408), ModelTimeout),
        (Refusal("x", 413), ModelOverflow),
        (Refusal("x", 429), ModelBusy),
        (Refusal("x", 503), ModelBusy),
        (Refusal("x", 529), ModelBusy),
        (Refusal("prompt is too long: 210000 tokens > 200000 maximum", 400), ModelOverflow),
        (Refusal("This model's maximum context length is 8192 tokens", 400), ModelOverflow),
        (Refusal("bad parameter", 400), ModelRefused),
        (ContextOverflowError("x"), ModelOverflow),
        (ConnectionError("x"), ModelUnreachable),
        (TimeoutError(), ModelTimeout),
        (RuntimeError("x"), ModelError),
    ],
)
def test_what_providers_raise_becomes_ours(problem: Exception, kind: type[ModelError]) -> None:
    assert type(translate_error(problem, "m")) is kind


async def test_reported_usage_makes_the_count_better() -> None:
    model = RetryingChatModel(ScriptedModel(["x"]), "m")
    assert model.budget.factor == 1.3
    await model.report_usage(counted=1_000, usage={"input_tokens": 1_100})
    assert 1.1 < model.budget.factor < 1.2
    before = model.budget.limit
    await model.report_overflow(counted=200_000)
    assert model.budget.limit < before


class Writing(InMemoryCalibrations):
    """Counts what is kept."""

    writes = 0

    async def keep(self, model: str, factor: float, samples: int) -> None:
        self.writes += 1
        await super().keep(model, factor, samples)


async def model_of(store: Calibrations, tmp_path: Path, base_url: str | None = None) -> RetryingChatModel:
    models = NamedModels(models_dir=tmp_path, calibrations=store, base_url=base_url)
    return await models.get(f"gguf:{tmp_path / 'some.gguf'}" if base_url is None else "openai:small")


async def test_what_is_learnt_of_a_models_counting_outlives_the_process(durable_url: str, tmp_path: Path) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        model = await model_of(et.store.calibrations, tmp_path)
        await model.report_usage(counted=1_000, usage={"input_tokens": 2_000})
        learnt = model.budget.factor
        assert learnt > 2
    async with everthread.open(durable_url, worker=False) as et:
        again = await model_of(et.store.calibrations, tmp_path)
        assert again.budget.factor == learnt
        await again.report_usage(counted=1_000, usage={"input_tokens": 1_000})
        assert 1.02 < again.budget.factor < learnt  # eased, not begun anew


async def test_a_refusal_is_remembered_too(durable_url: str, tmp_path: Path) -> None:
    async with everthread.open(durable_url, worker=False) as et:
        model = await model_of(et.store.calibrations, tmp_path)
        await model.report_overflow(counted=200_000)
        limit = model.budget.limit
    async with everthread.open(durable_url, worker=False) as et:
        assert (await model_of(et.store.calibrations, tmp_path)).budget.limit == limit


async def test_only_a_change_that_matters_is_written(tmp_path: Path) -> None:
    store = Writing()
    model = await model_of(store, tmp_path)
    for _ in range(20):
        await model.report_usage(counted=1_000, usage={"input_tokens": 1_500})
    assert store.writes == 1


async def test_one_name_at_two_servers_is_two_models(tmp_path: Path) -> None:
    pytest.importorskip("langchain_openai")
    store = InMemoryStore()
    first = await model_of(store.calibrations, tmp_path, "http://user:secret@127.0.0.1:1/v1")
    await first.report_usage(counted=1_000, usage={"input_tokens": 3_000})
    second = await model_of(store.calibrations, tmp_path, "http://127.0.0.1:2/v1")
    assert second.budget.factor == 1.3
    assert first.calibration.model == "openai:small@127.0.0.1:1"


async def test_turns_with_a_model_object_go_on_with_what_was_learnt(tmp_path: Path) -> None:
    models = NamedModels(models_dir=tmp_path, calibrations=InMemoryStore().calibrations)
    model = LocalModel(path=tmp_path / "some.gguf")
    await (await models.get(model)).report_usage(counted=1_000, usage={"input_tokens": 2_000})
    assert (await models.get(model)).budget.factor > 2


# -- a model on this machine -------------------------------------------------------------------------------


class Slow(LocalModel):
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="hi"))


def test_a_model_that_calls_no_tools_is_offered_none(tmp_path: Path) -> None:
    assert not RetryingChatModel(Slow(path=tmp_path), "m").supports_tools
    assert RetryingChatModel(ScriptedModel(["x"]), "m").supports_tools


async def test_a_file_that_is_not_there_says_how_to_fetch_the_small_one(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    with pytest.raises(MissingExtra, match="everthread models fetch smollm2"):
        await heard(RetryingChatModel(LocalModel(path=tmp_path / "none.gguf"), "m", retry=QUICK))

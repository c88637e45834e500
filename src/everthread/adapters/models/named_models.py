"""Chat models by name, and the configured models of a turn.

provider:name        any provider whose LangChain package is installed, such as openai:gpt-5-mini
local:smollm2        the small model on this machine (the default)
gguf:/path/to.gguf   any other model on this machine
scripted:echo        gives the user's words back; scripted:FILE.json answers by a script
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from everthread.adapters.models import weights
from everthread.adapters.models.chat_model import (
    CalibrationTracker,
    RetryingChatModel,
    RetryPolicy,
    budget_from_profile,
    calibration_key,
)
from everthread.adapters.models.local import ANSWER_TOKENS, TOY_NOTICE, WINDOW_TOKENS, LocalModel
from everthread.adapters.models.providers import (
    base_url_for,
    check_key,
    error_kind,
    model_name,
    options_for_address,
    without_retries,
)
from everthread.adapters.models.scripted import ScriptedModel, scripted_by_name
from everthread.adapters.models.weights import LOCAL_DEFAULT
from everthread.context.budget import Budget
from everthread.context.message_format import Provider
from everthread.core.errors import Invalid, MissingExtra, StoreError
from everthread.core.ports import Calibrations

_RULES: Final[Mapping[str, Provider]] = {"openai": "openai", "anthropic": "anthropic"}
_EXAMPLES: Final = "openai:gpt-5-mini, gguf:/path/to/model.gguf, local:smollm2 or scripted:echo"


def resolve_model(
    name: str,
    *,
    models_dir: Path,
    base_url: str | None = None,
    environ: Mapping[str, str] | None = None,
    **options: Any,
) -> BaseChatModel:
    """The chat model by this name; Invalid, MissingExtra or ModelKeyMissing say what is wrong and what to do.

    `options` go to the provider's package.
    """
    provider, separator, model = name.partition(":")
    if not separator or not model:
        raise Invalid(f"{name!r} is not a model's name; write provider:name, such as {_EXAMPLES}", field="model")
    if provider == "scripted":
        return scripted_by_name(model)
    if provider == "local":
        return LocalModel(path=_local_path(models_dir, model))
    if provider == "gguf":
        return LocalModel(path=Path(model).expanduser())
    known = os.environ if environ is None else environ
    check_key(name, base_url, known)
    return _from_provider(name, {**options_for_address(provider, base_url, known), **options})


def _local_path(models_dir: Path, name: str) -> Path:
    known = weights.weights_by_name(name)
    files = [file.name for file in known.files if file.name.endswith(".gguf")]
    if not files:
        raise Invalid(f"{name!r} is not a chat model", field="model")
    return weights.weights_folder(models_dir, name) / files[0]


def _from_provider(name: str, options: Mapping[str, Any]) -> BaseChatModel:
    try:
        model = init_chat_model(name, **options)
    except ImportError as problem:
        raise MissingExtra(f"the model {name} needs a package that is not installed: {problem}") from problem
    except Exception as problem:  # providers' packages raise anything, some of it with the key
        raise Invalid(
            f"cannot make a chat model from {name!r} ({error_kind(problem)}); write provider:name, such as "
            f"{_EXAMPLES}, and set what the provider asks for",
            field="model",
        ) from problem
    assert isinstance(model, BaseChatModel)
    return model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedModels:
    """The configured models, each made when it is first used."""

    models_dir: Path
    default: str | BaseChatModel | None = None
    by_preference: Mapping[str, str] = field(default_factory=dict)
    """vision, code, reasoning; the default where there is none."""
    base_url: str | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    calibrations: Calibrations | None = None
    """Where calibrations are stored."""
    _models: dict[str, RetryingChatModel] = field(default_factory=dict)
    _calibrations: dict[str, CalibrationTracker] = field(default_factory=dict)

    def default_for(self, preference: str | None = None) -> str | BaseChatModel:
        """Which model is meant when none is chosen."""
        return self.by_preference.get(preference or "") or self.default or LOCAL_DEFAULT

    async def get(self, given: str | BaseChatModel | None, preference: str | None = None) -> RetryingChatModel:
        """The model to call. Making one imports a provider's package or loads weights, hence the thread."""
        choice = given or self.default_for(preference)
        if isinstance(choice, BaseChatModel):
            return await self._wrap(choice, model_name(choice), "")
        name = choice
        if name not in self._models:
            model = await asyncio.to_thread(self._make, name)
            self._models[name] = await self._wrap(model, name, name.partition(":")[0])
        return self._models[name]

    def _make(self, name: str) -> BaseChatModel:
        """A model that leaves retries and timeouts to us."""
        options = without_retries(name.partition(":")[0])
        model = resolve_model(name, models_dir=self.models_dir, base_url=self.base_url, **options)
        if hasattr(model, "stream_chunk_timeout"):
            model.stream_chunk_timeout = None
        return model

    async def _wrap(self, model: BaseChatModel, name: str, provider: str) -> RetryingChatModel:
        address, is_scripted = base_url_for(provider, self.base_url), isinstance(model, ScriptedModel)
        return RetryingChatModel(
            model=model,
            name=name,
            provider=_RULES.get(provider),
            base_budget=_budget(model),
            is_exact=is_scripted or (provider == "openai" and address is None),
            calibration=CalibrationTracker(name)
            if is_scripted
            else await self._calibration(calibration_key(name, address)),
            retry=self.retry,
            notice=TOY_NOTICE if name == LOCAL_DEFAULT else None,
        )

    async def _calibration(self, name: str) -> CalibrationTracker:
        if name not in self._calibrations:
            tracker = CalibrationTracker(name, store=self.calibrations)
            with suppress(StoreError):  # the default factor will do until the database is back
                await tracker.load()
            self._calibrations.setdefault(name, tracker)
        return self._calibrations[name]


def _budget(model: BaseChatModel) -> Budget:
    if isinstance(model, LocalModel):
        return Budget(window=min(model.window, WINDOW_TOKENS), output_reserve=ANSWER_TOKENS)
    return budget_from_profile(model)

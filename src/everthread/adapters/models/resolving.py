"""From a name to a chat model, and from what is set to the model that a turn asks.

provider:name        any provider whose LangChain package is installed, such as openai:gpt-5-mini
local:smollm2        the small model on this machine (what is used when nothing is set)
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
from everthread.adapters.models.calibrating import Counting, name_at
from everthread.adapters.models.local import ANSWER_TOKENS, TOY_NOTICE, WINDOW_TOKENS, LocalModel
from everthread.adapters.models.providers import address_for, addressed, check_key, without_retries
from everthread.adapters.models.scripted import ScriptedModel, scripted_by_name
from everthread.adapters.models.summariser import kind_of
from everthread.adapters.models.voices import AskedModel, Patience, window_of
from everthread.context.budget import Budget
from everthread.context.message_format import Provider
from everthread.core.errors import Invalid, MissingExtra, StoreError
from everthread.core.ports import Calibrations

LOCAL_DEFAULT: Final = "local:smollm2"
_RULES: Final[Mapping[str, Provider]] = {"openai": "openai", "anthropic": "anthropic"}
_EXAMPLES: Final = "openai:gpt-5-mini, gguf:/path/to/model.gguf, local:smollm2 or scripted:echo"


def resolved(
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
        raise Invalid(f"{name!r} names no model; write provider:name, such as {_EXAMPLES}", field="model")
    if provider == "scripted":
        return scripted_by_name(model)
    if provider == "local":
        return LocalModel(path=_fetched(models_dir, model))
    if provider == "gguf":
        return LocalModel(path=Path(model).expanduser())
    known = os.environ if environ is None else environ
    check_key(name, base_url, known)
    return _of_provider(name, {**addressed(provider, base_url, known), **options})


def _fetched(models_dir: Path, name: str) -> Path:
    known = weights.named(name)
    files = [file.name for file in known.files if file.name.endswith(".gguf")]
    if not files:
        raise Invalid(f"{name!r} is no chat model", field="model")
    return weights.located(models_dir, name) / files[0]


def _of_provider(name: str, options: Mapping[str, Any]) -> BaseChatModel:
    try:
        model = init_chat_model(name, **options)
    except ImportError as problem:
        raise MissingExtra(f"the model {name} needs a package that is not installed: {problem}") from problem
    except Exception as problem:  # providers' packages raise anything, some of it with the key
        raise Invalid(
            f"no chat model can be made of {name!r} ({kind_of(problem)}); write provider:name, such as {_EXAMPLES}, "
            "and set what the provider asks for",
            field="model",
        ) from problem
    assert isinstance(model, BaseChatModel)
    return model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedModels:
    """The models that are set, each made when it is first asked for."""

    models_dir: Path
    default: str | BaseChatModel | None = None
    by_preference: Mapping[str, str] = field(default_factory=dict)
    """vision, code, reasoning; where none is set, the default."""
    base_url: str | None = None
    patience: Patience = field(default_factory=Patience)
    calibrations: Calibrations | None = None
    """Where what is learnt of their counting is kept."""
    _made: dict[str, AskedModel] = field(default_factory=dict)
    _countings: dict[str, Counting] = field(default_factory=dict)

    def default_for(self, preference: str | None = None) -> str | BaseChatModel:
        """Which model is meant when none is chosen."""
        return self.by_preference.get(preference or "") or self.default or LOCAL_DEFAULT

    async def get(self, given: str | BaseChatModel | None, preference: str | None = None) -> AskedModel:
        """The model to ask. Making one imports a provider's package or loads weights, hence the thread."""
        choice = given or self.default_for(preference)
        if isinstance(choice, BaseChatModel):
            return await self._asked(choice, _name_of(choice) or type(choice).__name__, "")
        name = choice
        if name not in self._made:
            model = await asyncio.to_thread(self._made_of, name)
            self._made[name] = await self._asked(model, name, name.partition(":")[0])
        return self._made[name]

    def _made_of(self, name: str) -> BaseChatModel:
        """A model that leaves it to us to try again, and to say how long it may be silent."""
        options = without_retries(name.partition(":")[0])
        model = resolved(name, models_dir=self.models_dir, base_url=self.base_url, **options)
        if hasattr(model, "stream_chunk_timeout"):
            model.stream_chunk_timeout = None
        return model

    async def _asked(self, model: BaseChatModel, name: str, provider: str) -> AskedModel:
        address, is_scripted = address_for(provider, self.base_url), isinstance(model, ScriptedModel)
        return AskedModel(
            model=model,
            name=name,
            provider=_RULES.get(provider),
            window=_window(model),
            is_exact=is_scripted or (provider == "openai" and address is None),
            counting=Counting(name) if is_scripted else await self._counting(name_at(name, address)),
            patience=self.patience,
            notice=TOY_NOTICE if name == LOCAL_DEFAULT else None,
        )

    async def _counting(self, name: str) -> Counting:
        if name not in self._countings:
            counting = Counting(name, place=self.calibrations)
            with suppress(StoreError):  # a guess will do until the database is back
                await counting.begin()
            self._countings.setdefault(name, counting)
        return self._countings[name]


def _window(model: BaseChatModel) -> Budget:
    if isinstance(model, LocalModel):
        return Budget(window=min(model.window, WINDOW_TOKENS), output_reserve=ANSWER_TOKENS)
    return window_of(model)


def _name_of(model: BaseChatModel) -> str:
    known = (getattr(model, field, None) for field in ("model_name", "model", "model_id"))
    return next((name for name in known if isinstance(name, str) and name), "")

"""Chat models by name.

from everthread.models import resolve
model = resolve("openai:gpt-5-mini")     # or local:smollm2, gguf:/path/to/model.gguf, scripted:echo
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from everthread.context.budget import Budget
from everthread.core.errors import EverthreadError, MissingExtra
from everthread.settings import Settings

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from everthread.adapters.models.named_models import NamedModels
    from everthread.turn.agent import ModelProvider


def resolve(name: str | None = None, *, settings: Settings | None = None) -> BaseChatModel:
    """The LangChain chat model by this name; without one, the model that is set, or the small local one.

    Invalid says that there is none, MissingExtra which package to install or which weights to fetch, ModelKeyMissing
    which variable to set.
    """
    known = named_models(settings or Settings.load())
    chosen = name or known.default_for()
    model: BaseChatModel = _named_models_module().resolve_model(
        chosen, models_dir=known.models_dir, base_url=known.base_url
    )
    return model


def named_models(settings: Settings) -> NamedModels:
    """The models that the settings name."""
    module = _named_models_module()
    preferences = {"vision": settings.model_vision, "code": settings.model_code, "reasoning": settings.model_reasoning}
    models: NamedModels = module.NamedModels(
        models_dir=settings.models_dir,
        default=settings.model,
        by_preference={name: model for name, model in preferences.items() if model},
        base_url=settings.model_base_url,
        retry=module.RetryPolicy(silence_seconds=settings.model_seconds),
    )
    return models


class AnsweringModel(NamedTuple):
    """The model that would answer, and how large its requests may be."""

    name: str | None
    """None where it cannot be made, as without its key."""
    budget: Budget


async def answering_model(models: ModelProvider, name: str | None = None) -> AnsweringModel:
    """The model by this name, or the one that is set; with the usual budget where it cannot be made: how full a request
    is can be told all the same."""
    try:
        found = await models.get(name, None)
    except EverthreadError:
        return AnsweringModel(name, Budget())
    return AnsweringModel(found.name, found.budget)


def _named_models_module() -> Any:
    try:
        from everthread.adapters.models import named_models as module  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("models need an extra: pip install 'everthread[agent]'") from problem
    return module

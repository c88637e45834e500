"""Which models a caller may name, and which of them the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from everthread.adapters.models.weights import LOCAL_DEFAULT
from everthread.compaction.policy import NO_MODEL
from everthread.core.errors import Invalid
from everthread.settings import Settings

_ON_THIS_MACHINE = frozenset({"gguf", "scripted", "local", "huggingface"})
"""Providers whose models are files: LangChain's loads a folder of this name, or downloads and runs it."""


def check_summary_model(changes: Mapping[str, object], in_effect: str | None, settings: Settings) -> None:
    """The same for the model that writes summaries. What is in effect may be sent back."""
    name = changes.get("summary_model")
    if isinstance(name, str) and name not in (NO_MODEL, in_effect):
        check_model(name, settings, field="summary_model")


def check_model(name: str | None, settings: Settings, field: str = "model") -> None:
    """Callers may name a provider's model; only the settings may name a file of the server."""
    if name is None or name in configured_models(settings) or name == "scripted:echo":
        return
    if name == LOCAL_DEFAULT and not configured_models(settings):
        return
    if name.partition(":")[0].strip().lower() in _ON_THIS_MACHINE:
        raise Invalid(
            "only the settings of the server may name a model on its machine; name a provider and its model, such as "
            "openai:gpt-5-mini",
            field=field,
        )
    if ":" not in name:
        raise Invalid("must name a provider and its model, such as openai:gpt-5-mini", field=field)


def configured_models(settings: Settings) -> list[str]:
    """The models that the settings name, the one that answers first; none where only the small local one can."""
    named = (settings.model, settings.model_vision, settings.model_code, settings.model_reasoning)
    return list(dict.fromkeys(name for name in named if name))

"""Which models a caller may name, and which of them the settings name."""

from __future__ import annotations

from everthread.core.errors import Invalid
from everthread.settings import Settings


def check_model(name: str | None, settings: Settings) -> None:
    """Callers may name a provider's model; only the settings may name a file of the server."""
    if name is None or name in configured_models(settings) or name == "scripted:echo":
        return
    if name.partition(":")[0].strip().lower() in ("gguf", "scripted", "local") or ":" not in name:
        raise Invalid("must name a provider and its model, such as openai:gpt-5-mini", field="model")


def configured_models(settings: Settings) -> list[str]:
    """The models that the settings name, the one that answers first; none where only the small local one can."""
    named = (settings.model, settings.model_vision, settings.model_code, settings.model_reasoning)
    return list(dict.fromkeys(name for name in named if name))

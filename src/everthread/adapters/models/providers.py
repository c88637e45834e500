"""What models of each provider are made with: their key, the address that is set, and whose the retries are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from everthread.core.errors import ModelKeyMissing

KEYS: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks": "FIREWORKS_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "perplexity": "PPLX_API_KEY",
    "together": "TOGETHER_API_KEY",
    "xai": "XAI_API_KEY",
}
"""The variable in which each provider's package looks for its key."""
_RETRYING: Final = frozenset({"anthropic", "deepseek", "groq", "openai", "together", "xai"})
"""Whose clients try again by themselves: within our own attempts each would be made three times."""


def key_variable(name: str) -> str | None:
    """The variable with the key of a model that is named `provider:name`."""
    return KEYS.get(name.partition(":")[0])


def address_for(provider: str, base_url: str | None) -> str | None:
    """The address that is set is an OpenAI-compatible server's: no other provider's requests, or key, go there."""
    return base_url if provider == "openai" else None


def check_key(name: str, base_url: str | None, environ: Mapping[str, str]) -> None:
    """ModelKeyMissing when a model needs a key that is not set."""
    provider = name.partition(":")[0]
    key = KEYS.get(provider)
    if key is not None and address_for(provider, base_url) is None and not environ.get(key):
        raise ModelKeyMissing(f"the model {name} needs a key: set {key}, or choose another with EVERTHREAD_MODEL")


def addressed(provider: str, base_url: str | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """What a model behind that address is made with; nothing for any other."""
    address = address_for(provider, base_url)
    if address is None:
        return {}
    options: dict[str, Any] = {"base_url": address, "stream_usage": True}  # reported only when asked for, beside OpenAI
    if not environ.get(KEYS[provider]):
        options["api_key"] = "none"  # a server of one's own often asks for none, but the package wants one
    return options


def without_retries(provider: str) -> dict[str, Any]:
    """What leaves trying again to whoever asks."""
    return {"max_retries": 0} if provider in _RETRYING else {}

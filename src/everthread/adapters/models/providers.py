"""What is special to each model provider: its key, its address, its own retries, and what its errors mean.

Providers' error texts may quote the request or a key, so ours name the type only; the provider's own error is the
`__cause__`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from langchain_core import exceptions as lc_exceptions

from everthread.core.errors import (
    EverthreadError,
    ModelBusy,
    ModelError,
    ModelKeyMissing,
    ModelOverflow,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)

KEY_VARIABLES: Final[Mapping[str, str]] = {
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
"""The environment variable in which each provider's package looks for its key."""
_RETRYING_CLIENTS: Final = frozenset({"anthropic", "deepseek", "groq", "openai", "together", "xai"})
"""Providers whose clients retry on their own: within our own attempts, each would be made three times."""


def key_variable(name: str) -> str | None:
    """The variable with the key of a model that is named `provider:name`."""
    return KEY_VARIABLES.get(name.partition(":")[0])


def base_url_for(provider: str, base_url: str | None) -> str | None:
    """The configured address is an OpenAI-compatible server's: no other provider's requests, or keys, go there."""
    return base_url if provider == "openai" else None


def check_key(
    name: str, base_url: str | None, environ: Mapping[str, str], *, chosen_with: str = "EVERTHREAD_MODEL"
) -> None:
    """ModelKeyMissing when a model needs a key that is not set; it names the setting that chooses another."""
    provider = name.partition(":")[0]
    key = KEY_VARIABLES.get(provider)
    if key is not None and base_url_for(provider, base_url) is None and not environ.get(key):
        raise ModelKeyMissing(f"the model {name} needs a key: set {key}, or choose another with {chosen_with}")


def options_for_address(provider: str, base_url: str | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """The options of a model behind that address; none for any other."""
    address = base_url_for(provider, base_url)
    if address is None:
        return {}
    options: dict[str, Any] = {"base_url": address, "stream_usage": True}  # reported only when asked for, beside OpenAI
    if not environ.get(KEY_VARIABLES[provider]):
        options["api_key"] = "none"  # a server of one's own often asks for none, but the package wants one
    return options


def without_retries(provider: str) -> dict[str, Any]:
    """The options that leave retries to the caller."""
    return {"max_retries": 0} if provider in _RETRYING_CLIENTS else {}


_ERROR_TYPES: Final = (
    (lc_exceptions.ContextOverflowError, ModelOverflow),
    (lc_exceptions.ModelRateLimitError, ModelBusy),
    (lc_exceptions.ModelAPIError, ModelBusy),
    (lc_exceptions.ModelTimeoutError, ModelTimeout),
    (lc_exceptions.ModelConnectionError, ModelUnreachable),
    (TimeoutError, ModelTimeout),
    (ConnectionError, ModelUnreachable),
)
_OVERFLOW_TEXT: Final = re.compile(
    r"context_length_exceeded|maximum context length|prompt is too long|too many (?:input )?tokens|context window"
    r"|exceed\w* the (?:available )?context|input is too long",
    re.IGNORECASE,
)
_CONNECTION_ERROR: Final = re.compile("Connect|RemoteProtocol|ReadError|WriteError")
"""The names of httpx's errors for a connection that fails or breaks; most clients are built on it."""
_REASONS: Final = {
    ModelOverflow: "found the request too long",
    ModelBusy: "has no capacity for it now; try again later",
    ModelTimeout: "did not answer in time; try again, or raise model_seconds",
    ModelUnreachable: "cannot be reached; check the network and the model's base_url",
    ModelRefused: "refused the request; check its key, the model's name and the account",
    ModelError: "failed",
}


def translate_error(problem: BaseException, name: str) -> EverthreadError:
    """A provider's error as ours; one of ours stays as it is."""
    if isinstance(problem, EverthreadError):
        return problem
    kind = _classify(problem)
    reason = _refusal(problem, name) if kind is ModelRefused else _REASONS[kind]
    return kind(f"the model {name} {reason} ({error_kind(problem)}); what was said is kept")


def _refusal(problem: BaseException, name: str) -> str:
    """Where the key was rejected, its variable is named."""
    variable = key_variable(name)
    if variable is None or getattr(problem, "status_code", None) not in (401, 403):
        return _REASONS[ModelRefused]
    return f"does not take its key; check what is set in {variable}"


def retry_after_seconds(problem: BaseException) -> float:
    """How many seconds a busy provider asks to wait (`Retry-After`); 0 when it does not say."""
    headers = getattr(getattr(problem, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", 0)))
    except ValueError:  # a date: rare, and by another clock
        return 0.0


def _classify(problem: BaseException) -> type[ModelError]:
    for known, ours in _ERROR_TYPES:
        if isinstance(problem, known):
            return ours
    status = getattr(problem, "status_code", None)
    if status == 413 or (status in (None, 400, 422) and _OVERFLOW_TEXT.search(str(problem))):
        return ModelOverflow
    if isinstance(status, int):
        return _by_status(status)
    if isinstance(problem, lc_exceptions.ModelError):
        return ModelRefused
    type_name = type(problem).__name__
    if "Timeout" in type_name:
        return ModelTimeout
    return ModelUnreachable if _CONNECTION_ERROR.search(type_name) else ModelError


def _by_status(status: int) -> type[ModelError]:
    if status == 408:
        return ModelTimeout
    if status in (409, 425, 429) or status >= 500:
        return ModelBusy
    return ModelRefused if 400 <= status < 500 else ModelError


def error_kind(problem: BaseException) -> str:
    """`APIStatusError (HTTP 429)`, `APIConnectionError from ConnectError`: never the provider's own text."""
    status = getattr(problem, "status_code", None)
    chain = [problem] if problem.__cause__ is None else [problem, problem.__cause__]
    text = " from ".join(type(one).__name__ for one in chain)
    return f"{text} (HTTP {status})" if isinstance(status, int) else text


def model_name(model: object) -> str:
    """Return the name of a LangChain model from the field in which its provider's class keeps it, else its class's."""
    inner = getattr(model, "bound", model)  # of a model with tools or options bound to it
    known = (getattr(inner, field, None) for field in ("model_name", "model", "model_id"))
    return next((name for name in known if isinstance(name, str) and name), type(inner).__name__)

"""What providers raise, as our own errors. Their texts may quote the request or a key, so ours name the kind only; the
provider's own error is the `__cause__`.
"""

from __future__ import annotations

import re
from typing import Final

from langchain_core import exceptions as theirs

from everthread.adapters.models.providers import key_variable
from everthread.adapters.models.summariser import kind_of
from everthread.core.errors import (
    EverthreadError,
    ModelBusy,
    ModelError,
    ModelOverflow,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)

_TYPED: Final = (
    (theirs.ContextOverflowError, ModelOverflow),
    (theirs.ModelRateLimitError, ModelBusy),
    (theirs.ModelAPIError, ModelBusy),
    (theirs.ModelTimeoutError, ModelTimeout),
    (theirs.ModelConnectionError, ModelUnreachable),
    (TimeoutError, ModelTimeout),
    (ConnectionError, ModelUnreachable),
)
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|prompt is too long|too many (?:input )?tokens|context window"
    r"|exceed\w* the (?:available )?context|input is too long",
    re.IGNORECASE,
)
_LOST_LINE: Final = re.compile("Connect|RemoteProtocol|ReadError|WriteError")
"""What httpx, under most clients, calls a connection that is not made or breaks off."""
_SAID: Final = {
    ModelOverflow: "found the request too long",
    ModelBusy: "has no capacity for it now; try again later",
    ModelTimeout: "did not answer in time; try again, or raise model_seconds",
    ModelUnreachable: "cannot be reached; check the network and the model's base_url",
    ModelRefused: "refused the request; check its key, the model's name and the account",
    ModelError: "failed",
}


def translated(problem: BaseException, name: str) -> EverthreadError:
    """A provider's error as ours; one of ours stays as it is."""
    if isinstance(problem, EverthreadError):
        return problem
    kind = _kind(problem)
    said = _refusal(problem, name) if kind is ModelRefused else _SAID[kind]
    return kind(f"the model {name} {said} ({kind_of(problem)}); what was said is kept")


def _refusal(problem: BaseException, name: str) -> str:
    """A key that is not taken is named by its variable."""
    variable = key_variable(name)
    if variable is None or getattr(problem, "status_code", None) not in (401, 403):
        return _SAID[ModelRefused]
    return f"does not take its key; check what is set in {variable}"


def pause_asked_for(problem: BaseException) -> float:
    """The seconds after which a busy provider wants to be asked again; 0 when it does not say."""
    headers = getattr(getattr(problem, "response", None), "headers", None) or {}
    try:
        return max(0.0, float(headers.get("retry-after", 0)))
    except ValueError:  # a date: rare, and another clock's
        return 0.0


def _kind(problem: BaseException) -> type[ModelError]:
    for known, ours in _TYPED:
        if isinstance(problem, known):
            return ours
    status = getattr(problem, "status_code", None)
    if status == 413 or (status in (None, 400, 422) and _TOO_LONG.search(str(problem))):
        return ModelOverflow
    if isinstance(status, int):
        return _by_status(status)
    if isinstance(problem, theirs.ModelError):
        return ModelRefused
    word = type(problem).__name__
    if "Timeout" in word:
        return ModelTimeout
    return ModelUnreachable if _LOST_LINE.search(word) else ModelError


def _by_status(status: int) -> type[ModelError]:
    if status == 408:
        return ModelTimeout
    if status in (409, 425, 429) or status >= 500:
        return ModelBusy
    return ModelRefused if 400 <= status < 500 else ModelError

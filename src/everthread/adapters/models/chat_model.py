"""A LangChain chat model as a turn calls it: with retries before the first chunk, a timeout for silence, typed errors,
and token counts calibrated by the usage that the provider reports.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig

from everthread.adapters.models.direct_stream import stream_chunks
from everthread.adapters.models.providers import retry_after_seconds, translate_error
from everthread.context.budget import Budget, Calibration, apply_calibration, calibrate, calibrate_after_overflow
from everthread.context.message_format import Provider
from everthread.core.errors import EverthreadError, ModelTimeout, StoreError
from everthread.core.ports import Calibrations
from everthread.core.timeouts import restart, time_limit

_CHECK_SECONDS: Final = 1.0
"""How often the timeout is moved on while chunks come: doing it for each would cost more than the chunk."""
_MIN_RESERVE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently a model is called."""

    attempts: int = 3
    pause_seconds: float = 0.5
    """Before the second attempt; doubled before each further one, with jitter."""
    silence_seconds: float = 120.0
    """How long nothing may come before the call is given up."""
    max_pause_seconds: float = 30.0
    """The longest `Retry-After` of a provider that is obeyed."""

    def pause(self, attempt: int, retry_after: float = 0.0) -> float:
        own = self.pause_seconds * 2.0**attempt * random.uniform(0.8, 1.2)
        return max(own, min(retry_after, self.max_pause_seconds))


class _BoundModel(NamedTuple):
    model: Runnable[Any, Any]
    options: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class RetryingChatModel:
    """One model, for all turns that use it."""

    model: BaseChatModel
    name: str
    provider: Provider | None = None
    base_budget: Budget = field(default_factory=Budget)
    is_exact: bool = False
    """Whether our count is the model's own."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    calibration: CalibrationTracker = field(default_factory=lambda: CalibrationTracker(""))
    """Learnt from reported usage; shared by all models of the same name."""
    notice: str | None = None
    """What its users must know about it."""
    _bound: tuple[list[Mapping[str, Any]], _BoundModel] | None = None

    @property
    def budget(self) -> Budget:
        known = self.calibration.known
        return self.base_budget if self.is_exact and not known.samples else apply_calibration(self.base_budget, known)

    @property
    def supports_tools(self) -> bool:
        """Whether it can call tools at all."""
        return type(self.model).bind_tools is not BaseChatModel.bind_tools

    async def report_usage(self, *, counted: int, usage: Mapping[str, int]) -> None:
        if not self.is_exact:
            await self.calibration.record_usage(counted=counted, reported=usage.get("input_tokens", 0))

    async def report_overflow(self, *, counted: int) -> None:
        await self.calibration.record_overflow(
            counted=counted, room=self.base_budget.window - self.base_budget.output_reserve
        )

    async def stream(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], config: RunnableConfig
    ) -> AsyncIterator[AIMessageChunk]:
        """The answer in chunks. One generator: each further one that a chunk passes through costs a twentieth of it."""
        model, options = self._bind(tools)
        limit, clock = self.retry.silence_seconds, asyncio.get_running_loop().time
        for attempt in range(self.retry.attempts):
            has_chunks = False
            try:
                async with time_limit(limit) as deadline:
                    check_at = clock() + _CHECK_SECONDS
                    async for chunk in stream_chunks(model, messages, config, options):
                        has_chunks = True
                        yield chunk
                        if (now := clock()) > check_at:
                            check_at = now + _CHECK_SECONDS
                            restart(deadline, limit)
                return
            except Exception as problem:  # noqa: BLE001 - the stream's edge: providers' errors have no root
                failure = self._failure(problem)
                if has_chunks or not failure.retryable or attempt + 1 == self.retry.attempts:
                    raise failure from (None if failure is problem else problem)
                await asyncio.sleep(self.retry.pause(attempt, retry_after_seconds(problem)))

    def _failure(self, problem: Exception) -> EverthreadError:
        if isinstance(problem, TimeoutError):
            limit = self.retry.silence_seconds
            return ModelTimeout(f"the model {self.name} was silent for {limit:g} seconds; try again")
        return translate_error(problem, self.name)

    def _bind(self, tools: Sequence[Mapping[str, Any]]) -> _BoundModel:
        """The model to call, and its options."""
        if not tools:
            return _BoundModel(self.model, {})
        known = list(tools)
        if self._bound is None or self._bound[0] != known:
            self._bound = (known, _unwrap(self.model.bind_tools([dict(tool) for tool in tools])))
        return self._bound[1]


def _unwrap(bound: Runnable[Any, Any]) -> _BoundModel:
    """A model with options as model and options: LangChain's wrapper does nothing with a chunk but pass it on."""
    if not isinstance(bound, RunnableBinding) or type(bound).astream is not RunnableBinding.astream:
        return _BoundModel(bound, {})
    return _BoundModel(bound, {}) if bound.config or bound.config_factories else _BoundModel(bound.bound, bound.kwargs)


def budget_from_profile(model: BaseChatModel) -> Budget:
    """The size of a model's requests by its profile; a common size where it has none."""
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    most = profile.get("max_input_tokens")
    if not isinstance(most, int) or most < 2 * _MIN_RESERVE:
        return Budget()
    answer = profile.get("max_output_tokens")
    reserve = min(answer if isinstance(answer, int) else Budget().output_reserve, Budget().output_reserve, most // 4)
    return Budget(window=most, output_reserve=max(_MIN_RESERVE, reserve))


_MIN_CHANGE: Final = 0.02
"""A smaller change of the factor is not written: the stored one is only a starting point, and a turn writes enough."""


@dataclass(slots=True, eq=False)
class CalibrationTracker:
    """What is known of how one model counts tokens: learnt from what it reports, kept in the database."""

    model: str
    known: Calibration = field(default_factory=Calibration)
    store: Calibrations | None = None
    _saved: Calibration | None = None

    async def load(self) -> None:
        """Go on with what was learnt before."""
        found = None if self.store is None else await self.store.get(self.model)
        if found is not None:
            self.known = self._saved = Calibration(factor=found[0], samples=found[1])

    async def record_usage(self, *, counted: int, reported: int) -> None:
        """The provider's own count of a request."""
        self.known = calibrate(self.known, counted=counted, reported=reported)
        await self._save()

    async def record_overflow(self, *, counted: int, room: int) -> None:
        """The provider found a request too long."""
        self.known = calibrate_after_overflow(self.known, counted=counted, room=room)
        await self._save()

    async def _save(self) -> None:
        if self.store is None or not self.known.samples or not self._has_changed():
            return
        with suppress(StoreError):  # not worth failing a turn for; the next report tries again
            await self.store.keep(self.model, self.known.factor, self.known.samples)
            self._saved = self.known

    def _has_changed(self) -> bool:
        return self._saved is None or abs(self.known.factor / self._saved.factor - 1) > _MIN_CHANGE


def calibration_key(name: str, address: str | None) -> str:
    """A model's name with its server, without the credentials that an address may hold."""
    if address is None:
        return name
    parts = urlsplit(address)
    return f"{name}@{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")

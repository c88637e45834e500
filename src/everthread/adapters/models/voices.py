"""A LangChain chat model as a turn speaks through it: tried again while nothing has come, given up when it is silent
for too long, its errors typed, its reports of usage used to count better.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig

from everthread.adapters.models.calibrating import Counting
from everthread.adapters.models.failing import pause_asked_for, translated
from everthread.adapters.models.pieces import pieces
from everthread.context.budget import Budget, apply_calibration
from everthread.context.message_format import Provider
from everthread.core.errors import EverthreadError, ModelTimeout

_CHECK_SECONDS: Final = 1.0
"""How often the time limit is moved on while pieces come: for each would cost more than the piece."""
_LEAST_RESERVE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How a model is asked."""

    attempts: int = 3
    pause_seconds: float = 0.5
    """Before the second attempt; doubled before each further one, with some chance in it."""
    silence_seconds: float = 120.0
    """So long may nothing come."""
    longest_pause_seconds: float = 30.0
    """So long is waited at most when the provider says when to ask again."""

    def pause(self, attempt: int, asked_for: float = 0.0) -> float:
        own = self.pause_seconds * 2.0**attempt * random.uniform(0.8, 1.2)
        return max(own, min(asked_for, self.longest_pause_seconds))


class _Bound(NamedTuple):
    model: Runnable[Any, Any]
    options: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class AskedModel:
    """One model, for all turns that use it."""

    model: BaseChatModel
    name: str
    provider: Provider | None = None
    window: Budget = field(default_factory=Budget)
    is_exact: bool = False
    """Whether our count is the model's own."""
    patience: Patience = field(default_factory=Patience)
    counting: Counting = field(default_factory=lambda: Counting(""))
    """What its reports of usage have shown; shared by all that ask a model of its name."""
    notice: str | None = None
    """What its users must know of it."""
    _bound: tuple[list[Mapping[str, Any]], _Bound] | None = None

    @property
    def budget(self) -> Budget:
        known = self.counting.known
        return self.window if self.is_exact and not known.samples else apply_calibration(self.window, known)

    @property
    def supports_tools(self) -> bool:
        """Whether it can call tools at all."""
        return type(self.model).bind_tools is not BaseChatModel.bind_tools

    async def report_usage(self, *, counted: int, usage: Mapping[str, int]) -> None:
        if not self.is_exact:
            await self.counting.heard(counted=counted, reported=usage.get("input_tokens", 0))

    async def report_overflow(self, *, counted: int) -> None:
        await self.counting.refused(counted=counted, room=self.window.window - self.window.output_reserve)

    async def stream(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], config: RunnableConfig
    ) -> AsyncIterator[AIMessageChunk]:
        """The answer in pieces. One generator, since each that a piece passes through costs a twentieth of it."""
        model, options = self._with(tools)
        limit, clock = self.patience.silence_seconds, asyncio.get_running_loop().time
        for attempt in range(self.patience.attempts):
            has_come = False
            try:
                async with asyncio.timeout(limit) as watch:
                    look_again = clock() + _CHECK_SECONDS
                    async for chunk in pieces(model, messages, config, options):
                        has_come = True
                        yield chunk
                        if (now := clock()) > look_again:
                            look_again = now + _CHECK_SECONDS
                            watch.reschedule(now + limit)
                return
            except Exception as problem:  # noqa: BLE001 - the stream's edge: providers' errors have no root
                failure = self._failure(problem)
                if has_come or not failure.retryable or attempt + 1 == self.patience.attempts:
                    raise failure from (None if failure is problem else problem)
                await asyncio.sleep(self.patience.pause(attempt, pause_asked_for(problem)))

    def _failure(self, problem: Exception) -> EverthreadError:
        if isinstance(problem, TimeoutError):
            limit = self.patience.silence_seconds
            return ModelTimeout(f"the model {self.name} was silent for {limit:g} seconds; try again")
        return translated(problem, self.name)

    def _with(self, tools: Sequence[Mapping[str, Any]]) -> _Bound:
        """Whom to ask, and with which options."""
        if not tools:
            return _Bound(self.model, {})
        known = list(tools)
        if self._bound is None or self._bound[0] != known:
            self._bound = (known, _unwrapped(self.model.bind_tools([dict(tool) for tool in tools])))
        return self._bound[1]


def _unwrapped(bound: Runnable[Any, Any]) -> _Bound:
    """A model with options is a model and options: its wrapper does nothing with a piece but pass it on."""
    if not isinstance(bound, RunnableBinding) or type(bound).astream is not RunnableBinding.astream:
        return _Bound(bound, {})
    return _Bound(bound, {}) if bound.config or bound.config_factories else _Bound(bound.bound, bound.kwargs)


def window_of(model: BaseChatModel) -> Budget:
    """The room a model has, by its profile; a common size where it has none."""
    profile: Mapping[str, Any] = getattr(model, "profile", None) or {}
    most = profile.get("max_input_tokens")
    if not isinstance(most, int) or most < 2 * _LEAST_RESERVE:
        return Budget()
    answer = profile.get("max_output_tokens")
    reserve = min(answer if isinstance(answer, int) else Budget().output_reserve, Budget().output_reserve, most // 4)
    return Budget(window=most, output_reserve=max(_LEAST_RESERVE, reserve))

"""How much fits: the model's window, what is reserved in it, and how far our own count can be trusted.

Counts are exact for OpenAI's vocabularies. For any other model they are an estimate, so a *factor* stands between
our count and the provider's: 1.3 until the provider has reported usage, then what the reports show. A factor above
the truth wastes some room; one below it is an overflow error. So it rises at once and falls slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from everthread.core.errors import Invalid

Number = TypeVar("Number", int, float)

ORDINARY_RESERVE = 4_096

UNCALIBRATED = 1.3
LOWEST_FACTOR, HIGHEST_FACTOR = 0.5, 4.0
MARGIN = 1.02
"""Kept above the highest ratio seen, because the next message is another mix of languages and code."""
EASE = 0.2
"""The share of the way down that one report moves the factor."""
SMALLEST_SAMPLE_TOKENS = 200
"""Below this the fixed costs of a request drown the ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How large a request may be. `limit` is what everything that is sent, system prompt included, may count to.

    ```python
    budget = everthread.Budget(window=200_000, output_reserve=8_000)
    context = await conv.context(system="You plan trips.", budget=budget)
    print(context.tokens, "of", budget.limit)
    ```
    """

    window: int = 128_000
    """The model's context window, in its own tokens."""
    output_reserve: int = cast("int", None)
    """Kept free for the answer, in the model's own tokens; by default 4,096, or a quarter of a small window."""
    tools_tokens: int = 0
    """How many tokens the tool schemas take, which are sent beside the messages."""
    factor: float = 1.0
    """The model's tokens per token of our count: 1.0 when we count with its own vocabulary."""

    def __post_init__(self) -> None:
        check_range("window", self.window, 1, 100_000_000)
        object.__setattr__(self, "output_reserve", output_reserve_of(self.window, self.output_reserve))
        check_range("output_reserve", self.output_reserve, 0, self.window - 1)
        check_range("tools_tokens", self.tools_tokens, 0, self.window)
        check_range("factor", self.factor, LOWEST_FACTOR, HIGHEST_FACTOR)
        if self.limit < 1:
            raise Invalid(
                f"window {self.window:,} leaves nothing beside output_reserve {self.output_reserve:,} and "
                f"tools_tokens {self.tools_tokens:,}; raise the window or lower the others",
                field="window",
            )

    @property
    def limit(self) -> int:
        """The hard limit in everthread's own count: no request is larger."""
        return math.floor((self.window - self.output_reserve) / self.factor) - self.tools_tokens

    def room(self, *, system_tokens: int = 0) -> int:
        """What is left for the conversation beside the system prompt; never below zero."""
        return max(0, self.limit - system_tokens)


def check_budget(budget: object) -> Budget | None:
    """A budget, or None, which leaves it to the default."""
    if budget is None or isinstance(budget, Budget):
        return budget
    hint = f"; for a window of {budget:,} tokens: Budget(window={budget})" if type(budget) is int else ""
    raise Invalid(f"must be a Budget, not {type(budget).__name__}{hint}", field="budget")


def output_reserve_of(window: int, given: int | None) -> int:
    """What is kept free for the answer: what was asked for, or else as much as a window of this size bears."""
    return min(ORDINARY_RESERVE, window // 4) if given is None else given


def changed_budget(
    budget: Budget, *, window: int | None = None, output_reserve: int | None = None, factor: float | None = None
) -> Budget:
    """A model's budget with what was asked for instead. Another window is another model's: of its count nothing is
    known."""
    if window is not None:
        budget = Budget(window=window, output_reserve=output_reserve_of(window, output_reserve))
    elif output_reserve is not None:
        budget = replace(budget, output_reserve=output_reserve)
    return budget if factor is None else replace(budget, factor=factor)


def check_range(field: str, value: Number, low: Number, high: Number) -> None:
    """Refuse what is no number in the range, with the field and the range that is allowed."""
    kinds = (int, float) if isinstance(low, float) else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise Invalid(f"{value!r} is not allowed; choose from {low:,} to {high:,}", field=field)


# --- calibration -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What is known of a model whose vocabulary we do not have."""

    factor: float = UNCALIBRATED
    samples: int = 0


def calibrate(calibration: Calibration, *, counted: int, reported: int) -> Calibration:
    """After an answer: `counted` is our count of the request, `reported` the provider's usage for it.

    A report above the factor is believed at once, one below it moves the factor a fifth of the way. The first
    report replaces the guess, whichever way it lies.
    """
    if counted < SMALLEST_SAMPLE_TOKENS or reported <= 0:
        return calibration
    seen = _within(reported / counted * MARGIN)
    first = calibration.samples == 0
    eased = calibration.factor + (seen - calibration.factor) * EASE
    factor = seen if first or seen > calibration.factor else eased
    return Calibration(factor=_within(factor), samples=calibration.samples + 1)


def calibrate_after_overflow(
    calibration: Calibration, *, counted: int, room: int, reported: int | None = None
) -> Calibration:
    """After the provider refused a request as too long: `room` is what it had to fit into.

    The factor rises (so the limit falls) at least so far that the same request is over the limit next time, and
    by a tenth at the least. `reported` is the size named in the error, where the provider names one.
    """
    if counted <= 0:
        return calibration
    known = (reported or room + 1) / counted * MARGIN
    factor = _within(max(known, calibration.factor * 1.1))
    return Calibration(factor=factor, samples=calibration.samples + 1)


def apply_calibration(budget: Budget, calibration: Calibration) -> Budget:
    """The same budget, counted with what is known of the model."""
    return replace(budget, factor=calibration.factor)


def _within(factor: float) -> float:
    return min(HIGHEST_FACTOR, max(LOWEST_FACTOR, factor))

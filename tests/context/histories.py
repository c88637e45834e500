"""Hypothesis strategies of message histories, for every test that must hold for all of them.

@forall(histories())        what agents really leave behind, in three dialects
@forall(sound_histories())  the same without anything wrong: every request is valid as it stands
@forall(budgets())          from hardly anything to plenty
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everthread.context import Budget
from tests.context.random_histories import (
    CALM,
    DIALECTS,
    STORM,
    Dialect,
    Message,
    Weather,
    random_history,
)

Test = Callable[..., None]


def forall(*strategies: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]) -> Callable[[Test], Test]:
    """`given`, for whole conversations: each is large, and may take as long as it takes."""
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    return lambda test: patient(given(*strategies, **named)(test))


def histories(
    *, turns: int = 5, weather: Weather = STORM, dialects: tuple[Dialect, ...] = DIALECTS
) -> st.SearchStrategy[list[Message]]:
    """Histories with everything that goes wrong."""
    return st.randoms(use_true_random=False).map(
        lambda rng: random_history(rng, turns=turns, weather=weather, dialects=dialects)
    )


def sound_histories(*, turns: int = 5, dialects: tuple[Dialect, ...] = DIALECTS) -> st.SearchStrategy[list[Message]]:
    """Histories in which nothing is wrong."""
    return histories(turns=turns, weather=CALM, dialects=dialects)


def budgets(*, smallest: int = 200, largest: int = 20_000) -> st.SearchStrategy[Budget]:
    """Budgets by their limit."""
    return st.integers(smallest, largest).map(lambda limit: Budget(window=limit + 100, output_reserve=100))

"""Weights that were fetched on this machine; tests that need them skip visibly where they were not."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread.adapters.models.weights import WeightsState, state_of, weights_by_name
from tests.conftest import MODELS


def _fetched(name: str) -> Path:
    if state_of(MODELS, weights_by_name(name)) is not WeightsState.PRESENT:
        pytest.skip(f"needs the weights: everthread models fetch {name}")
    return MODELS


@pytest.fixture(scope="session")
def minilm_models() -> Path:
    """The folder of models, with MiniLM in it."""
    return _fetched("minilm")


@pytest.fixture(scope="session")
def wordllama_models() -> Path:
    """The folder of models, with wordllama in it."""
    return _fetched("wordllama")


@pytest.fixture(scope="session")
def m3e_models() -> Path:
    """The folder of models, with m3e-small in it."""
    return _fetched("m3e")

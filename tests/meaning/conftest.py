"""Weights that were fetched on this machine; tests that need them skip visibly where they were not."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread.adapters.models.weights import State, named, state_of
from everthread.settings import Settings


def _fetched(name: str) -> Path:
    models = Settings.load().models_dir
    if state_of(models, named(name)) is not State.PRESENT:
        pytest.skip(f"needs the weights: everthread models fetch {name}")
    return models


@pytest.fixture(scope="session")
def minilm_models() -> Path:
    """The folder of models, with MiniLM in it."""
    return _fetched("minilm")


@pytest.fixture(scope="session")
def wordllama_models() -> Path:
    """The folder of models, with wordllama in it."""
    return _fetched("wordllama")

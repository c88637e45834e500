"""Where the weights of the local model are, if they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from everthread.adapters.models import weights


@pytest.fixture(scope="session")
def models_dir() -> str:
    """Skips visibly where nobody fetched the small model."""
    named = os.environ.get("EVERTHREAD_MODELS_DIR") or str(Path.home() / ".local/share/everthread/models")
    if not weights.folder_of(Path(named), weights.weights_by_name("smollm2")).is_dir():
        pytest.skip("needs the weights of smollm2: everthread models fetch smollm2")
    return named

"""Where children come from, and the databases they are killed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.nursery import Nursery
from tests.crash.trial import Trial


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """One process that forks all children of this run."""
    with Nursery(tmp_path_factory.mktemp("nursery")) as started:
        yield started


@pytest.fixture
def sqlite_trial(nursery: Nursery, tmp_path: Path) -> Callable[[int], Trial]:
    """Trials on files of their own."""
    made = 0

    def new(seed: int) -> Trial:
        nonlocal made
        made += 1
        files = tmp_path / f"files-{made}"
        acks = tmp_path / f"acks-{made}"
        return Trial(nursery=nursery, url=f"sqlite:///{files / 'et.db'}", seed=seed, acks=acks, files=files)

    return new

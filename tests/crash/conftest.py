"""Where children come from, and the databases they are killed over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.crash.nursery import Nursery
from tests.crash.trial import NewTrial, Trial
from tests.postgres import Server


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """One process that forks all children of this run."""
    with Nursery(tmp_path_factory.mktemp("nursery")) as started:
        yield started


@pytest.fixture
def new_trial(store: str, request: pytest.FixtureRequest, nursery: Nursery, tmp_path: Path) -> Iterator[NewTrial]:
    """Trials on new, empty databases of the kind that a test's parameter `store` names."""
    numbers = count(1)

    def on_sqlite(seed: int) -> Trial:
        number = next(numbers)
        files = tmp_path / f"files-{number}"
        url = f"sqlite:///{files / 'et.db'}"
        return Trial(nursery=nursery, url=url, seed=seed, acks=tmp_path / f"acks-{number}", erases=4, files=files)

    def on_postgres(seed: int) -> Trial:
        server: Server = request.getfixturevalue("postgres_server")
        url = databases.enter_context(server.database(migrated=False))
        return Trial(nursery=nursery, url=url, seed=seed, acks=tmp_path / f"acks-{next(numbers)}", erases=1)

    with ExitStack() as databases:
        yield on_sqlite if store == "sqlite" else on_postgres

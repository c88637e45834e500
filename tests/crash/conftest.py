"""The databases that children are killed over."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from tests.crash.trial import NewTrial, Trial
from tests.forkserver import ForkServer
from tests.postgres import Server

NewUrl = Callable[..., str]


@pytest.fixture
def new_url(store: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewUrl]:
    """Addresses of new databases without tables, of the kind that a test's parameter `store` names.

    With tables where a test asks for them (`migrated=True`): on PostgreSQL they take as long as all that comes after,
    on SQLite a sixth of it.
    """
    numbers = count(1)

    def new(*, migrated: bool = False) -> str:
        if store == "sqlite":
            file = tmp_path / f"files-{next(numbers)}" / "et.db"
            if migrated:
                file.parent.mkdir()
                shutil.copy(request.getfixturevalue("empty_file"), file)
            return f"sqlite:///{file}"
        server: Server = request.getfixturevalue("postgres_server")
        return databases.enter_context(server.database(migrated=migrated))

    with ExitStack() as databases:
        yield new


@pytest.fixture
def empty_url(new_url: NewUrl) -> str:
    """One of them."""
    return new_url()


@pytest.fixture
def new_trial(store: str, new_url: NewUrl, forkserver: ForkServer, tmp_path: Path) -> NewTrial:
    """Trials on such databases."""
    numbers = count(1)

    def new(seed: int, *, migrated: bool = False) -> Trial:
        url, acks = new_url(migrated=migrated), tmp_path / f"acks-{next(numbers)}"
        if store == "postgres":
            return Trial(forkserver=forkserver, url=url, seed=seed, acks=acks, erases=1)
        files = Path(url.removeprefix("sqlite:///")).parent
        return Trial(forkserver=forkserver, url=url, seed=seed, acks=acks, erases=4, files=files)

    return new

"""Fixtures for all tests: a database of each kind, by address.

`url` runs a test once on memory, SQLite and PostgreSQL; `durable_url` on those that survive a restart.
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

import everthread
from everthread import Everthread
from everthread.adapters.stores.sqlite.files import migrate
from everthread.bootstrap import workspaces_of
from everthread.settings import Settings
from tests.forkserver import ForkServer
from tests.postgres import Server, roomy_folder, shared_server
from tests.shared_data import shared_folder

STORES = ("memory", "sqlite", "postgres")
DURABLE_STORES = ("sqlite", "postgres")

hypothesis.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis.register_profile("new", hypothesis.get_profile("patient"), max_examples=300)
hypothesis.register_profile("same", hypothesis.get_profile("patient"), max_examples=30, derandomize=True)
hypothesis.load_profile("same")
"""`make test` tries the same few examples each time, since it tells about a change and more of the same tell it nothing
new; `make test-long` looks for new ones, and for many.
Neither is impatient: a machine that is busy with something else says nothing about a change."""

MODELS = Settings.load().models_dir
"""Where weights that were fetched on this machine are, for the tests that are about them."""


def pytest_configure() -> None:
    """The tests' folders are in memory, where there is room: most of a small test on SQLite is waiting for a disk."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(roomy_folder()))
    gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """In a new checkout one process collects first: the others find compiled what else each would compile, in more
    time than the rest of collecting takes."""
    is_alone = "PYTEST_XDIST_WORKER" not in os.environ
    if is_alone or (session.config.rootpath / ".pytest_cache").exists():
        return (yield)
    with open(__file__) as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(turn, fcntl.LOCK_SH)
        return (yield)


def pytest_collection_finish() -> None:
    """What is imported by now stays: the collector need not look through it, while it comes or while tests run."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is fetched on this machine changes no other test: without weights, words alone are searched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One PostgreSQL for the whole run, shared by the test processes; each test takes a database of its own."""
    with shared_server() as server:
        yield server


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with today's tables: a copy takes a hundredth of the time that making them does."""
    path = tmp_path_factory.mktemp("empty") / "et.db"
    migrate(path)
    return path


def _address(store: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if store == "memory":
        yield "memory://"
    elif store == "sqlite":
        yield f"sqlite:///{shutil.copy(request.getfixturevalue('empty_file'), folder / 'et.db')}"
    else:
        server: Server = request.getfixturevalue("postgres_server")
        with server.database() as address:
            yield address
            shutil.rmtree(workspaces_of(address, None).root, ignore_errors=True)  # the next test may get this database


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of each kind."""
    yield from _address(request.param, request, tmp_path)


@pytest.fixture(params=DURABLE_STORES)
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database of each kind that survives a restart."""
    yield from _address(request.param, request, tmp_path)


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    """An open, empty database of each kind, where nothing happens by itself."""
    async with everthread.open(url, worker=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def forkserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """One process that forks all children of this run."""
    with ForkServer(tmp_path_factory.mktemp("forkserver")) as started:
        yield started


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded conversations."""
    return shared_folder()

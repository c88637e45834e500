"""Stands in for the `conftest.py` of LangGraph's own tests: their fixtures, with our saver as the only checkpointer.

Copied beside their tests by `test_pregel_suite.py`. With EVERTHREAD_REFERENCE set it is LangGraph's own InMemorySaver
instead, to tell what fails for other reasons.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from langgraph.cache.base import BaseCache
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from everthread.adapters.stores.sqlite.files import migrate
from everthread.langgraph import EverthreadSaver

IS_REFERENCE = bool(os.environ.get("EVERTHREAD_REFERENCE"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def deterministic_uuids(mocker: Any) -> Any:
    made = (UUID(f"00000000-0000-4000-8000-{at:012}", version=4) for at in range(10_000))
    return mocker.patch("uuid.uuid4", side_effect=made)


@pytest.fixture(params=["sync", "async", "exit"])
def durability(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def cache() -> BaseCache[Any]:
    return InMemoryCache()


@pytest.fixture
def sync_store() -> BaseStore:
    return InMemoryStore()


@pytest.fixture
async def async_store() -> BaseStore:
    return InMemoryStore()


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "et.db"
    migrate(path)
    return path


@pytest.fixture
def database(empty_file: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(empty_file, tmp_path / 'et.db')}"


@pytest.fixture
def sync_checkpointer(database: str) -> Iterator[BaseCheckpointSaver[Any]]:
    if IS_REFERENCE:
        yield InMemorySaver()
        return
    with EverthreadSaver.from_url(database) as saver:
        yield saver


@pytest.fixture
async def async_checkpointer(database: str) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    if IS_REFERENCE:
        yield InMemorySaver()
        return
    async with EverthreadSaver.from_url(database) as saver:
        yield saver

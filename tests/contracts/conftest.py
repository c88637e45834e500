"""Fixtures of the contract: whatever a test did to the log, the log must verify when it is over."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.adapters.stores.sqlite.files import migrate


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file that has its tables: making them takes longer than most tests."""
    file = tmp_path_factory.mktemp("empty") / "et.db"
    migrate(file)
    return file


@pytest.fixture
def url(url: str, empty_file: Path) -> str:
    """The address of an empty database of each kind, its tables made."""
    return prepared(url, empty_file)


@pytest.fixture
def durable_url(durable_url: str, empty_file: Path) -> str:
    """The address of an empty database that survives a restart, its tables made."""
    return prepared(durable_url, empty_file)


def prepared(url: str, empty_file: Path) -> str:
    if url.startswith("sqlite"):
        shutil.copyfile(empty_file, url.removeprefix("sqlite:///"))
    return url


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    """An open, empty database of each kind, where nothing happens by itself; its proof is read back after the test."""
    async with everthread.open(url, worker=False) as opened:
        yield opened
        report = await opened.verify()
        assert report.problems == ()


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    """An empty conversation of the owner `local`."""
    return await et.conversations.create()

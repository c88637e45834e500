"""Fixtures for what is special to one store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres import Server, name_of


@pytest.fixture
def address(postgres_server: Server) -> Iterator[str]:
    """The address of an empty PostgreSQL database, on the server of this run."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def name(address: str) -> str:
    """The name of that database."""
    return name_of(address)

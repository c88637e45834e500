"""Fixtures: the server on each store, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.http.protocol.rig import Server, serving


@pytest.fixture
async def server(url: str) -> AsyncIterator[Server]:
    """On memory, SQLite and PostgreSQL."""
    async with serving(url) as running:
        yield running


@pytest.fixture
async def light() -> AsyncIterator[Server]:
    """In memory, for what no store has a part in."""
    async with serving("memory://") as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[LangGraphClient]:
    async with server.sdk() as sdk:
        yield sdk

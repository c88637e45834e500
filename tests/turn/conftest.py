"""An agent over each store, without a worker, so that nothing happens that a test did not ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

pytest.importorskip("langgraph", reason="needs everthread[agent]")

import everthread
from everthread import Conversation, Everthread


@pytest.fixture
async def et(url: str) -> AsyncIterator[Everthread]:
    async with everthread.open(url, worker=False) as opened:
        yield opened


@pytest.fixture
async def conv(et: Everthread) -> Conversation:
    return await et.conversations.create()

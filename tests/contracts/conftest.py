"""Fixtures of the contract: whatever a test did to the log, the log must verify when it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import everthread
from everthread import Conversation, Everthread


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

"""Writes that a store is slow to take: the checkpoint that applies them waits, so a fork takes none for new."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.scenarios import SCENES, Rig
from everthread.adapters.checkpoints.checkpoint_intents import PutWrites
from everthread.adapters.stores.in_memory.log import InMemoryLog
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.langgraph import ArchivingSaver, EverthreadSaver
from everthread.testing import InMemoryStore
from tests.langgraph.captures import paths_of, texts_in
from tests.langgraph.stores import over

R = TypeVar("R")


class SlowToHoldLog(InMemoryLog):
    """Takes checkpoints at once, and writes after a while."""

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        if isinstance(intent, PutWrites):
            await asyncio.sleep(0.02)
        return await super().write(ref, intent)


class SlowToHold(InMemoryStore):
    """A store with such a log."""

    def __init__(self) -> None:
        super().__init__()
        self.log = SlowToHoldLog(self._database, self.turns, self.jobs)


@pytest.mark.parametrize("kind", ["over the log", "archiving"])
async def test_a_write_that_is_slow_to_be_stored_is_not_said_again_on_a_fork(kind: str) -> None:
    async with over(SlowToHold()) as et:
        saver: Any = EverthreadSaver(et) if kind == "over the log" else ArchivingSaver(InMemorySaver(), et)
        truth = await SCENES["answer made again from an earlier checkpoint"](Rig(saver))
        conversation = await et.conversations.get("scene")
        assert await texts_in(conversation) == truth.paths[-1]
        assert truth.paths[0] in await paths_of(conversation)

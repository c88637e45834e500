"""What a turn adds to a SQLite file: about three times what was said in it, however old the conversation is.

A size hardly depends on how busy a machine is, so it may be a test. The figures: `make bench ARGS="turn_storage"`.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import everthread
from everthread import Conversation, Everthread
from everthread.testing.scripted import Reply, ScriptedModel
from everthread.turn.agent import Agent

_WORDS = [word for word in (Path(__file__).parents[2] / "README.md").read_text("utf-8").split() if word.isalpha()]
_BYTES = 400
"""Of a question, and of an answer."""
_OLD, _TURNS = 40, 80
_MOST_BYTES = 2_600
"""2,270 were measured; what differs is when the index of words merges its parts."""


def _text(given: random.Random) -> str:
    return " ".join(given.choices(_WORDS, k=_BYTES))[:_BYTES]


async def _talk(conv: Conversation, agent: Agent, given: random.Random, turns: int) -> None:
    for _ in range(turns):
        async for _ in everthread.run_turn(conv, _text(given), agent=agent):
            pass


async def _is_idle(et: Everthread) -> bool:
    report = await et.jobs()
    return not report.waiting and not report.running


def _file_bytes(file: Path) -> int:
    """With what is in the write-ahead log."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size


async def test_a_turn_adds_three_times_what_was_said_to_the_file_of_an_old_conversation(tmp_path: Path) -> None:
    given, file, sizes = random.Random(3), tmp_path / "et.db", []
    async with everthread.open(f"sqlite:///{file}") as et:
        conv = await et.conversations.create()
        replies = [Reply(text=_text(given), pace_seconds=0) for _ in range(_OLD + _TURNS)]
        agent = everthread.agent(et, model=ScriptedModel(replies))
        for turns in (_OLD, _TURNS):
            await _talk(conv, agent, given, turns)
            while not await _is_idle(et):  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.05)
            sizes.append(_file_bytes(file))
    assert (sizes[1] - sizes[0]) / _TURNS <= _MOST_BYTES

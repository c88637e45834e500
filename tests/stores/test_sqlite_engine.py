"""How callers come to the writer of a SQLite file, and what is bound for it."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.sqlite import log
from everthread.adapters.stores.sqlite.engine import Engine
from everthread.core.log import BranchRow, IntentInputs, LogHead
from everthread.history import ingest, turn_intents
from everthread.history.intents import Append


@pytest.fixture
def gathered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many callers each hand-over that waited for others had."""
    sizes: list[int] = []
    hand_over = Engine._hand_over

    def noted(self: Engine, loop: asyncio.AbstractEventLoop) -> None:
        sizes.append(len(self._gathered[loop]))
        hand_over(self, loop)

    monkeypatch.setattr(Engine, "_hand_over", noted)
    return sizes


async def test_who_is_alone_does_not_wait_for_others(tmp_path: Path, gathered: list[int]) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for number in range(20):
            await conv.append([{"role": "user", "content": str(number)}])
    assert gathered == []


async def test_many_callers_are_handed_over_together(tmp_path: Path, gathered: list[int]) -> None:
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for _ in range(20):
            await asyncio.gather(*(conv.append([{"role": "user", "content": "hi"}]) for _ in range(16)))
    assert max(gathered) == 16
    assert sum(gathered) > 8 * 16  # the first came before it was known that they are many


async def test_callers_are_heard_in_the_order_they_came_in(tmp_path: Path) -> None:
    numbers = itertools.count()
    async with everthread.open(f"sqlite:///{tmp_path / 'et.db'}", worker=False) as et:
        conv = await et.conversations.create()
        for callers in (1, 2, 1, 16, 1, 1, 3, 2, 1):
            said = [[{"role": "user", "content": str(next(numbers))}] for _ in range(callers)]
            await asyncio.gather(*map(conv.append, said))
        told = [message.text async for message in conv.messages()]
    assert told == list(map(str, range(next(numbers))))


def test_what_a_turn_says_need_not_be_read_again_for_the_index() -> None:
    messages = ingest.prepare_all([{"role": "user", "content": "hi"}], count_later=True)
    said = Append(messages=messages).decide(_seen(), now=1)
    assert turn_intents._with(said, None).texts == said.texts == ["hi"]


def _seen() -> IntentInputs:
    head = LogHead("local", "c", 7, b"c" * 32, 0, is_erased=False, off_record=False)
    return IntentInputs(head=head, branches={0: BranchRow(0, None, 0, 7, 7, 0)}, by_id={}, by_seq={}, answer=None)


def test_an_ordinary_message_is_bound_as_what_sqlite3_takes_without_asking() -> None:
    messages = ingest.prepare_all([{"role": "user", "content": "hi"}], count_later=True)
    (entry,) = Append(messages=messages).decide(_seen(), now=1).entries
    assert set(map(type, log._row(3, entry))) == {int, str, bytearray}

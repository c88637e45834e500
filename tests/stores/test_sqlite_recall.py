"""What a recall asks of a SQLite file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread.core.queries import Term
from everthread.recalling import Sources, find


def lines(count: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": f"line {n} of the harbour log"} for n in range(count)]


async def test_a_recall_leaves_the_loop_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(50))
        await et.search("harbour")  # the index is up to date
        loop = asyncio.get_running_loop()
        hand_over, trips = loop.run_in_executor, []

        def counted(*given: Any) -> Any:
            trips.append(given)
            return hand_over(*given)

        monkeypatch.setattr(loop, "run_in_executor", counted)
        found = await find(Sources(store=et.store), conv.owner, conv.id, "the harbour log, line 7")
        assert found.ranked[0].heard.text == "line 7 of the harbour log"
        assert len(trips) == 1


@pytest.mark.parametrize(("cap", "seqs"), [(8, range(1, 9)), (9, range(1, 9)), (3, range(6, 9))])
async def test_a_word_in_too_many_messages_stands_in_the_newest(tmp_path: Path, cap: int, seqs: range) -> None:
    async with everthread.open(f"sqlite:///{tmp_path}/et.db", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(lines(8))
        term = Term(token="harbour")
        found = await et.store.word_places(conv.owner, conv.id, [term], cap=cap)
        assert [order & 0xFFFFFFFF for order in found.of[term]] == list(seqs)
        assert found.truncated == (cap <= 8)

"""What the writer remembers of messages until they are indexed."""

from __future__ import annotations

from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.sqlite import unindexed as module
from everthread.adapters.stores.sqlite.engine import Engine
from everthread.adapters.stores.sqlite.indexing import index_some
from everthread.adapters.stores.sqlite.unindexed import UnindexedTexts
from everthread.core.entries import UNCOUNTED, Entry, Kind
from tests.contracts.message_helpers import says


def entry(seq: int, *, tokens: int = UNCOUNTED, role: str = "user", raw: bytes = b"{}") -> Entry:
    chain = seq.to_bytes(32, "big")
    return Entry(
        seq, f"m{seq}", int(Kind.MESSAGE), role, None, None, 1, None, 0, seq, 0, tokens, b"", chain, raw,
        None, None, 0, None,
    )  # fmt: skip


def waiting(file: Path) -> int:
    (engine,) = [one for (_, path), one in Engine._engines.items() if path == str(file.resolve())]
    return len(engine.unindexed_texts._known)


def test_what_is_taken_is_not_known_any_more() -> None:
    texts = UnindexedTexts()
    texts.note([entry(1), entry(2)], ["one", None])
    assert texts.take(entry(1).chain) == ("one", None)
    assert texts.take(entry(1).chain) is None
    assert texts.take(entry(2).chain) is None


def test_what_the_index_does_not_count_is_not_remembered() -> None:
    texts = UnindexedTexts()
    texts.note([entry(1, tokens=7)], ["counted, because it is off the record"])
    assert texts.take(entry(1).chain) is None


def test_a_payload_is_kept_only_where_it_may_call() -> None:
    texts = UnindexedTexts()
    raw = b'{"role":"assistant","tool_calls":[]}'
    texts.note([entry(1, role="assistant", raw=raw), entry(2, role="user", raw=raw)], ["", ""])
    assert [known and known[1] for known in map(texts.take, (entry(1).chain, entry(2).chain))] == [raw, None]


def test_memory_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CHARS", 1_000)
    texts = UnindexedTexts()
    for seq in range(1, 500):
        texts.note([entry(seq)], ["x" * 10])
        assert sum(len(text) for text, _ in texts._known.values()) <= 1_000
    for seq in range(1, 500):
        texts.take(entry(seq).chain)
    assert texts._chars == 0


async def test_nothing_is_remembered_of_what_is_indexed_or_erased(tmp_path: Path) -> None:
    file = tmp_path / "et.db"
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        conv = await et.conversations.create()
        hushed = await et.conversations.create(off_record=True)
        await conv.append([says("a pangolin", id="a"), says("a capybara", id="b")])
        await hushed.append([says("a tapir")])
        assert waiting(file) == 2
        assert len(await et.search("pangolin")) == 1
        assert waiting(file) == 0
        await conv.append([says("an okapi", id="c")])
        await et.erase(conversation=conv.id, message="c")
        assert waiting(file) == 0
        assert not await et.search("okapi")


async def test_what_waits_is_found_the_same_after_the_writer_has_forgotten_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'et.db'}"
    function = {"name": "look_up", "arguments": "{}"}
    calling = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([says("a pangolin", id="a"), calling])
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.get("c")
        await conv.append([says("another pangolin", id="b"), calling])
        assert {hit.id for hit in await et.search("pangolin")} == {"a", "b"}
        assert [message.tokens > 0 for message in await conv.tail(4)] == [True] * 4


async def test_a_batch_of_long_texts_holds_few_of_them(tmp_path: Path) -> None:
    """So that other writers wait no longer for it than for one of short texts."""
    file = tmp_path / "et.db"
    async with everthread.open(f"sqlite:///{file}", worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([says("pangolin " * 2_000, id=str(number)) for number in range(60)])
        (engine,) = [one for (_, path), one in Engine._engines.items() if path == str(file.resolve())]
        await engine.write(lambda connection: index_some(connection, engine.unindexed_texts))
        assert 20 < waiting(file) < 60
        assert len(await et.search("pangolin", limit=60)) == 60
        assert waiting(file) == 0

"""PostgreSQL's search decides by a sample of the index, and the sample stays small."""

from __future__ import annotations

import asyncpg

import everthread
from everthread.adapters.stores.postgres.search import _Sample, _sampled
from everthread.core.ids import owner_scope
from everthread.history.search_query import parse_query, tsquery

MESSAGES = 6_000
FILLING = [{"role": "user", "content": "hay"}] * 1_500


async def test_an_index_that_nobody_has_vacuumed_is_sampled_and_not_read(address: str) -> None:
    connection = await asyncpg.connect(address)
    await connection.execute("ALTER TABLE words SET (autovacuum_enabled = off)")
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create()
        for start in range(0, MESSAGES, 500):
            texts = (" ".join(f"w{number * 40 + word}" for word in range(40)) for number in range(start, start + 500))
            await conv.append([{"role": "user", "content": f"common {text}"} for text in texts])
        assert await connection.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'words'") <= 0
        query = parse_query("common")
        sample = await _sampled(connection, "local", query, tsquery(query))
        assert 0 < sample.seen < MESSAGES / 2
        assert MESSAGES / 3 < sample.rows < MESSAGES * 3
        assert len(await et.search("w170")) == 1
    await connection.close()


async def test_the_cap_comes_after_an_owner_who_has_much_of_the_index(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        mine = await et.conversations.create(owner="ann")
        await mine.append([{"role": "user", "content": "needle", "id": "mine"}, *FILLING])
        theirs = await et.conversations.create(owner="bob")
        await theirs.append([{"role": "user", "content": "needle"}] * 700)
        hits = await et.search("needle", owner="ann")
        assert [hit.id for hit in hits] == ["mine"]
        assert not hits.truncated
        connection = await asyncpg.connect(address)
        sample = await _sampled(
            connection, "ann", parse_query("needle"), tsquery(parse_query("needle"), [owner_scope("ann")])
        )
        assert (sample.is_large, sample.prefers_walk(300, None)) == (True, False)  # the way that was tried here
        await connection.close()


def test_what_any_word_finds_is_told_from_how_common_each_is() -> None:
    sample = _Sample(rows=1_000_000, seen=2_000, owned=2_000, hits=1, counts={"a": 40, "b": 4, "c": 900})
    assert sample.of_any(parse_query("a b")).hits == 44
    assert sample._replace(owned=500).of_any(parse_query("a")).hits == 10


async def test_a_second_question_for_some_of_the_words_goes_by_the_first_sample(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append([{"role": "user", "content": f"{'red' if n % 2 else 'blue'} {n}"} for n in range(300)])
        query = parse_query("red blue")
        first = await et.store.search.matches("local", None, query, cap=20, any_word=False)
        assert not first.found
        second = await et.store.search.matches("local", None, query, cap=20, any_word=True, basis=first.basis)
        assert [one.entry.seq for one in second.found] == list(range(300, 280, -1))
        assert second.frequencies == first.frequencies == {"red": 150, "blue": 150}

"""PostgreSQL's search decides by a sample of the index, and the sample stays small."""

from __future__ import annotations

import asyncpg

import everthread
from everthread.adapters.stores.postgres.search import _OLDEST, _Sample, _sampled, candidates
from everthread.core.ids import owner_scope
from everthread.history.match import parse, tsquery

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
        query = parse("common")
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
        sample = await _sampled(connection, "ann", parse("needle"), tsquery(parse("needle"), [owner_scope("ann")]))
        assert (sample.is_large, sample.prefers_walk(300, None)) == (True, False)  # the way that was tried here
        await connection.close()


def sample(matches: int) -> _Sample:
    """Of a million entries of one owner, as many of them with the word."""
    return _Sample(
        rows=1_000_000,
        seen=2_000,
        owned=2_000,
        parts=[1_000 - part for part in range(31)],
        hits=matches // 500,
        counts={"a": matches // 500, "b": 4},
    )


def test_a_word_between_rare_and_common_is_looked_for_in_the_newest_part() -> None:
    rare, between, common = sample(1_000), sample(20_000), sample(500_000)
    assert [one.prefers_walk(300, None) for one in (rare, between, common)] == [False, False, True]
    assert rare.since(300) == _OLDEST
    assert between.since(300) == 1_000  # the newest thirty-second, which holds 625
    assert between._replace(owned=20).since(300) == _OLDEST  # an owner of little: others have most of that part


def test_what_any_word_finds_is_told_from_how_common_each_is() -> None:
    assert sample(20_000).of_any(parse("a b")).hits == 44
    assert sample(20_000)._replace(owned=500).of_any(parse("a")).hits == 10


async def test_the_newest_part_has_the_newest_matches_and_where_it_has_too_few_all_are_asked_for(address: str) -> None:
    async with everthread.open(address, worker=False) as et:
        conv = await et.conversations.create()
        said = (f"{'even' if n % 15 == 0 else 'hay'} {'early' if n < 200 else 'late'} {n}" for n in range(3_000))
        await conv.append([{"role": "user", "content": text} for text in said])
        connection = await asyncpg.connect(address)
        for word, newest in (("even", 2_986), ("early", 200)):
            query = parse(word)
            sampled = await _sampled(connection, "local", query, tsquery(query))
            assert not sampled.prefers_walk(20, None)
            assert sampled.since(20) != _OLDEST
            found = await candidates(connection, "local", None, query, 20, False, None)
            seqs = [one.entry.seq for one in found.found]
            assert seqs == list(range(newest, 0, -15 if word == "even" else -1))[:20]
            assert found.truncated
        await connection.close()

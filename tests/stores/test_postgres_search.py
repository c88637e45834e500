"""PostgreSQL's search decides by a sample of the index, and the sample stays small."""

from __future__ import annotations

import asyncpg

import everthread
from everthread.adapters.stores.postgres.search import _sampled
from everthread.history.match import parse, tsquery

MESSAGES = 6_000


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

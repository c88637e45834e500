"""PostgreSQL compares by itself: the index across an owner, and a pgvector that comes later."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("asyncpg", reason="needs everthread[postgres]")

import asyncpg

import everthread
from everthread.adapters.vectors import postgres
from everthread.adapters.vectors import postgres_statements as sql
from everthread.core.embeddings import VectorPart, unit
from everthread.core.nouns import Ref
from tests.postgres import Server

DIMENSION = 16
MODEL = "fake/16"


def _random(dice: random.Random) -> bytes:
    return unit([dice.gauss(0, 1) for _ in range(DIMENSION)])


async def test_few_vectors_among_many_of_others_are_all_found_by_the_index(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain filtered index gives short answers: it looks at some dozens, of which hardly one is the owner's."""
    monkeypatch.setattr(postgres, "EXACT_ROWS", 5)
    dice = random.Random(11)
    with postgres_server.database() as url:
        async with everthread.open(url, worker=False, embedder=None) as et:
            for owner, parts in (("many", 1500), ("few", 30)):
                conversation = await et.conversations.create(owner=owner)
                await conversation.append([{"role": "user", "content": "x"}])
                told = [VectorPart(1, part, _random(dice)) for part in range(parts)]
                await et.vectors.put(Ref(owner, conversation.id), MODEL, told)
            found = await et.vectors.near("few", None, MODEL, _random(dice), 20)
            assert len(found) == 20
            assert {near.conversation_id for near in found} == {conversation.id}
            assert [near.score for near in found] == sorted((near.score for near in found), reverse=True)
        connection = await asyncpg.connect(url)
        try:
            indexes = await connection.fetch("SELECT indexdef FROM pg_indexes WHERE tablename = 'vectors'")
            assert any("hnsw" in row[0] for row in indexes)
            async with connection.transaction():
                await connection.execute(sql.SEARCH_ON.format(most=40))
                statement = sql.NEAR_BY_INDEX.format(model=1, dimension=DIMENSION)
                plan = await connection.fetch(f"EXPLAIN {statement}", "few", [0.25] * DIMENSION, 20)
            assert any("vectors_near_1" in row[0] for row in plan)
        finally:
            await connection.close()


async def test_a_pgvector_that_comes_later_takes_over_what_is_there(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(12)
    with postgres_server.database() as url:
        with monkeypatch.context() as without:
            without.setattr(postgres, "OLDEST", (1000, 0))
            async with everthread.open(url, worker=False, embedder=None) as et:
                conversation = await et.conversations.create()
                await conversation.append([{"role": "user", "content": "x"}])
                ref = Ref("local", conversation.id)
                told = [VectorPart(1, part, _random(dice)) for part in range(700)]
                await et.vectors.put(ref, MODEL, told)
                assert et.vectors.about == postgres.WITHOUT_PGVECTOR
                before = await et.vectors.near(*ref, MODEL, told[5].vector, 10)
        async with everthread.open(url, worker=False, embedder=None) as et:
            after = await et.vectors.near(*ref, MODEL, told[5].vector, 10)
            assert et.vectors.about == postgres.WITH_PGVECTOR
            assert (await et.vectors.indexed(ref))[MODEL] == (700, 1)
        assert after[0][:3] == before[0][:3] == (conversation.id, 1, 5)
        assert [near.score for near in after] == pytest.approx([near.score for near in before], abs=0.01)
        connection = await asyncpg.connect(url)
        try:
            assert await connection.fetchval("SELECT count(*) FROM vectors WHERE record IS NOT NULL") == 0
        finally:
            await connection.close()

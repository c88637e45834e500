"""Milvus: where it is, and what happens when it is not there. Its promises are in tests/contracts/test_vectors.py."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pymilvus", reason="needs everthread[milvus]")
pytest.importorskip("milvus_lite", reason="needs milvus-lite")

import everthread
from everthread import Everthread
from everthread.adapters.vectors import milvus
from everthread.adapters.vectors.external import ExternalVectors
from everthread.adapters.vectors.milvus import MilvusVectors, parse
from everthread.core.embeddings import VectorPart, unit
from everthread.core.errors import Invalid, StoreError
from everthread.core.nouns import Ref

VECTOR = unit([1.0, 0.0])


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Something that takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        yield listening.getsockname()[1]


async def _talk(et: Everthread) -> Ref:
    conversation = await et.conversations.create()
    await conversation.append([{"role": "user", "content": "hello", "id": "m"}, {"role": "user", "content": "you"}])
    return Ref("local", conversation.id)


def test_an_address_is_taken_apart_and_shows_no_password() -> None:
    found = parse("https://admin:s%3Acret@host:19530?database=talks&collection=mine")
    assert (found.uri, found.token) == ("https://host:19530", "admin:s:cret")
    assert (found.database, found.collection) == ("talks", "mine")
    assert "cret" not in repr(found)
    assert "cret" not in MilvusVectors("https://admin:s%3Acret@host:19530").about
    assert parse("data/vectors.db").uri == "data/vectors.db"
    assert parse("http://key@host").token == "key"


@pytest.mark.parametrize("wrong", ["", "  ", "http://host?colection=x"])
def test_an_address_that_is_wrong_is_refused(wrong: str) -> None:
    with pytest.raises(Invalid, match="vectors"):
        parse(wrong)


async def test_a_server_that_is_down_is_told_in_bounded_time_and_the_log_goes_on(
    silent_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(milvus, "TIMEOUT_SECONDS", 1.0)
    for port in (1, silent_port):
        address = f"milvus:http://user:verysecret@127.0.0.1:{port}"
        async with everthread.open("memory://", worker=False, embedder=None, vectors=address) as et:
            ref = await _talk(et)
            began = time.monotonic()
            with pytest.raises(StoreError, match="Milvus") as caught:
                await et.vectors.put(ref, "fake", [VectorPart(1, 0, VECTOR)])
            assert caught.value.retryable
            with pytest.raises(StoreError, match="Milvus"):
                await et.vectors.near("local", None, "fake", VECTOR, 3)
            report = await et.erase(conversation=ref.id, message="m")
            assert time.monotonic() - began < 20
            assert any("Milvus" in place for place in report.cannot_reach)
            assert "verysecret" not in str(caught.value) + str(report)


async def test_what_was_erased_while_it_was_down_is_forgotten_by_the_next_process(tmp_path: Path) -> None:
    url, place = f"sqlite:///{tmp_path / 'et.db'}", f"milvus:{tmp_path / 'milvus.db'}"
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        message, whole, stays = [await _talk(et) for _ in range(3)]
        for ref in (message, whole, stays):
            await et.vectors.put(ref, "fake", [VectorPart(1, 0, VECTOR), VectorPart(2, 0, VECTOR)])
    async with everthread.open(url, worker=False, embedder=None) as unaware:
        await unaware.erase(conversation=message.id, message="m")
        await unaware.erase(conversation=whole.id)
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        assert isinstance(et.vectors, ExternalVectors)
        await et.vectors.near("local", None, "fake", VECTOR, 10)
        await et.vectors.catch_up()
        assert await et.vectors.models() == {"fake": 3}
        found = await et.vectors.near("local", None, "fake", VECTOR, 10)
        assert {(near.conversation_id, near.seq) for near in found} == {(message.id, 2), (stays.id, 1), (stays.id, 2)}


async def test_an_owner_who_begins_anew_keeps_what_is_new(tmp_path: Path) -> None:
    url, place = f"sqlite:///{tmp_path / 'et.db'}", f"milvus:{tmp_path / 'milvus.db'}"
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        await et.vectors.put(await _talk(et), "fake", [VectorPart(1, 0, VECTOR)])
        await et.erase(owner="local")
        new = await _talk(et)
        await et.vectors.put(new, "fake", [VectorPart(1, 0, VECTOR)])
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        assert isinstance(et.vectors, ExternalVectors)
        await et.vectors.near("local", None, "fake", VECTOR, 10)
        await et.vectors.catch_up()
        assert await et.vectors.models() == {"fake": 1}


async def test_vectors_are_found_again_by_the_next_process(tmp_path: Path) -> None:
    url, place = f"sqlite:///{tmp_path / 'et.db'}", f"milvus:{tmp_path / 'milvus.db'}"
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        ref = await _talk(et)
        await et.vectors.put(ref, "fake", [VectorPart(2, 0, VECTOR)])
    async with everthread.open(url, worker=False, embedder=None, vectors=place) as et:
        assert [near.seq for near in await et.vectors.near(*ref, "fake", VECTOR, 3)] == [2]
        assert (await et.vectors.indexed(ref))["fake"] == (1, 2)

"""What every place for vectors promises: in memory, in SQLite, in PostgreSQL with and without pgvector, in Milvus."""

from __future__ import annotations

import asyncio
import math
import random
import struct
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="needs everthread[meaning]")

import everthread
from everthread import Conversation, Everthread
from everthread.adapters.vectors import postgres as on_postgres
from everthread.adapters.vectors.quantised import HEADER, quantise
from everthread.core.embeddings import VectorPart, Vectors, unit
from everthread.core.errors import EverthreadError, Invalid, NotFound
from everthread.core.failpoints import arm
from everthread.core.nouns import Ref

PLACES = ("memory", "sqlite", "pgvector", "postgres", "milvus")
DIMENSION = 8
MODEL = "fake/8"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    if request.param == "milvus":
        pytest.importorskip("pymilvus", reason="needs everthread[milvus]")
        pytest.importorskip("milvus_lite", reason="needs milvus-lite")
    return str(request.param)


@pytest.fixture
def address(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if place in ("pgvector", "postgres"):
        with request.getfixturevalue("postgres_server").database() as database:
            yield database
    else:
        yield "memory://" if place in ("memory", "milvus") else f"sqlite:///{tmp_path / 'et.db'}"


@pytest.fixture
async def et(place: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Everthread]:
    if place == "postgres":
        monkeypatch.setattr(on_postgres, "OLDEST", (1000, 0))  # as on a server whose pgvector is too old, or missing
    outside = f"milvus:{tmp_path / 'milvus.db'}" if place == "milvus" else None
    async with everthread.open(address, worker=False, embedder=None, vectors=outside) as opened:
        yield opened


@pytest.fixture
def vectors(et: Everthread) -> Vectors:
    return et.vectors


async def talk(et: Everthread, owner: str = "local", messages: int = 5) -> Conversation:
    conversation = await et.conversations.create(owner=owner)
    await conversation.append([{"role": "user", "content": f"message {n}", "id": f"m{n}"} for n in range(messages)])
    return conversation


def ref(conversation: Conversation) -> Ref:
    return Ref(conversation.owner, conversation.id)


def axis(number: int, dimension: int = DIMENSION) -> bytes:
    """A vector along one axis: near to itself, and to nothing else."""
    return unit([1.0 if n == number else 0.0 for n in range(dimension)])


def parts(*axes: int) -> list[VectorPart]:
    return [VectorPart(seq, 0, axis(number)) for seq, number in enumerate(axes, 1)]


async def seqs(vectors: Vectors, conversation: Conversation, vector: bytes, limit: int = 10) -> list[int]:
    return [near.seq for near in await vectors.near(*ref(conversation), MODEL, vector, limit)]


async def test_the_nearest_come_first_with_their_cosine(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    between = unit([1.0, 1.0, *[0.0] * (DIMENSION - 2)])
    await vectors.put(ref(conversation), MODEL, [*parts(0, 1), VectorPart(3, 0, between), VectorPart(3, 1, axis(5))])
    found = await vectors.near(*ref(conversation), MODEL, axis(1), 3)
    assert [(near.conversation_id, near.seq, near.part) for near in found[:2]] == [
        (conversation.id, 2, 0),
        (conversation.id, 3, 0),
    ]
    assert [near.score for near in found] == pytest.approx([1.0, math.sqrt(0.5), 0.0], abs=0.01)


async def test_the_same_part_again_is_there_once(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    for _ in range(2):
        await vectors.put(ref(conversation), MODEL, parts(0, 1))
    await vectors.put(ref(conversation), MODEL, [VectorPart(2, 0, axis(7))])
    assert (await vectors.indexed(ref(conversation)))[MODEL].parts == 2
    assert await seqs(vectors, conversation, axis(7), 1) == [2]


async def test_scores_are_right_among_many(et: Everthread, vectors: Vectors) -> None:
    dice = random.Random(7)
    conversation = await talk(et, messages=3)
    many = [VectorPart(1 + n % 3, n // 3, unit([dice.gauss(0, 1) for _ in range(DIMENSION)])) for n in range(300)]
    await vectors.put(ref(conversation), MODEL, many)
    asked = unit([dice.gauss(0, 1) for _ in range(DIMENSION)])
    exact = {(part.seq, part.part): _cosine(part.vector, asked) for part in many}
    found = await vectors.near(*ref(conversation), MODEL, asked, 20)
    assert [near.score for near in found] == sorted((near.score for near in found), reverse=True)
    assert all(near.score == pytest.approx(exact[near.seq, near.part], abs=0.01) for near in found)
    assert found[0].score >= max(exact.values()) - 0.01
    everything = await vectors.near(*ref(conversation), MODEL, asked, 1000)
    assert {(near.seq, near.part) for near in everything} == exact.keys()


def _cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


async def test_i20_another_owners_vectors_are_never_found(et: Everthread, vectors: Vectors) -> None:
    mine, theirs = await talk(et, "ann"), await talk(et, "bob")
    await vectors.put(ref(mine), MODEL, parts(0))
    await vectors.put(ref(theirs), MODEL, parts(0, 0, 0))
    assert [near.conversation_id for near in await vectors.near("ann", None, MODEL, axis(0), 10)] == [mine.id]
    assert await vectors.near("ann", theirs.id, MODEL, axis(0), 10) == []
    assert await vectors.indexed(Ref("ann", theirs.id)) == {}
    assert await vectors.forget("ann", theirs.id) == 0
    with pytest.raises(NotFound):
        await vectors.put(Ref("ann", theirs.id), MODEL, parts(0))
    assert (await vectors.indexed(ref(theirs)))[MODEL].parts == 3


@pytest.mark.parametrize("name", ['x" or owner_key != "', "'; DROP TABLE vectors; --", "a{b}%s$1", "名前 🎬"])
async def test_names_are_never_part_of_a_query(et: Everthread, vectors: Vectors, name: str) -> None:
    other = await talk(et, "other")
    await vectors.put(ref(other), MODEL, parts(0))
    mine = await talk(et, name)
    await vectors.put(ref(mine), name, parts(1))
    assert [near.seq for near in await vectors.near(name, None, name, axis(1), 10)] == [1]
    assert await vectors.near(name, name, name, axis(1), 10) == []
    assert await vectors.near(name, None, MODEL, axis(0), 10) == []
    assert await vectors.forget(name, name) == 0
    assert await vectors.models() == {MODEL: 1, name: 1}


async def test_across_an_owner_all_conversations_are_searched(et: Everthread, vectors: Vectors) -> None:
    talks = [await talk(et) for _ in range(3)]
    for number, conversation in enumerate(talks):
        await vectors.put(ref(conversation), MODEL, parts(number, 7))
    found = await vectors.near("local", None, MODEL, axis(1), 1)
    assert [(near.conversation_id, near.seq) for near in found] == [(talks[1].id, 1)]
    assert len(await vectors.near("local", None, MODEL, axis(7), 10)) == 6


async def test_two_models_stand_beside_each_other(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    await vectors.put(ref(conversation), MODEL, parts(0))
    await vectors.put(ref(conversation), "other/4", [VectorPart(4, 0, axis(0, 4))])
    assert await seqs(vectors, conversation, axis(0)) == [1]
    assert [near.seq for near in await vectors.near(*ref(conversation), "other/4", axis(0, 4), 9)] == [4]
    assert {name: one.newest_seq for name, one in (await vectors.indexed(ref(conversation))).items()} == {
        MODEL: 1,
        "other/4": 4,
    }
    assert await vectors.models() == {MODEL: 1, "other/4": 1}
    await vectors.forget("local", conversation.id, model=MODEL)
    assert set(await vectors.indexed(ref(conversation))) == {"other/4"}


async def test_an_unknown_model_has_found_nothing(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    assert await vectors.near(*ref(conversation), "unknown", axis(0), 10) == []
    assert await vectors.indexed(ref(conversation)) == {}
    assert await vectors.models() == {}


async def test_a_wrong_dimension_is_refused(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    await vectors.put(ref(conversation), MODEL, parts(0))
    with pytest.raises(Invalid, match="8"):
        await vectors.put(ref(conversation), MODEL, [VectorPart(2, 0, axis(0, 4))])
    with pytest.raises(Invalid, match="one dimension"):
        await vectors.put(ref(conversation), MODEL, [VectorPart(2, 0, axis(0)), VectorPart(3, 0, axis(0, 4))])
    with pytest.raises(Invalid, match="8"):
        await vectors.near(*ref(conversation), MODEL, axis(0, 4), 10)
    with pytest.raises(Invalid, match="float32"):
        await vectors.near(*ref(conversation), MODEL, b"abc", 10)
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (1, 1)


async def test_how_far_the_index_has_come_is_known(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et, messages=40)
    await vectors.put(ref(conversation), MODEL, [VectorPart(seq, 0, axis(seq % DIMENSION)) for seq in range(1, 36)])
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (35, 35)
    await vectors.put(ref(conversation), MODEL, [VectorPart(38, 0, axis(0)), VectorPart(38, 1, axis(1))])
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (37, 38)
    await vectors.forget("local", conversation.id, seqs=[38])
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (35, 35)


async def test_some_entries_are_forgotten_and_the_others_stay(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    await vectors.put(ref(conversation), MODEL, [*parts(0, 1, 2), VectorPart(2, 1, axis(1))])
    assert await vectors.forget("local", conversation.id, seqs=[2]) == 2
    assert sorted(await seqs(vectors, conversation, axis(1))) == [1, 3]
    assert await vectors.forget("local", conversation.id, seqs=[]) == 0
    assert await vectors.forget("local", conversation.id) == 2
    assert await seqs(vectors, conversation, axis(0)) == []


async def test_an_owner_is_forgotten_alone(et: Everthread, vectors: Vectors) -> None:
    ann, bob = await talk(et, "ann"), await talk(et, "bob")
    for conversation in (ann, bob):
        await vectors.put(ref(conversation), MODEL, parts(0, 1))
    assert await vectors.forget("ann") == 2
    assert await vectors.models() == {MODEL: 2}
    assert len(await vectors.near("bob", None, MODEL, axis(0), 10)) == 2


async def test_i22_erasing_a_conversation_leaves_no_vector(et: Everthread, vectors: Vectors) -> None:
    gone, stays = await talk(et), await talk(et)
    for conversation in (gone, stays):
        await vectors.put(ref(conversation), MODEL, parts(0, 1))
    report = await et.erase(conversation=gone.id)
    assert report.reached["vectors"] == 2
    assert await vectors.models() == {MODEL: 2}
    assert {near.conversation_id for near in await vectors.near("local", None, MODEL, axis(0), 10)} == {stays.id}


async def test_i22_erasing_a_message_leaves_no_vector_of_it(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    await vectors.put(ref(conversation), MODEL, [*parts(0, 1, 2), VectorPart(2, 1, axis(4))])
    report = await et.erase(conversation=conversation.id, message="m1")
    assert report.reached["vectors"] == 2
    assert sorted(await seqs(vectors, conversation, axis(1))) == [1, 3]


async def test_i22_erasing_an_owner_leaves_no_vector(et: Everthread, vectors: Vectors) -> None:
    for owner in ("ann", "ann", "bob"):
        await vectors.put(ref(await talk(et, owner)), MODEL, parts(0, 1))
    assert (await et.erase(owner="ann")).reached["vectors"] == 4
    assert await vectors.models() == {MODEL: 2}


async def test_i21_a_late_vector_of_what_was_erased_is_refused(et: Everthread, vectors: Vectors) -> None:
    message, whole = await talk(et), await talk(et)
    await et.erase(conversation=message.id, message="m1")
    await et.erase(conversation=whole.id)
    await vectors.put(ref(message), MODEL, parts(0, 1, 2))
    assert sorted(await seqs(vectors, message, axis(1))) == [1, 3]
    with pytest.raises(NotFound):
        await vectors.put(ref(whole), MODEL, parts(0))
    assert await vectors.indexed(ref(whole)) == {}


async def test_nothing_to_keep_is_nothing_to_do(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et)
    await vectors.put(ref(conversation), MODEL, [])
    assert await vectors.models() == {}
    await vectors.put(ref(conversation), MODEL, parts(0))
    assert await vectors.near(*ref(conversation), MODEL, axis(0), 0) == []


async def test_writers_at_once_lose_nothing(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et, messages=40)
    await asyncio.gather(
        *(vectors.put(ref(conversation), MODEL, [VectorPart(seq, 0, axis(seq % DIMENSION))]) for seq in range(1, 41))
    )
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (40, 40)


async def test_it_says_what_it_is(place: str, et: Everthread, vectors: Vectors) -> None:
    await vectors.put(ref(await talk(et)), MODEL, parts(0))
    words = {"memory": "memory", "sqlite": "numpy", "pgvector": "by pgvector", "postgres": "numpy", "milvus": "Milvus"}
    assert words[place] in vectors.about


@pytest.mark.parametrize("place", ["sqlite", "pgvector", "postgres"], indirect=True)
async def test_a_put_that_fails_half_way_has_not_happened(et: Everthread, vectors: Vectors) -> None:
    conversation = await talk(et, messages=40)
    everything: Sequence[VectorPart] = [VectorPart(seq, 0, axis(seq % DIMENSION)) for seq in range(1, 41)]

    def trap(name: str) -> None:
        if name == "vectors.written":
            raise EverthreadError("pulled")

    arm(trap)
    try:
        with pytest.raises(EverthreadError, match="pulled"):
            await vectors.put(ref(conversation), MODEL, everything)
    finally:
        arm(None)
    assert await vectors.indexed(ref(conversation)) == {}
    await vectors.put(ref(conversation), MODEL, everything)
    assert (await vectors.indexed(ref(conversation)))[MODEL] == (40, 40)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
async def test_i22_no_byte_of_an_erased_vector_is_in_the_file(et: Everthread, vectors: Vectors, tmp_path: Path) -> None:
    dice = random.Random(3)
    conversation = await talk(et)
    told = [VectorPart(seq, 0, unit([dice.gauss(0, 1) for _ in range(64)])) for seq in range(1, 6)]
    await vectors.put(ref(conversation), "fake/64", told)
    steps = [quantise(*part)[HEADER.size :] for part in told]
    assert all(_is_in_files(tmp_path, body) for body in steps)
    await et.erase(conversation=conversation.id, message="m1")
    assert [_is_in_files(tmp_path, body) for body in steps] == [True, False, True, True, True]
    await et.erase(conversation=conversation.id)
    assert not any(_is_in_files(tmp_path, body) for body in steps)


def _is_in_files(folder: Path, body: bytes) -> bool:
    return any(body in file.read_bytes() for file in folder.glob("et.db*") if file.is_file())

"""The embedder that is shipped for tests."""

from __future__ import annotations

import struct

import pytest

from everthread.core.errors import ModelError
from everthread.testing import FakeEmbedder


def _cosine(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


async def test_texts_that_share_words_are_nearer() -> None:
    embedder = FakeEmbedder()
    near, far = await embedder.passages(["The Director of Arrival", "a recipe for bread"])
    asked = await embedder.query("who was the director?")
    assert _cosine(asked, near) > _cosine(asked, far)


async def test_words_that_are_alike_count_as_one() -> None:
    embedder = FakeEmbedder(alike={"movie": "film"})
    assert await embedder.query("film") == await embedder.query("Movie")


async def test_chinese_texts_that_share_characters_are_nearer() -> None:
    embedder = FakeEmbedder()
    near, far = await embedder.passages(["那部科幻电影的导演", "今天天气很好"])
    asked = await embedder.query("导演是谁")
    assert _cosine(asked, near) > _cosine(asked, far)


async def test_it_is_the_same_on_every_machine() -> None:
    assert (await FakeEmbedder(dimension=4).query("hello")).hex() == "0000803f000000000000000000000000"


async def test_it_fails_when_told_to_and_remembers_what_it_was_asked() -> None:
    embedder = FakeEmbedder()
    await embedder.query("one")
    embedder.fails = ModelError("down")
    with pytest.raises(ModelError):
        await embedder.passages(["two"])
    assert embedder.asked == ["one"]

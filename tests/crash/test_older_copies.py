"""A database put back from an older copy is sound in itself: only heads kept elsewhere tell what is missing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

import everthread
from everthread import Conversation, Head, VerifyReport
from tests.postgres import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A database that nobody has open, and a way to copy it."""

    url: str
    copied: Callable[[], str]
    """Copy it as it is now; the address of the copy."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as databases:
        yield _sqlite(tmp_path) if request.param == "sqlite" else _postgres(request, databases)


def _sqlite(folder: Path) -> Place:
    """All connections are closed, so the file is all there is."""
    return Place(
        url=f"sqlite:///{folder / 'et.db'}",
        copied=lambda: f"sqlite:///{shutil.copy(folder / 'et.db', folder / 'older.db')}",
    )


def _postgres(request: pytest.FixtureRequest, databases: ExitStack) -> Place:
    server: Server = request.getfixturevalue("postgres_server")
    url = databases.enter_context(server.database())
    name = url.partition("@/")[2].partition("?")[0]

    def copied() -> str:
        server.run_sql(f"CREATE DATABASE {name}_older TEMPLATE {name}")
        databases.callback(server.run_sql, f"DROP DATABASE {name}_older WITH (FORCE)")
        return server.url(f"{name}_older")

    return Place(url=url, copied=copied)


async def say(conversation: Conversation, *texts: str) -> None:
    await conversation.append([{"role": "user", "content": text} for text in texts])


async def begin(url: str) -> None:
    async with everthread.open(url) as et:
        for id in ("grows", "rests"):
            await say(await et.conversations.create(id=id), "one", "two")


async def go_on(url: str) -> list[Head]:
    """More messages, and one more conversation; the heads after that are kept elsewhere."""
    async with everthread.open(url) as et:
        await say(await et.conversations.get("grows"), "three", "four")
        await say(await et.conversations.create(id="is new"), "one")
        return await et.heads()


async def go_on_otherwise(url: str) -> None:
    async with everthread.open(url) as et:
        await say(await et.conversations.get("grows"), "three, otherwise", "four, otherwise", "five")


async def verified(url: str, against: list[Head] | None) -> VerifyReport:
    async with everthread.open(url) as et:
        return await et.verify(against=against)


def problems(report: VerifyReport) -> set[tuple[str, str]]:
    return {(problem.kind, problem.conversation_id) for problem in report.problems}


def test_an_older_copy_is_sound_but_for_the_heads(place: Place) -> None:
    asyncio.run(begin(place.url))
    older = place.copied()
    heads = asyncio.run(go_on(place.url))
    assert asyncio.run(verified(place.url, heads)).ok
    assert asyncio.run(verified(older, None)).ok
    assert problems(asyncio.run(verified(older, heads))) == {("cut", "grows"), ("missing", "is new")}


def test_an_older_copy_that_went_on_otherwise_is_found(place: Place) -> None:
    asyncio.run(begin(place.url))
    older = place.copied()
    heads = asyncio.run(go_on(place.url))
    asyncio.run(go_on_otherwise(older))
    assert asyncio.run(verified(older, None)).ok
    assert problems(asyncio.run(verified(older, heads))) == {("rewritten", "grows"), ("missing", "is new")}


def test_two_copies_that_went_apart_tell_each_other_from_themselves(place: Place) -> None:
    asyncio.run(begin(place.url))
    older = place.copied()
    heads = asyncio.run(go_on(place.url))
    others = asyncio.run(go_on(older))
    assert asyncio.run(verified(older, others)).ok
    assert problems(asyncio.run(verified(older, heads))) == {("rewritten", "grows"), ("rewritten", "is new")}
    assert problems(asyncio.run(verified(place.url, others))) == {("rewritten", "grows"), ("rewritten", "is new")}

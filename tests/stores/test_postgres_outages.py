"""What a caller of the PostgreSQL store meets when the server goes away: at most one unknown outcome, never a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

import everthread
from everthread import Conversation
from everthread.adapters.stores.postgres.erase import NOT_REWRITTEN
from everthread.core import failpoints
from everthread.core.errors import StoreGone
from tests.postgres import OwnServer, StopMode, name_of, own_server

BATCH = [{"role": "user", "content": "first", "id": "a"}, {"role": "assistant", "content": "second", "id": "b"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    with own_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def address(server: OwnServer) -> Iterator[str]:
    with server.database() as url:
        yield url


@pytest.fixture
def at() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Do something once, when the flow is at a fail point."""

    def arm(name: str, deed: Callable[[], None]) -> None:
        def trap(reached: str) -> None:
            if reached == name:
                failpoints.arm(None)
                deed()

        failpoints.arm(trap)

    yield arm
    failpoints.arm(None)


async def _texts(conv: Conversation) -> list[str]:
    return [message.text async for message in conv.messages()]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_the_pool_survives_a_restart_of_the_server(address: str, server: OwnServer, mode: StopMode) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        await asyncio.gather(*(conv.append({"role": "user", "content": str(n)}) for n in range(8)))
        server.stop(mode)
        server.start()
        await conv.append(BATCH)
        assert (await _texts(conv))[-2:] == ["first", "second"]
        assert (await et.verify()).ok


async def test_i1_what_was_acknowledged_survives_the_death_of_the_server(address: str, server: OwnServer) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        for number in range(20):
            await conv.append({"role": "user", "content": str(number)})
        server.kill9()
        server.start()
        assert await _texts(conv) == [str(number) for number in range(20)]
        assert (await et.verify()).ok


async def test_while_the_server_is_down_calls_say_so_and_may_be_retried(address: str, server: OwnServer) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        server.stop()
        with pytest.raises(StoreGone, match="cannot reach PostgreSQL") as caught:
            await conv.append(BATCH)
        assert caught.value.retryable
        server.start()
        await conv.append(BATCH)
        assert await _texts(conv) == ["first", "second"]


@pytest.mark.parametrize("place", ["append.locked", "append.entries_written"])
async def test_a_connection_lost_before_the_commit_is_made_good(
    address: str, server: OwnServer, at: Callable[[str, Callable[[], None]], None], place: str
) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        at(place, lambda: _end_backends(server))
        receipts = await conv.append(BATCH)
        assert [(receipt.seq, receipt.new) for receipt in receipts] == [(1, True), (2, True)]
        assert await _texts(conv) == ["first", "second"]
        assert (await et.verify()).ok


def _end_backends(server: OwnServer) -> None:
    server.run_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'et_%'")


async def test_a_connection_lost_during_the_commit_is_an_unknown_outcome(
    address: str, server: OwnServer, at: Callable[[str, Callable[[], None]], None]
) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        at("commit.before", server.kill9)
        with pytest.raises(StoreGone, match="may or may not") as caught:
            await conv.append(BATCH)
        assert caught.value.retryable
        server.start()
        await conv.append(BATCH)
        assert await _texts(conv) == ["first", "second"]


async def test_i2_a_retry_after_an_unknown_outcome_stores_nothing_twice(
    address: str, server: OwnServer, at: Callable[[str, Callable[[], None]], None]
) -> None:
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        at("commit.after", server.kill9)
        await conv.append(BATCH)
        server.start()
        assert [receipt.new for receipt in await conv.append(BATCH)] == [False, False]
        assert await _texts(conv) == ["first", "second"]


async def test_an_erase_cut_off_before_its_rewrite_is_finished_at_the_next_opening(
    address: str, server: OwnServer, at: Callable[[str, Callable[[], None]], None]
) -> None:
    unfinished = "SELECT count(*) FROM erasures WHERE finished_at IS NULL"
    name = name_of(address)
    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        await conv.append(BATCH)
        at("erase.committed", server.kill9)
        proof = await et.erase(conversation=conv.id)
        assert proof.cannot_reach[-1].startswith(NOT_REWRITTEN)
        server.start()
        assert server.run_sql(unfinished, name) == "1"
    async with everthread.open(address) as et:
        assert server.run_sql(unfinished, name) == "0"
        assert (await et.verify()).erased == 2


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.parametrize(
    "point", ["erase.words_removed", "erase.payloads_blanked", "erase.recorded", "erase.compacted"]
)
async def test_an_erase_in_which_the_server_is_restarted_is_whole_or_not_begun(
    point: str,
    mode: StopMode,
    address: str,
    server: OwnServer,
    at: Callable[[str, Callable[[], None]], None],
) -> None:
    def restart() -> None:
        server.stop(mode)
        server.start()

    async with everthread.open(address) as et:
        conv = await et.conversations.create()
        await conv.append(BATCH)
        at(point, restart)
        report = await et.erase(conversation=conv.id)
        assert report.entries == 2
    async with everthread.open(address) as et:
        assert server.run_sql("SELECT count(*) FROM erasures WHERE finished_at IS NULL", name_of(address)) == "0"
        assert server.run_sql("SELECT count(*) FROM erasures", name_of(address)) == "1"
        assert (await et.verify()).erased == 2

"""A network between the service and PostgreSQL that delays, cuts or swallows what is sent: every call ends in bounded
time with an error that says what is safe, nothing acknowledged is lost, and all is as before when the network is."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.adapters.stores.postgres import erase, pool, signals
from everthread.adapters.stores.postgres import statements as sql
from everthread.core import failpoints
from everthread.core.errors import NotFound, StoreBusy, StoreError, StoreGone
from everthread.core.nouns import Ref
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for
from tests.postgres import Server, name_of
from tests.stores.network import Network, network_to

API = "/api/v1"
ANSWER_SECONDS = 1
"""How long the calls of these tests wait for PostgreSQL."""
BOUND_SECONDS = 30
"""What no call may take; on a busy machine much more than it does."""
BATCH = [{"role": "user", "content": "first", "id": "a"}, {"role": "assistant", "content": "second", "id": "b"}]


@pytest.fixture
async def network(postgres_server: Server) -> AsyncIterator[Network]:
    async with network_to(postgres_server.folder) as made:
        yield made


@pytest.fixture
def url(network: Network, address: str) -> str:
    """The database of this test, over that network."""
    return network.url(name_of(address), pool_size=3, command_timeout=ANSWER_SECONDS, connect_timeout=ANSWER_SECONDS)


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


async def texts(conv: Conversation) -> list[str]:
    return [message.text async for message in conv.messages()]


@asynccontextmanager
async def service(url: str) -> AsyncIterator[tuple[Everthread, httpx.AsyncClient]]:
    async with everthread.open(url, worker=False) as et:
        settings = Settings(database=url, requests_per_minute=0, model="scripted:echo")
        app = create_app(et, settings)
        async with app.router.lifespan_context(app), client_of(app, await key_for(et, "ann")) as http:
            http.timeout = httpx.Timeout(60)
            yield et, http


async def test_calls_on_a_silent_network_end_and_the_pool_is_whole_afterwards(url: str, network: Network) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        await asyncio.gather(*(conv.append({"role": "user", "content": str(n)}) for n in range(3)))
        network.freeze()
        async with asyncio.timeout(BOUND_SECONDS):
            calls = [conv.append({"role": "user", "content": "lost", "id": f"lost-{n}"}) for n in range(9)]
            ended = await asyncio.gather(*calls, texts(conv), return_exceptions=True)
        assert {type(one) for one in ended} <= {StoreBusy, StoreGone}
        assert all(isinstance(one, StoreError) and one.retryable for one in ended)
        network.mend()
        await asyncio.gather(*(conv.append({"role": "user", "content": "back", "id": f"n{n}"}) for n in range(9)))
        assert (await texts(conv)).count("back") == 9
        assert (await et.verify()).ok


async def test_a_cancelled_call_on_a_silent_network_keeps_no_connection(url: str, network: Network) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        network.freeze()
        calls = [asyncio.create_task(conv.append(BATCH)) for _ in range(6)]
        await asyncio.sleep(0.1)
        for call in calls:
            call.cancel()
        async with asyncio.timeout(BOUND_SECONDS):
            await asyncio.wait(calls)
        network.mend()
        async with asyncio.timeout(BOUND_SECONDS):
            await asyncio.gather(*(conv.append(BATCH) for _ in range(6)))
        assert await texts(conv) == ["first", "second"]


@pytest.mark.parametrize(("place", "expected"), [("append.locked", StoreBusy), ("commit.before", StoreGone)])
async def test_a_network_that_falls_silent_in_an_append_leaves_it_whole_or_not_there(
    url: str,
    network: Network,
    at: Callable[[str, Callable[[], None]], None],
    place: str,
    expected: type[StoreError],
) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        at(place, network.freeze)
        async with asyncio.timeout(BOUND_SECONDS):
            with pytest.raises(expected):
                await conv.append(BATCH)
        network.mend()
        await conv.append(BATCH)
        assert await texts(conv) == ["first", "second"]


async def test_the_server_lets_go_of_what_somebody_held_who_is_not_heard_of_any_more(
    url: str,
    address: str,
    network: Network,
    at: Callable[[str, Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sql, "BEGIN", sql.BEGIN.replace("60s", "1s"))
    async with everthread.open(address, worker=False) as near, everthread.open(url, worker=False) as far:
        there = await far.conversations.create(id="held")
        here = await near.conversations.get("held")
        at("append.locked", network.freeze)
        with pytest.raises(StoreError):
            await there.append({"role": "user", "content": "from far"})
        async with asyncio.timeout(BOUND_SECONDS):
            await here.append(BATCH)
        assert await texts(here) == ["first", "second"]
        network.mend()


async def test_an_erase_ends_though_the_server_is_not_heard_of_while_it_rewrites(
    url: str, network: Network, at: Callable[[str, Callable[[], None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_ALIVE_SECONDS", 0.2)
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        await conv.append(BATCH)
        at("erase.committed", network.freeze)
        async with asyncio.timeout(BOUND_SECONDS):
            proof = await et.erase(conversation=conv.id)
        assert any(one.startswith(erase.NOT_REWRITTEN) for one in proof.cannot_reach)
        network.mend()
    async with everthread.open(url, worker=False) as et:
        assert (await et.verify()).erased == 2


async def test_readyz_says_within_seconds_that_the_network_is_gone_and_that_it_is_back(
    url: str, network: Network
) -> None:
    async with service(url) as (_, http):
        assert (await http.get("/readyz")).status_code == 200
        network.freeze()
        async with asyncio.timeout(BOUND_SECONDS):
            answers = await asyncio.gather(*(http.get("/readyz") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {503}
        assert (await http.get("/healthz")).status_code == 200
        network.mend()
        async with asyncio.timeout(BOUND_SECONDS):
            answers = [await http.get("/readyz") for _ in range(3)]  # the first may find the question that was lost
        assert answers[-1].status_code == 200


@pytest.mark.parametrize("limit", [1, 100, 400, 450, 500, 600, 800, 1200, 2000, 4000])
async def test_connections_that_break_after_some_bytes_store_nothing_twice(
    url: str, network: Network, limit: int
) -> None:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create()
        network.cut_after_bytes = limit
        network.break_all()
        async with asyncio.timeout(BOUND_SECONDS):
            for _ in range(5):
                with suppress(StoreGone):
                    await conv.append(BATCH)
        network.mend()
        await conv.append(BATCH)
        assert await texts(conv) == ["first", "second"]


async def test_a_listener_whose_connection_is_swallowed_listens_again(
    url: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_ALIVE_SECONDS", 0.2)
    async with everthread.open(url, worker=False) as et:
        told = asyncio.Event()  # with every new connection: of whatever came while nobody listened
        forget = et.store.turns.subscribe(Ref("local", "c"), lambda _: told.set())
        async with asyncio.timeout(BOUND_SECONDS):
            await told.wait()
            told.clear()
            network.abandon()
            await told.wait()
        forget()


async def test_nothing_acknowledged_is_lost_on_a_network_that_fails_again_and_again(url: str, network: Network) -> None:
    await faults(url, network, rounds=6, seed=1)


@pytest.mark.long
async def test_nothing_acknowledged_is_lost_on_a_network_that_fails_for_long(url: str, network: Network) -> None:
    await faults(url, network, rounds=150, seed=2)


async def faults(url: str, network: Network, *, rounds: int, seed: int) -> None:
    """Turns, appends and erases, while the network fails in every way."""
    dice = random.Random(seed)
    async with service(url) as (et, http):
        done = asyncio.Event()
        work = Work(et, http)
        workers = [asyncio.create_task(act(n, done)) for act in (work.append, work.chat, work.erase) for n in range(2)]
        for _ in range(rounds):
            fault = dice.choice([network.cut, network.freeze, network.half_close, network.break_all, slow(network)])
            fault()
            await asyncio.sleep(dice.uniform(0, 2 * ANSWER_SECONDS))
            network.mend()
            await asyncio.sleep(dice.uniform(0, 2 * ANSWER_SECONDS))
        done.set()
        async with asyncio.timeout(BOUND_SECONDS):
            await asyncio.gather(*workers)
        assert (await http.get("/readyz")).status_code == 200
        await work.check()
        assert (await et.verify()).ok


def slow(network: Network) -> Callable[[], None]:
    def delay() -> None:
        network.delay_seconds = 0.2

    return delay


class Work:
    """What clients do, and what they were promised."""

    def __init__(self, et: Everthread, http: httpx.AsyncClient) -> None:
        self._et = et
        self._http = http
        self.kept: dict[str, list[str]] = {}
        """The texts of acknowledged messages, by conversation, in their order."""
        self.erased: set[str] = set()

    async def _sent(self, path: str, body: object) -> httpx.Response:
        async with asyncio.timeout(BOUND_SECONDS):
            answer = await self._http.post(f"{API}{path}", json=body)
        if answer.status_code >= 500:
            assert answer.status_code == 503, answer.text
            problem = answer.json()
            assert problem["retryable"], problem
            assert problem["safe"], problem
        return answer

    async def append(self, number: int, done: asyncio.Event) -> None:
        name = f"appended-{number}"
        count = 0
        while not done.is_set():
            text = f"{name} {count}"
            body = {"messages": [{"role": "user", "content": text, "id": f"m{count}"}]}
            answer = await self._sent(f"/conversations/{name}/messages", body)
            if answer.status_code == 404:
                await self._sent("/conversations", {"id": name})
            elif answer.status_code < 300:
                self.kept.setdefault(name, []).append(text)
                count += 1

    async def chat(self, number: int, done: asyncio.Event) -> None:
        name = f"said-{number}"
        count = 0
        while not done.is_set():
            text = f"{name} {count}"
            answer = await self._sent("/chat", {"conversation_id": name, "message": text})
            if answer.status_code < 300:
                self.kept.setdefault(name, []).append(text)
            count += 1

    async def erase(self, number: int, done: asyncio.Event) -> None:
        count = 0
        while not done.is_set():
            name = f"gone-{number}-{count}"
            await self._sent("/conversations", {"id": name})
            answer = await self._sent(f"/conversations/{name}/messages", {"messages": BATCH})
            if answer.status_code < 300:
                answer = await self._sent(f"/conversations/{name}/erase", {"confirm": name})
                if answer.status_code < 300:
                    self.erased.add(name)
            count += 1

    async def check(self) -> None:
        for name, expected in self.kept.items():
            said = [text for text in await self._said(name) if text in set(expected)]
            assert said == expected, name
        for name in self.erased:
            assert not any(await self._said(name)), name
        assert self.kept
        assert self.erased

    async def _said(self, name: str) -> list[str]:
        try:
            conv = await self._et.conversations.get(name, "ann")
        except NotFound:
            return []
        return [message.text async for message in conv.messages() if message.role == "user"]

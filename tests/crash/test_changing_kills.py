"""`everthread serve` on PostgreSQL is killed while answers are given again, messages edited, branches made and erased:
no half of any of it is left, and of what was erased no byte in a table or a file of the database."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="needs everthread[server]")

import everthread
from everthread import Conversation, Everthread, NotFound
from tests.crash.stream_clients import KilledServer
from tests.forkserver import ForkServer
from tests.http.served import API, scripted
from tests.http.test_erase_everywhere import found_in, rows_of, unpacked
from tests.postgres import Server, name_of

KILLS = 5
LONG_KILLS = 100
CLIENTS = 3
PATIENCE_SECONDS = 120.0


@dataclass(slots=True)
class Client:
    """Somebody who works on one conversation, and what was promised to them."""

    name: str
    http: httpx.AsyncClient
    dice: random.Random
    count: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    """The ids and texts of appended messages that were acknowledged, and not begun to be erased."""
    erasing: dict[str, str] = field(default_factory=dict)
    """Those whose erase was begun."""
    erased: dict[str, str] = field(default_factory=dict)
    """Those whose erase was acknowledged."""
    again: int = 0
    """How many answers were given again, as far as we were told."""
    forks: int = 0
    begun_forks: int = 0
    acts: int = 0
    """How many of all acts were acknowledged."""

    async def work(self) -> None:
        """Until the service is gone."""
        acts: tuple[Callable[[], Awaitable[None]], ...] = (
            self.append, self.append, self.regenerate, self.regenerate, self.edit, self.fork, self.erase,
        )  # fmt: skip
        with suppress(httpx.TransportError):
            await self.send("POST", "/chat", {"conversation_id": self.name, "message": "where were we?"})
            while True:
                await self.dice.choice(acts)()
                self.acts += 1

    async def send(self, method: str, path: str, body: Any) -> Any:
        answer = await self.http.request(method, f"{API}{path}", json=body)
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
        return answer.json()

    async def append(self) -> None:
        self.count += 1
        id, text = f"m{self.count}", f"qz{self.name}word{self.count}z"
        await self.send("POST", self._at("/messages"), {"messages": [{"role": "user", "content": text, "id": id}]})
        self.texts[id] = text

    async def regenerate(self) -> None:
        await self.send("POST", self._at("/regenerate"), {})
        self.again += 1

    async def edit(self) -> None:
        if self.texts:
            self.begun_forks += 1
            id = self.dice.choice(list(self.texts))
            await self.send("PATCH", self._at(f"/messages/{id}"), {"content": "otherwise"})
            self.forks += 1

    async def fork(self) -> None:
        self.begun_forks += 1
        await self.send("POST", self._at("/fork"), {"at_seq": 1, "activate": True})
        self.forks += 1

    async def erase(self) -> None:
        if self.texts:
            id = self.dice.choice(list(self.texts))
            self.erasing[id] = self.texts.pop(id)
            await self.send("POST", self._at(f"/messages/{id}/erase"), {"confirm": id})
            self.erased[id] = self.erasing.pop(id)

    def _at(self, path: str) -> str:
        return f"/conversations/{self.name}{path}"

    async def judge(self, et: Everthread) -> list[str]:
        """The words that must be nowhere now."""
        conversation = await et.conversations.get(self.name)
        for id, text in self.texts.items():
            assert (await conversation.message(id)).text == text
        gone = [text for id, text in self.erasing.items() if not await has_text(conversation, id)]
        branches = len([one async for one in conversation.branches()]) - 1
        again = len([turn for turn in await conversation.turns(limit=100_000) if not turn.question_id])
        assert again >= self.again
        assert self.forks <= branches - again <= self.begun_forks, "a branch without its turn, or a turn without it"
        return [*self.erased.values(), *gone]


async def has_text(conversation: Conversation, id: str) -> bool:
    with suppress(NotFound):
        return bool((await conversation.message(id)).text)
    return False


async def kill_again_and_again(
    forkserver: ForkServer, server: Server, url: str, folder: Path, kills: int, seed: int
) -> None:
    dice = random.Random(seed)
    model = scripted(folder, "never ends, never forgets", pace_seconds=0.005)
    service = KilledServer(forkserver, url, model)
    async with httpx.AsyncClient(base_url=service.address, timeout=PATIENCE_SECONDS) as http:
        clients = [Client(f"c{number}", http, random.Random(seed + number)) for number in range(CLIENTS)]
        for _ in range(kills):
            service.spawn()
            await service.until_it_listens()
            working = [asyncio.create_task(client.work()) for client in clients]
            # Killed by what was done, not by the clock: on a slow machine nothing would have been erased yet.
            enough = sum(client.acts for client in clients) + dice.randint(3, 15)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while sum(client.acts for client in clients) < enough:  # noqa: ASYNC110 - told by acts of the clients
                    await asyncio.sleep(dice.uniform(0, 0.05))
            service.kill()
            await asyncio.gather(*working)
    async with everthread.open(url, worker=False) as et:
        assert (await et.verify()).ok
        words = [word for client in clients for word in await client.judge(et)]
        assert words, "nothing was erased"
        assert sum(client.again for client in clients), "no answer was given again"
        cells = [
            one for rows in (await rows_of(url)).values() for row in rows for cell in row for one in unpacked(cell)
        ]
        kept = [text for client in clients for text in client.texts.values()]
        assert found_in(cells, kept) == set(kept), "the scan sees what is there"
        assert found_in([*cells, *files_of(server, name_of(url))], words) == set()


def files_of(server: Server, name: str) -> list[bytes]:
    server.run_sql("CHECKPOINT")
    oid = server.run_sql(f"SELECT oid FROM pg_database WHERE datname = '{name}'")
    return [file.read_bytes() for file in (server.data / "base" / oid).iterdir() if file.is_file()]


@pytest.mark.parametrize("store", ["postgres"])
async def test_a_killed_service_leaves_no_half_of_an_answer_given_again_and_no_byte_of_what_was_erased(
    store: str, forkserver: ForkServer, postgres_server: Server, tmp_path: Path
) -> None:
    with postgres_server.database() as url:
        await kill_again_and_again(forkserver, postgres_server, url, tmp_path, KILLS, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("store", ["postgres"])
async def test_a_service_killed_many_times_leaves_no_half_of_anything(
    store: str, forkserver: ForkServer, postgres_server: Server, tmp_path: Path
) -> None:
    with postgres_server.database() as url:
        await kill_again_and_again(forkserver, postgres_server, url, tmp_path, LONG_KILLS, seed=2)

"""Connections break, servers die: nothing that was stored changes, and whoever comes back gets exactly the rest."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from langgraph_sdk import get_client

from everthread.core.clock import system_clock
from everthread.core.ids import LOCAL, new_id
from everthread.core.nouns import Ref
from everthread.core.turns import RUN_KIND, Turn, TurnState
from everthread.history.turn_intents import ROLLBACK, BeginTurn
from everthread.langgraph import EverthreadSaver
from tests.forkserver import Child, ForkServer
from tests.http import served
from tests.http.protocol import agents
from tests.http.protocol.rig import CONFIG, Server, says, serving

BODY: dict[str, Any] = {"assistant_id": "slow", "input": says("a"), "stream_mode": ["custom", "values"]}
TICKS = 12


async def events(
    http: httpx.AsyncClient, method: str, path: str, most: int | None = None, **request: Any
) -> list[tuple[int, str, str]]:
    """Number, name and data of a stream's events; after so many, the connection is cut."""
    seen: list[tuple[int, str, str]] = []
    fields: dict[str, str] = {}
    async with http.stream(method, path, **request) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            fields[name] = value
            if name == "id":
                seen.append((int(value), fields["event"], fields["data"]))
                if len(seen) == most:
                    break
    return seen


async def run_of(http: httpx.AsyncClient, thread_id: str) -> str:
    return str((await http.get(f"/threads/{thread_id}/runs")).json()[0]["run_id"])


async def test_i17_a_disconnect_changes_nothing_stored(durable_url: str) -> None:
    """Whoever reads to the end, and whoever leaves at some event, leave the same behind."""
    chance = random.Random(7)
    body = {**BODY, "context": {"ticks": TICKS, "seconds": 0.01}}
    async with serving(durable_url) as server, server.http() as http:
        whole = await _told(http, "whole", body, None)
        for number, most in enumerate(chance.sample(range(1, TICKS + 2), 6)):
            assert await _told(http, f"cut{number}", body, most) == whole


async def _told(http: httpx.AsyncClient, thread_id: str, body: Any, most: int | None) -> list[tuple[str, Any]]:
    """What a run tells and leaves in its thread, once its first reader has left."""
    await http.post("/threads", json={"thread_id": thread_id})
    await events(http, "POST", f"/threads/{thread_id}/runs/stream", most, json=body)
    run_id = await run_of(http, thread_id)
    values = (await http.get(f"/threads/{thread_id}/runs/{run_id}/join")).json()
    assert [message["content"] for message in values["messages"]] == ["a", "slow done"]
    assert (await http.get(f"/threads/{thread_id}/runs/{run_id}")).json()["status"] == "success"
    again = await events(http, "GET", f"/threads/{thread_id}/runs/{run_id}/stream")
    return [(name, json.loads(data) if name == "custom" else None) for _, name, data in again]


async def test_i18_resume_yields_exactly_the_missing_events(durable_url: str) -> None:
    """Live and finished, with 0 to 3 reconnects at any event; and after a restart, from the database alone."""
    chance = random.Random(18)
    body = {**BODY, "context": {"ticks": TICKS, "seconds": 0.01}}
    whole: dict[str, list[tuple[int, str, str]]] = {}
    async with serving(durable_url) as server, server.http() as http:
        for number in range(6):
            thread_id = f"t{number}"
            await http.post("/threads", json={"thread_id": thread_id})
            seen = await events(http, "POST", f"/threads/{thread_id}/runs/stream", chance.randint(1, TICKS), json=body)
            path = f"/threads/{thread_id}/runs/{await run_of(http, thread_id)}/stream"
            for _ in range(chance.randint(0, 3)):
                seen += await events(
                    http, "GET", path, chance.randint(1, 3), headers={"Last-Event-ID": str(seen[-1][0])}
                )
            seen += await events(http, "GET", path, headers={"Last-Event-ID": str(seen[-1][0])})
            assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))
            assert seen[-1][1] == "end"
            whole[path] = seen
    async with serving(durable_url) as server, server.http() as http:
        for path, told in whole.items():
            after = chance.randint(0, len(told) - 1)
            assert await events(http, "GET", path, headers={"Last-Event-ID": str(after)}) == told[after:]


@asynccontextmanager
async def process(forkserver: ForkServer, url: str) -> AsyncIterator[tuple[Child, httpx.AsyncClient]]:
    """`everthread serve` with graphs, as a process of its own, and somebody who asks it."""
    with served.process(forkserver, url, "--langgraph", str(CONFIG)) as (server, address):
        async with httpx.AsyncClient(base_url=address, timeout=30) as http:
            yield server, http


async def test_i16_every_accepted_run_ends_in_a_final_state_after_its_worker_dies(
    forkserver: ForkServer, durable_url: str
) -> None:
    """Killed with -9 in mid stream, one run going on and one waiting: both are over, none is run again."""
    body = {**BODY, "context": {"ticks": 1000, "seconds": 0.02}}
    async with process(forkserver, durable_url) as (server, http):
        await http.post("/threads", json={"thread_id": "c"})
        seen = await events(http, "POST", "/threads/c/runs/stream", 40, json=body)
        run_id = await run_of(http, "c")
        await http.post("/threads/c/runs", json=body)
        server.send(signal.SIGKILL)  # at once: what was seen is stored
    async with process(forkserver, durable_url) as (_, http):
        await http.get(f"/threads/c/runs/{run_id}/join")
        statuses = await _settled(http)
        assert statuses == ["interrupted", "interrupted"]
        rest = await events(
            http, "GET", f"/threads/c/runs/{run_id}/stream", headers={"Last-Event-ID": str(seen[-1][0])}
        )
        numbers = [number for number, _, _ in seen + rest]
        assert numbers == sorted(set(numbers)), "none is used twice"
        assert [name for _, name, _ in rest[-2:]] == ["error", "end"]
        whole = await events(http, "GET", f"/threads/c/runs/{run_id}/stream")
        assert whole == seen + rest, "whoever comes later gets the same"
        logged = (await http.get(f"{served.API}/conversations/c/messages")).json()["items"]
        assert [message["text"] for message in logged] == ["a", "a"], "what was asked is kept, even by one that waited"
        async with get_client(url=str(http.base_url)) as client:
            answer: Any = await client.runs.wait("c", "agent", input=says("again"))
        assert [message["content"] for message in answer["messages"]] == ["a", "again", "one two three"]


async def _settled(http: httpx.AsyncClient) -> list[str]:
    while True:
        statuses = [run["status"] for run in (await http.get("/threads/c/runs")).json()]
        if not {"running", "pending"} & set(statuses):
            return statuses
        await asyncio.sleep(0.05)


async def test_a_rollback_that_a_dead_server_left_undone_is_carried_out(server: Server) -> None:
    ref, run_id = Ref(LOCAL, "t"), new_id()
    async with server.http() as http, server.sdk() as client:
        await http.post("/threads", json={"thread_id": "t"})
        await client.runs.wait("t", "agent", input=says("kept"))
        before = await client.threads.get_state("t")
        graph = agents.graph.copy(update={"checkpointer": EverthreadSaver(server.et)})
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}}
        undone: Any = says("undone")
        await graph.ainvoke(undone, config)
        assert (await client.threads.get_state("t"))["values"] != before["values"]
        dead = Turn(
            id=run_id,
            conversation_id="t",
            state=TurnState.RECEIVED,
            question_id=run_id,
            answer_id=run_id,
            received_at=system_clock(),
            kind=RUN_KIND,
            metadata={ROLLBACK: True},
            holder="gone",
            lease_until=system_clock() - timedelta(seconds=1),
        )
        await server.et.runtime.write(ref, BeginTurn(turn=dead, messages=()))
        await server.et.runs.close_dead()
        assert (await server.et.store.turns.get(ref, run_id)).state is TurnState.INTERRUPTED
        assert (await client.threads.get_state("t"))["values"] == before["values"]


async def test_a_server_that_stops_closes_its_runs_as_interrupted(forkserver: ForkServer, durable_url: str) -> None:
    body = {**BODY, "context": {"ticks": 1000, "seconds": 0.02}}
    async with process(forkserver, durable_url) as (server, http):
        await http.post("/threads", json={"thread_id": "t"})
        run_id = (await http.post("/threads/t/runs", json=body)).json()["run_id"]
        server.send(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == 0
    async with serving(durable_url) as again, again.http() as http:
        run = (await http.get(f"/threads/t/runs/{run_id}")).json()
        assert run["status"] == "interrupted"


async def test_a_run_whose_events_are_gone_is_answered_with_how_its_thread_stands(server: Server) -> None:
    async with server.http() as http:
        await http.post("/threads", json={"thread_id": "t"})
        run_id = (await http.post("/threads/t/runs", json={**BODY, "assistant_id": "agent"})).json()["run_id"]
        await http.get(f"/threads/t/runs/{run_id}/join")
        await server.et.store.turns.prune_events(system_clock())
        told = await events(http, "GET", f"/threads/t/runs/{run_id}/stream")
    assert [name for _, name, _ in told] == ["values", "end"]
    assert json.loads(told[0][2])["messages"][-1]["content"] == "one two three"


async def test_the_input_of_a_run_that_a_stopping_server_ends_is_kept(durable_url: str, tmp_path: Path) -> None:
    """Also where the graph had not come to its first checkpoint, which would have brought the message to the log."""
    (tmp_path / "sleepy.py").write_text("import asyncio\nasync def make(config): await asyncio.sleep(600)\n")
    (tmp_path / "langgraph.json").write_text(json.dumps({"graphs": {"sleepy": "./sleepy.py:make"}}))
    message = {"role": "user", "content": "do not forget me", "id": "m1"}
    async with serving(durable_url, tmp_path / "langgraph.json") as server, server.http() as http:
        await http.post("/threads", json={"thread_id": "t"})
        body = {"assistant_id": "sleepy", "input": {"messages": [message]}}
        run_id = (await http.post("/threads/t/runs", json=body)).json()["run_id"]
        while (await http.get(f"/threads/t/runs/{run_id}")).json()["status"] != "running":  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.02)
        await server.et.runs.close(0)
        conversation = await server.et.conversations.get("t")
        assert (await conversation.turn(run_id)).state == "interrupted"
        assert [one.text for one in await conversation.tail(5)] == ["do not forget me"]

"""What belongs to another owner looks like what does not exist; what is malformed is refused before that."""

from __future__ import annotations

from typing import Any

import httpx

from everthread.core.access import new_key
from everthread.core.clock import system_clock
from tests.http.protocol.rig import Server, says

BODY: dict[str, Any] = {"assistant_id": "agent", "input": says("x")}
OF_A_THREAD: list[tuple[str, str, Any]] = [
    ("GET", "/threads/{t}", None),
    ("PATCH", "/threads/{t}", {"metadata": {}}),
    ("DELETE", "/threads/{t}", None),
    ("POST", "/threads/{t}/copy", None),
    ("GET", "/threads/{t}/state", None),
    ("POST", "/threads/{t}/state", {"values": {}}),
    ("GET", "/threads/{t}/state/c", None),
    ("POST", "/threads/{t}/state/checkpoint", {"checkpoint": {"checkpoint_id": "c"}}),
    ("GET", "/threads/{t}/history", None),
    ("POST", "/threads/{t}/history", {}),
    ("GET", "/threads/{t}/full-history", None),
    ("GET", "/threads/{t}/runs", None),
    ("POST", "/threads/{t}/runs", BODY),
    ("POST", "/threads/{t}/runs/wait", BODY),
    ("POST", "/threads/{t}/runs/stream", BODY),
    ("GET", "/threads/{t}/runs/{r}", None),
    ("DELETE", "/threads/{t}/runs/{r}", None),
    ("GET", "/threads/{t}/runs/{r}/join", None),
    ("GET", "/threads/{t}/runs/{r}/stream", None),
    ("POST", "/threads/{t}/runs/{r}/cancel", None),
]


async def _client(server: Server, owner: str) -> httpx.AsyncClient:
    made = new_key(owner, is_admin=False, now=system_clock())
    await server.et.store.api_keys.add(made.key)
    return server.http(made.written)


def _same(answer: httpx.Response, id: str) -> tuple[int, str]:
    return answer.status_code, answer.text.replace(id, "ID")


async def test_another_owners_thread_and_run_are_answered_like_unknown_ones(server: Server) -> None:
    async with await _client(server, "alice") as alice, await _client(server, "bob") as bob:
        thread_id = (await alice.post("/threads", json={})).json()["thread_id"]
        run_id = (await alice.post(f"/threads/{thread_id}/runs", json=BODY)).json()["run_id"]
        await alice.get(f"/threads/{thread_id}/runs/{run_id}/join")
        for method, path, body in OF_A_THREAD:
            foreign = await bob.request(method, path.format(t=thread_id, r=run_id), json=body)
            unknown = await bob.request(method, path.format(t="0" * 36, r=run_id), json=body)
            assert foreign.status_code == 404, (method, path)
            assert _same(foreign, thread_id) == _same(unknown, "0" * 36), (method, path)
        assert (await bob.post("/threads/search", json={})).json() == []
        assert (await alice.get(f"/threads/{thread_id}")).status_code == 200


async def test_assistants_and_documents_are_their_owners_alone(server: Server) -> None:
    async with await _client(server, "alice") as alice, await _client(server, "bob") as bob:
        made = (await alice.post("/assistants", json={"graph_id": "agent"})).json()["assistant_id"]
        await alice.put("/store/items", json={"namespace": ["n"], "key": "k", "value": {"v": 1}})
        assert (await bob.get(f"/assistants/{made}")).status_code == 404
        assert (await bob.post("/runs/wait", json={**BODY, "assistant_id": made})).status_code == 404
        assert (await bob.get("/store/items", params={"namespace": "n", "key": "k"})).json() is None
        assert (await bob.post("/store/namespaces", json={})).json() == {"namespaces": []}


async def test_a_config_cannot_speak_for_another_owner_or_thread(server: Server) -> None:
    async with await _client(server, "alice") as alice, await _client(server, "bob") as bob:
        await alice.post("/threads/t/runs/wait", json={**BODY, "if_not_exists": "create"})
        stolen = {"configurable": {"everthread_owner": "alice", "thread_id": "t", "checkpoint_ns": "x", "own": 1}}
        answer = await bob.post("/runs/wait", json={**BODY, "config": stolen})
        assert len(answer.json()["messages"]) == 2
        assert len((await alice.get("/threads/t/state")).json()["values"]["messages"]) == 2


MALFORMED: list[tuple[str, str, Any]] = [
    ("GET", "/threads/" + "x" * 129, None),
    ("GET", "/threads/a%00b", None),
    ("POST", "/threads", {"thread_id": ""}),
    ("POST", "/threads", {"thread_id": [7]}),
    ("POST", "/threads", {"no": 1}),
    ("POST", "/threads/search", {"no": 1}),
    ("POST", "/threads/search", {"limit": 0}),
    ("POST", "/threads/search", {"status": "odd"}),
    ("POST", "/threads/t/runs", {"input": {}}),
    ("POST", "/threads/t/runs", {**BODY, "stream_mode": ["odd"]}),
    ("POST", "/threads/t/runs", {**BODY, "multitask_strategy": "odd"}),
    ("POST", "/threads/t/runs", {**BODY, "webhook": "http://127.0.0.1:1/"}),
    ("POST", "/threads/t/runs", {**BODY, "config": {"recursion_limit": 0}}),
    ("POST", "/threads/t/runs", {**BODY, "config": {"configurable": 7}}),
    ("GET", "/threads/t/runs?odd=1", None),
    ("GET", "/threads/t/full-history?cursor=odd", None),
    ("GET", "/threads/t/full-history?limit=0", None),
    ("POST", "/runs/cancel", {}),
    ("PUT", "/store/items", {"namespace": ["a.b"], "key": "k", "value": {}}),
    ("PUT", "/store/items", {"namespace": "a", "key": "k", "value": {}}),
]


async def test_what_is_malformed_is_refused_and_nothing_is_stored(light: Server) -> None:
    async with light.http() as http:
        await http.post("/threads", json={"thread_id": "t"})
        for method, path, body in MALFORMED:
            answer = await http.request(method, path, json=body)
            assert answer.status_code == 422, (method, path, body, answer.text)
            assert answer.json()["detail"]
        assert (await http.get("/threads/t/runs")).json() == []
        assert (await http.post("/threads/count", json={})).json() == 1

"""Beside LangGraph's own server: the same requests, the same graphs, and the answers held against each other.

Its licence (Elastic 2.0) keeps it out of what is shipped: it is installed into `.venv-peers` by `make peers`, and this
runs with `make test-long`. What may differ is named in docs/reference/langgraph-protocol.md, and here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.http.protocol.rig import CONFIG, HERE, says, serving

ROOT = HERE.parents[2]
REFERENCE = ROOT / ".venv-peers" / "bin" / "langgraph"
PLACE = re.compile(r":[0-9a-f]{8}-[0-9a-f-]{27}")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{32}")
MAY_BE_MORE = {"error", "interrupts", "values", "older_cursor"}
"""Members that are always here and there only sometimes."""
MAY_BE_LESS = {"langsmith_session_name"}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference server: make peers"),
]


class Seen(NamedTuple):
    """What is compared of an answer."""

    status: int
    members: frozenset[str]
    events: tuple[str, ...] = ()


@asynccontextmanager
async def reference(folder: Path) -> AsyncIterator[str]:
    """The server of LangGraph, on the same graphs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    named = json.loads(CONFIG.read_text())["graphs"]
    graphs = {name: str(HERE / place) for name, place in named.items() if name != "summarising"}
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": [str(HERE)], "graphs": graphs}))
    command = (str(REFERENCE), "dev", "--no-browser", "--no-reload", "--allow-blocking", "--port", str(port))
    quiet = asyncio.subprocess.DEVNULL
    env = {**os.environ, "LANGSMITH_TRACING": "false"}
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=env, stdout=quiet, stderr=quiet)
    address = f"http://127.0.0.1:{port}"
    try:
        await _until_there(address)
        yield address
    finally:
        process.terminate()
        await process.wait()


async def _until_there(address: str) -> None:
    async with httpx.AsyncClient(base_url=address) as http:
        for _ in range(3000):
            try:
                if (await http.get("/ok")).status_code == 200:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.1)
    raise TimeoutError("the reference server did not come up")


class Story:
    """The same requests to one server; what it answered."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.seen: dict[str, Seen] = {}

    async def ask(self, title: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = await self._http.request(method, path, json=body, **more)
        try:
            found = answer.json() if answer.content else None
        except ValueError:
            found = None
        one = found[0] if isinstance(found, list) and found else found
        members = frozenset(one) if isinstance(one, dict) and answer.is_success else frozenset()
        self.seen[title] = Seen(answer.status_code, members)
        return found

    async def stream(self, title: str, path: str, body: Any) -> None:
        answer = await self._http.post(path, json=body)
        names = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
        told = tuple(PLACE.sub(":id", name) for name in names if name != "end")
        self.seen[title] = Seen(answer.status_code, frozenset(), told)

    async def play(self) -> None:
        run: dict[str, Any] = {"assistant_id": "agent", "input": says("hi")}
        await self.ask("info", "GET", "/ok")
        assistant = (await self.ask("assistants", "POST", "/assistants/search", {"graph_id": "agent"}))[0]
        id = assistant["assistant_id"]
        await self.ask("assistant", "GET", f"/assistants/{id}")
        await self.ask("graph", "GET", f"/assistants/{id}/graph")
        await self.ask("schemas", "GET", f"/assistants/{id}/schemas")
        made = await self.ask("make an assistant", "POST", "/assistants", {"graph_id": "agent", "name": "mine"})
        await self.ask("change it", "PATCH", f"/assistants/{made['assistant_id']}", {"name": "ours"})
        await self.ask("versions", "POST", f"/assistants/{made['assistant_id']}/versions", {})
        await self.ask("drop it", "DELETE", f"/assistants/{made['assistant_id']}")
        await self.ask("of no graph", "POST", "/assistants", {"graph_id": "none"})
        thread = (await self.ask("make a thread", "POST", "/threads", {"metadata": {"k": "v"}}))["thread_id"]
        await self.ask("again", "POST", "/threads", {"thread_id": thread})
        await self.ask("or not", "POST", "/threads", {"thread_id": thread, "if_exists": "do_nothing"})
        await self.ask("empty state", "GET", f"/threads/{thread}/state")
        await self.ask("empty history", "GET", f"/threads/{thread}/history")
        everything = ["values", "updates", "messages-tuple", "custom"]
        at = f"/threads/{thread}/runs"
        await self.stream("all modes", f"{at}/stream", {**run, "stream_mode": everything})
        await self.stream("whole messages", f"{at}/stream", {**run, "stream_mode": ["messages"]})
        await self.stream("tasks", f"{at}/stream", {**run, "stream_mode": ["tasks", "checkpoints"]})
        await self.stream("debug", f"{at}/stream", {**run, "stream_mode": ["debug"]})
        inside = {**run, "assistant_id": "nested", "stream_mode": ["values", "updates"], "stream_subgraphs": True}
        await self.stream("subgraphs", f"{at}/stream", inside)
        await self.stream("asks", f"{at}/stream", {**run, "input": says("stop"), "stream_mode": ["values", "updates"]})
        await self.ask("waiting thread", "GET", f"/threads/{thread}")
        await self.ask("waiting state", "GET", f"/threads/{thread}/state")
        await self.ask("answer", "POST", f"{at}/wait", {"assistant_id": "agent", "command": {"resume": "yes"}})
        await self.stream("fails", f"{at}/stream", {**run, "input": says("fail"), "stream_mode": ["updates"]})
        await self.ask("fails while waited for", "POST", f"{at}/wait", {**run, "input": says("fail")})
        await self.ask("runs", "GET", at, params={"limit": 1})
        await self.ask("history", "POST", f"/threads/{thread}/history", {"limit": 2})
        await self.ask("write", "POST", f"/threads/{thread}/state", {"values": {"step": 7}, "as_node": "ask"})
        await self.ask("search", "POST", "/threads/search", {"metadata": {"k": "v"}})
        await self.ask("part", "POST", "/threads/search", {"select": ["thread_id", "status"], "limit": 1})
        await self.ask("copy", "POST", f"/threads/{thread}/copy")
        await self.ask("alone", "POST", "/runs/wait", run)
        await self.ask("no mode", "POST", at, {**run, "stream_mode": ["odd"]})
        await self.ask("no strategy", "POST", at, {**run, "multitask_strategy": "odd"})
        await self.ask("no assistant", "POST", at, {"input": {}})
        await self.ask("keep", "PUT", "/store/items", {"namespace": ["a"], "key": "k", "value": {"v": 1}})
        await self.ask("kept", "GET", "/store/items", params={"namespace": "a", "key": "k"})
        await self.ask("found", "POST", "/store/items/search", {"namespace_prefix": ["a"]})
        await self.ask("names", "POST", "/store/namespaces", {})
        await self.ask("delete", "DELETE", f"/threads/{thread}")
        await self.ask("gone", "GET", f"/threads/{thread}")


async def _played(address: str) -> dict[str, Seen]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        story = Story(http)
        await story.play()
        return story.seen


async def test_the_same_story_is_answered_with_the_same_statuses_members_and_events(tmp_path: Path) -> None:
    async with reference(tmp_path) as theirs, serving("memory://") as ours:
        expected, found = await _played(theirs), await _played(ours.address)
    assert {title: seen.status for title, seen in found.items()} == {
        title: seen.status for title, seen in expected.items()
    }
    assert {title: seen.events for title, seen in found.items()} == {
        title: seen.events for title, seen in expected.items()
    }
    missing = {title: seen.members - found[title].members - MAY_BE_LESS for title, seen in expected.items()}
    added = {title: seen.members - expected[title].members - MAY_BE_MORE for title, seen in found.items()}
    assert {title: members for title, members in {**missing, **added}.items() if members and title != "info"} == {}


CHANNELS = ["values", "updates", "messages", "tools", "custom", "lifecycle", "input", "tasks", "checkpoints"]
SESSIONS = (("agent", "hi"), ("agent", "fail"), ("agent", "stop"), ("nested", "hi"), ("counting", "hi"), ("deep", "hi"))


async def _session(http: httpx.AsyncClient, graph: str, text: str) -> list[str]:
    """Everything that a thread tells in the second version of the protocol; an interrupt is answered."""
    thread = (await http.post("/threads", json={})).json()["thread_id"]

    async def command(method: str, **params: Any) -> None:
        answer = await http.post(f"/threads/{thread}/commands", json={"id": 1, "method": method, "params": params})
        assert answer.json()["type"] == "success", answer.text

    await command("run.start", assistant_id=graph, input=says(text))
    told: list[str] = []
    asked = None
    async with http.stream("POST", f"/threads/{thread}/stream/events", json={"channels": CHANNELS}) as response:
        async for line in response.aiter_lines():
            if not line.startswith("data: "):
                continue
            event = json.loads(line.removeprefix("data: "))
            params = event["params"]
            told.append(_outline(event["method"], params))
            if event["method"] == "input.requested":
                asked = {"interrupt_id": params["data"]["interrupt_id"], "namespace": params["namespace"]}
            if event["method"] == "values" and not params["namespace"] and asked is not None:
                await command("input.respond", **asked, response="yes")
                asked = None
            is_own = event["method"] == "lifecycle" and not params["namespace"]
            if is_own and params["data"]["event"] in ("completed", "failed"):
                return told
    raise AssertionError(told)


def _outline(method: str, params: dict[str, Any]) -> str:
    """What must be the same: everything where it is about the course of the run, and the members of the rest."""
    data = params["data"]
    known = data if method in ("lifecycle", "custom", "input.requested") else sorted(data)
    if method == "messages":
        known = [data["event"], *known]
    return ID.sub("id", f"{method} {params['namespace']} {json.dumps(known, sort_keys=True)}")


async def test_a_thread_tells_the_same_events_in_the_second_version(tmp_path: Path) -> None:
    async def sessions(address: str) -> dict[str, list[str]]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as http:
            return {f"{graph}: {text}": await _session(http, graph, text) for graph, text in SESSIONS}

    async with reference(tmp_path) as theirs, serving("memory://") as ours:
        expected, found = await sessions(theirs), await sessions(ours.address)
    assert found == expected

"""The second version of the protocol: commands, and one stream of everything that a thread tells."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.http.langgraph.rig import Server, says

CHANNELS = ["values", "messages", "custom", "lifecycle", "input"]


async def _events(http: httpx.AsyncClient, until: str, since: int = 0, **asked: Any) -> list[dict[str, Any]]:
    """The events of a thread until its graph has come to this."""
    seen: list[dict[str, Any]] = []
    body = {"channels": CHANNELS, "since": since, **asked}
    async with http.stream("POST", "/threads/t/stream/events", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
                if seen[-1]["method"] == "lifecycle" and seen[-1]["params"]["data"]["event"] == until:
                    break
    return seen


async def _command(http: httpx.AsyncClient, method: str, **params: Any) -> Any:
    answer = await http.post("/threads/t/commands", json={"id": 1, "method": method, "params": params})
    return answer.json()


async def test_a_graph_is_begun_asks_and_is_answered_by_commands(server: Server) -> None:
    async with server.http() as http:
        begun = await _command(http, "run.start", assistant_id="agent", input=says("please stop"))
        assert (begun["type"], begun["id"]) == ("success", 1)
        told = await _events(http, "interrupted")
        assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
        said = [event["params"]["data"] for event in told if event["method"] == "messages"]
        pieces = [one["delta"]["text"] for one in said if one["event"] == "content-block-delta"]
        assert (said[0]["event"], "".join(pieces), said[-1]["event"]) == (
            "message-start",
            "one two three",
            "message-finish",
        )
        asked = next(event["params"]["data"] for event in told if event["method"] == "input.requested")
        assert asked["payload"] == {"question": "sure?"}
        await _command(http, "input.respond", interrupt_id=asked["interrupt_id"], response="yes")
        rest = await _events(http, "completed", since=told[-1]["seq"])
        assert rest[0]["seq"] == told[-1]["seq"] + 1
        values = [event["params"]["data"] for event in rest if event["method"] == "values"]
        assert values[-1]["messages"][-1]["content"] == "got yes"
        again = await _events(http, "completed")
        assert again == told + rest


async def test_an_error_is_told_and_so_is_a_command_that_there_is_not(light: Server) -> None:
    async with light.http() as http:
        await _command(http, "run.start", assistant_id="agent", input=says("fail"))
        assert (await _events(http, "failed"))[-1]["params"]["data"]["error"] == "boom"
        assert (await _command(http, "odd"))["error"] == "unknown_command"
        assert (await _command(http, "run.start", assistant_id="none"))["error"] == "invalid_argument"
        assert (await http.post("/threads/t/stream/events", json={"channels": ["odd"]})).status_code == 422


async def test_what_happens_inside_is_told_to_the_depth_that_is_asked_for(light: Server) -> None:
    async with light.http() as http:
        await _command(http, "run.start", assistant_id="nested", input=says("hi"))
        whole = await _events(http, "completed", channels=["values", "lifecycle"])
        assert any(event["params"]["namespace"] for event in whole)
        outside = await _events(http, "completed", channels=["values", "lifecycle"], depth=0)
        assert not any(event["params"]["namespace"] for event in outside)


async def test_langgraphs_own_client_streams_a_thread(light: Server) -> None:
    async with light.sdk() as client, client.threads.stream("t", assistant_id="agent") as thread:
        await thread.run.start(input=says("hi"))
        output: Any = await thread.output
    assert [message["type"] for message in output["messages"]] == ["human", "ai"]

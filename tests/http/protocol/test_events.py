"""The second version of the protocol: commands, and one stream of everything that a thread tells."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.http.protocol.rig import Server, commanded, says, told_by


async def test_a_graph_is_begun_asks_and_is_answered_by_commands(server: Server) -> None:
    async with server.http() as http:
        begun = await commanded(http, "run.start", assistant_id="agent", input=says("please stop"))
        assert (begun["type"], begun["id"]) == ("success", 1)
        told = await told_by(http, "interrupted")
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
        await commanded(http, "input.respond", interrupt_id=asked["interrupt_id"], response="yes")
        rest = await told_by(http, "completed", since=told[-1]["seq"])
        assert rest[0]["seq"] == told[-1]["seq"] + 1
        values = [event["params"]["data"] for event in rest if event["method"] == "values"]
        assert values[-1]["messages"][-1]["content"] == "got yes"
        again = await told_by(http, "completed")
        assert again == told + rest


async def test_an_error_is_told_and_so_is_a_command_that_there_is_not(light: Server) -> None:
    async with light.http() as http:
        await commanded(http, "run.start", assistant_id="agent", input=says("fail"))
        assert (await told_by(http, "failed"))[-1]["params"]["data"]["error"] == "boom"
        told: Any = (await http.get("/threads/t")).json()
        assert (told["status"], told["error"]) == ("error", {"error": "ValueError", "message": "boom"})
        assert (await commanded(http, "odd"))["error"] == "unknown_command"
        assert (await commanded(http, "run.start", assistant_id="none"))["error"] == "invalid_argument"
        assert (await http.post("/threads/t/stream/events", json={"channels": ["odd"]})).status_code == 422


async def test_whoever_listens_before_the_first_run_hears_it(light: Server) -> None:
    async with light.http() as http, asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(told_by(http, "completed"))
        await asyncio.sleep(0.1)
        assert (await http.get("/threads/t")).status_code == 404
        await commanded(http, "run.start", assistant_id="agent", input=says("hi"))
        told = await listening
        assert told == await told_by(http, "completed")


async def test_what_happens_inside_is_told_to_the_depth_that_is_asked_for(light: Server) -> None:
    async with light.http() as http:
        await commanded(http, "run.start", assistant_id="nested", input=says("hi"))
        whole = await told_by(http, "completed", channels=["values", "lifecycle"])
        assert any(event["params"]["namespace"] for event in whole)
        outside = await told_by(http, "completed", channels=["values", "lifecycle"], depth=0)
        assert not any(event["params"]["namespace"] for event in outside)


async def test_langgraphs_own_client_streams_a_thread(light: Server) -> None:
    async with light.sdk() as client, client.threads.stream("t", assistant_id="agent") as thread:
        await thread.run.start(input=says("hi"))
        output: Any = await thread.output
    assert [message["type"] for message in output["messages"]] == ["human", "ai"]


async def test_the_beginnings_and_ends_of_subgraphs_carry_their_namespaces(light: Server) -> None:
    async with light.http() as http:
        await commanded(http, "run.start", assistant_id="nested", input=says("hi"))
        told = await told_by(http, "completed", channels=["lifecycle"], depth=0, namespaces=[[]])
        assert [event["params"]["data"]["event"] for event in told] == ["running", "completed"]
        inside = await told_by(http, "completed", channels=["lifecycle"], namespaces=[["inner"]])
    (namespace,) = inside[0]["params"]["namespace"]
    assert namespace.startswith("inner:")
    assert [event["params"]["data"]["event"] for event in inside] == ["started", "completed"]
    assert {tuple(event["params"]["namespace"]) for event in inside} == {(namespace,)}


async def test_the_subagents_of_a_deep_agent_are_found_by_langgraphs_own_client(light: Server) -> None:
    async with light.sdk() as client, client.threads.stream("t", assistant_id="deep") as thread:
        await thread.run.start(input=says("look it up"))
        found = [handle async for handle in thread.subgraphs]
        output: Any = await thread.output
    assert [handle.status for handle in found] == ["completed"]
    assert output["messages"][-1]["content"] == "All done."


async def test_the_output_after_an_answer_is_never_the_one_before_it(light: Server) -> None:
    async with light.sdk() as client:
        for number in range(15):
            async with client.threads.stream(f"t{number}", assistant_id="asking") as thread:
                await thread.run.start(input=says("hi"))
                # not by `thread.values`: the client waits there for ever if the graph has asked before it listens
                async with asyncio.timeout(10):
                    while not thread.interrupted:  # noqa: ASYNC110 - the client has no event for it
                        await asyncio.sleep(0.005)
                await thread.run.respond("yes")
                output: Any = await thread.output
                assert output["messages"][-1]["content"] == "got yes"


async def test_what_is_sent_to_a_thread_that_asks_is_the_answer(light: Server) -> None:
    async with light.http() as http:
        await commanded(http, "run.start", assistant_id="agent", input=says("please stop"))
        told = await told_by(http, "interrupted")
        begun = await commanded(http, "run.start", assistant_id="agent", input="yes")
        assert begun["type"] == "success"
        rest = await told_by(http, "completed", since=told[-1]["seq"])
        values = [event["params"]["data"] for event in rest if event["method"] == "values"]
        assert values[-1]["messages"][-1]["content"] == "got yes"
        again = await commanded(http, "input.respond", interrupt_id="odd", response="yes")
        assert again["error"] == "no_such_interrupt"


async def test_a_channel_of_a_transformer_is_followed_by_its_name(light: Server) -> None:
    async with light.http() as http:
        await commanded(http, "run.start", assistant_id="counting", input=says("hi"))
        for channels in (["custom", "lifecycle"], ["custom:steps", "lifecycle"], ["custom:odd", "lifecycle"]):
            told = await told_by(http, "completed", channels=channels)
            steps = [event["params"]["data"] for event in told if event["method"] == "custom"]
            assert all(step["name"] == "steps" for step in steps)
            assert bool(steps) is ("custom:odd" not in channels)

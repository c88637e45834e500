"""Runs through LangGraph's own client, against a real server on every store."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError
from langgraph_sdk.schema import StreamPart

from everthread.core.nouns import Message, Ref
from tests.http.protocol.rig import Server, says


async def parts(stream: Any) -> list[StreamPart]:
    return [part async for part in stream]


async def names(stream: Any) -> list[str]:
    return [part.event for part in await parts(stream)]


async def new_thread(client: LangGraphClient) -> str:
    thread = await client.threads.create()
    return thread["thread_id"]


async def texts(client: LangGraphClient, thread_id: str) -> list[str]:
    state = await client.threads.get_state(thread_id)
    values: Any = state["values"]
    return [message["content"] for message in values.get("messages", [])]


async def until(client: LangGraphClient, thread_id: str, run_id: str, *statuses: str) -> str:
    """Wait for a run to come to one of these."""
    while True:
        status = (await client.runs.get(thread_id, run_id))["status"]
        if status in statuses:
            return str(status)
        await asyncio.sleep(0.02)


# -- streams ---------------------------------------------------------------------------------------------------------


async def test_a_run_streams_each_mode_in_the_order_things_happen(client: LangGraphClient) -> None:
    modes: Any = ["values", "updates", "messages-tuple", "custom"]
    thread_id = await new_thread(client)
    told = await names(client.runs.stream(thread_id, "agent", input=says("hi"), stream_mode=modes))
    tokens = ["messages"] * 5
    assert told == ["metadata", "values", "custom", *tokens, "updates", "values", "end"]
    assert await texts(client, thread_id) == ["hi", "one two three"]


async def test_what_a_subgraph_streams_carries_its_place(client: LangGraphClient) -> None:
    modes: Any = ["values", "updates"]
    stream = client.runs.stream(
        await new_thread(client), "nested", input=says("hi"), stream_mode=modes, stream_subgraphs=True
    )
    kinds = [name.split(":")[0] for name in await names(stream)]
    assert kinds == [
        "metadata", "values", "values|inner", "updates|inner", "values|inner", "updates", "values", "end",
    ]  # fmt: skip


async def test_an_error_of_the_graph_is_told_and_stays_with_run_and_thread(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    told = await parts(client.runs.stream(thread_id, "agent", input=says("fail"), stream_mode="updates"))
    assert [part.event for part in told] == ["metadata", "updates", "error", "end"]
    assert told[-2].data == {"error": "ValueError", "message": "boom"}
    assert (await client.runs.list(thread_id))[0]["status"] == "error"
    assert (await client.threads.get(thread_id))["status"] == "error"
    with pytest.raises(Exception, match="boom"):
        await client.runs.wait(thread_id, "agent", input=says("fail"))


async def test_a_graph_asks_and_goes_on_with_the_answer(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    asked: Any = await client.runs.wait(thread_id, "agent", input=says("please stop"))
    assert asked["__interrupt__"][0]["value"] == {"question": "sure?"}
    thread = await client.threads.get(thread_id)
    assert (thread["status"], len(thread["interrupts"])) == ("interrupted", 1)
    await client.runs.wait(thread_id, "agent", command={"resume": "yes"})
    assert (await texts(client, thread_id))[-1] == "got yes"
    assert (await client.threads.get(thread_id))["status"] == "idle"


async def test_a_run_can_be_stopped_before_a_node_and_gone_on_with(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, "agent", input=says("hi"), interrupt_before=["ask"])
    assert (await client.threads.get_state(thread_id))["next"] == ["ask"]
    await client.runs.wait(thread_id, "agent", input=None)
    assert await texts(client, thread_id) == ["hi", "one two three"]


async def test_a_run_goes_on_from_an_earlier_checkpoint(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, "agent", input=says("first"))
    then = (await client.threads.get_state(thread_id))["checkpoint"]
    await client.runs.wait(thread_id, "agent", input=says("second"))
    await client.runs.wait(thread_id, "agent", input=says("other"), checkpoint=then)
    assert await texts(client, thread_id) == ["first", "one two three", "other", "one two three"]


# -- several at once -------------------------------------------------------------------------------------------------


async def test_a_second_run_is_refused_or_waits_as_it_asks(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    first = await client.runs.create(thread_id, "slow", input=says("a"))
    await until(client, thread_id, first["run_id"], "running")
    with pytest.raises(ConflictError, match="multitask_strategy='enqueue'") as refused:
        await client.runs.create(thread_id, "slow", input=says("b"), multitask_strategy="reject")
    assert "turn" not in str(refused.value.body["detail"])  # type: ignore[index]
    waiting = await client.runs.create(thread_id, "agent", input=says("c"), multitask_strategy="enqueue")
    assert waiting["status"] == "pending"
    assert (await client.threads.get(thread_id))["status"] == "busy"
    await client.runs.join(thread_id, waiting["run_id"])
    assert await texts(client, thread_id) == ["a", "slow done", "c", "one two three"]


async def test_a_run_may_interrupt_the_one_before_it(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    first = await client.runs.create(thread_id, "slow", input=says("a"), context={"seconds": 1.0})
    await until(client, thread_id, first["run_id"], "running")
    await client.runs.wait(thread_id, "agent", input=says("b"), multitask_strategy="interrupt")
    assert (await client.runs.get(thread_id, first["run_id"]))["status"] == "interrupted"
    assert await texts(client, thread_id) == ["a", "b", "one two three"]


async def test_a_run_may_roll_back_the_one_before_it_and_the_log_keeps_both(
    server: Server, client: LangGraphClient
) -> None:
    thread_id = await new_thread(client)
    first = await client.runs.create(thread_id, "slow", input=says("a"), context={"seconds": 1.0})
    await until(client, thread_id, first["run_id"], "running")
    while not await texts(client, thread_id):  # noqa: ASYNC110 - it is in another task of the server
        await asyncio.sleep(0.02)
    await client.runs.wait(thread_id, "agent", input=says("b"), multitask_strategy="rollback")
    assert await texts(client, thread_id) == ["b", "one two three"]
    with pytest.raises(NotFoundError):
        await client.runs.get(thread_id, first["run_id"])
    entries = await server.et.store.log.scan(Ref("local", thread_id), after=0, limit=100)
    assert [Message(entry).text for entry in entries] == ["a", "b", "one two three"]


async def test_a_state_is_not_written_while_a_run_goes_on(light: Server) -> None:
    async with light.sdk() as client:
        run = await client.runs.create("t", "slow", input=says("hi"), if_not_exists="create")
        with pytest.raises(ConflictError, match="not finished"):
            await client.threads.update_state("t", {"step": 7}, as_node="slow")
        await client.runs.join("t", run["run_id"])
        await client.threads.update_state("t", {"step": 7}, as_node="slow")
        state: Any = await client.threads.get_state("t")
        assert (state["values"]["step"], len(state["values"]["messages"])) == (7, 2)


async def test_events_that_langgraph_hides_are_not_told(light: Server) -> None:
    async with light.sdk() as client:
        asked: Any = {"input": says("hi"), "stream_mode": "events"}
        told = [part.data async for part in client.runs.stream(None, "agent", **asked) if part.event == "events"]
    assert {event["name"] for event in told} >= {"agent", "ask"}
    assert not [event["name"] for event in told if "langsmith:hidden" in event["tags"]]


async def test_text_that_no_client_could_read_is_told_without_it(light: Server) -> None:
    half = says("half \ud800 pair")
    async with light.http() as http:
        body = json.dumps({"assistant_id": "agent", "input": half, "stream_mode": ["values", "updates"]})
        answer = await http.post("/runs/stream", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 200
        last = [line for line in answer.text.splitlines() if line.startswith("data: {")][-1]
    assert orjson.loads(last.removeprefix("data: "))["messages"][0]["content"] == "half ? pair"


async def test_a_run_is_cancelled_and_says_so(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    run = await client.runs.create(thread_id, "slow", input=says("a"), context={"seconds": 1.0})
    await until(client, thread_id, run["run_id"], "running")
    await client.runs.cancel(thread_id, run["run_id"], wait=True)
    assert (await client.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
    with pytest.raises(NotFoundError):
        await client.runs.cancel(thread_id, run["run_id"])
    await client.runs.delete(thread_id, run["run_id"])
    assert await client.runs.list(thread_id) == []


# -- without a thread ------------------------------------------------------------------------------------------------


async def test_a_stateless_run_leaves_no_thread_behind(client: LangGraphClient) -> None:
    answer: Any = await client.runs.wait(None, "agent", input=says("hi"))
    assert answer["messages"][-1]["content"] == "one two three"
    told = await names(client.runs.stream(None, "agent", input=says("hi"), stream_mode="values"))
    assert told == ["metadata", "values", "values", "end"]
    assert await client.threads.search() == []
    await client.runs.wait(None, "agent", input=says("hi"), on_completion="keep")
    assert len(await client.threads.search()) == 1


async def test_a_batch_begins_each_run_on_a_thread_of_its_own(client: LangGraphClient) -> None:
    batch: Any = [{"assistant_id": "agent", "input": says("a")}, {"assistant_id": "agent", "input": says("b")}]
    runs = await client.runs.create_batch(batch)
    assert len({run["thread_id"] for run in runs}) == 2
    for run in runs:
        await until(client, run["thread_id"], run["run_id"], "success")


async def test_a_missing_thread_is_made_when_that_is_asked_for(client: LangGraphClient) -> None:
    with pytest.raises(NotFoundError):
        await client.runs.create("mine", "agent", input=says("hi"))
    await client.runs.wait("mine", "agent", input=says("hi"), if_not_exists="create")
    assert await texts(client, "mine") == ["hi", "one two three"]


# -- connections that break ------------------------------------------------------------------------------------------


async def _read_some(http: httpx.AsyncClient, method: str, path: str, count: int, **request: Any) -> list[str]:
    """The first events of a stream, and then the connection is gone."""
    seen: list[str] = []
    async with http.stream(method, path, **request) as response:
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                seen.append(line.removeprefix("id: "))
                if len(seen) == count:
                    break
    return seen


async def test_a_stream_resumes_with_exactly_the_missing_events(server: Server, client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    body = {"assistant_id": "slow", "input": says("a"), "stream_mode": ["custom", "values"], "context": {"ticks": 10}}
    async with server.http() as http:
        seen = await _read_some(http, "POST", f"/threads/{thread_id}/runs/stream", 4, json=body)
    run_id = (await client.runs.list(thread_id))[0]["run_id"]
    rest = await parts(client.runs.join_stream(thread_id, run_id, last_event_id=seen[-1]))
    ids = [int(number) for number in seen] + [int(part.id or 0) for part in rest]
    assert ids == list(range(1, len(ids) + 1))
    again = await parts(client.runs.join_stream(thread_id, run_id, last_event_id="-1"))
    assert [(part.event, part.data) for part in again][4:] == [(part.event, part.data) for part in rest]
    assert rest[-1].event == "end"
    for after in range(len(again) + 2):
        replayed = await parts(client.runs.join_stream(thread_id, run_id, last_event_id=str(after)))
        assert replayed == again[after:]


async def test_a_run_goes_on_without_its_reader_unless_it_was_asked_to_stop(
    server: Server, client: LangGraphClient
) -> None:
    body = {"assistant_id": "slow", "input": says("a"), "stream_mode": ["custom"], "context": {"ticks": 10}}
    for mode, status in (("continue", "success"), ("cancel", "interrupted")):
        thread_id = await new_thread(client)
        async with server.http() as http:
            path = f"/threads/{thread_id}/runs/stream"
            await _read_some(http, "POST", path, 2, json={**body, "on_disconnect": mode})
        run_id = (await client.runs.list(thread_id))[0]["run_id"]
        assert await until(client, thread_id, run_id, "success", "interrupted") == status


async def test_a_stream_can_be_narrowed_to_some_modes(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    modes: Any = ["values", "custom", "messages-tuple"]
    run = await client.runs.create(thread_id, "agent", input=says("a"), stream_mode=modes)
    told = await names(client.runs.join_stream(thread_id, run["run_id"], stream_mode="custom"))
    assert told == ["metadata", "custom", "end"]


async def _told(client: LangGraphClient, thread_id: str, ends: int, **given: Any) -> list[tuple[str | None, str, Any]]:
    """What a joined thread tells until so many runs have ended."""
    told = []
    async for part in await client.threads.join_stream(thread_id, **given):
        told.append((part.id, part.event, part.data))
        if [event for _, event, _ in told].count("end") == ends:
            break
    return told


async def test_a_joined_thread_tells_the_run_that_goes_on_and_the_next(client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    await client.runs.wait(thread_id, "slow", input=says("before"), context={"ticks": 1})
    going = await client.runs.create(thread_id, "slow", input=says("a"), stream_mode="custom", context={"ticks": 6})
    async with asyncio.timeout(60):
        reader = asyncio.create_task(_told(client, thread_id, 2))
        await client.runs.join(thread_id, going["run_id"])
        following = await client.runs.create(thread_id, "slow", input=says("b"), context={"ticks": 1})
        told = await reader
        rest = await _told(client, thread_id, 1, last_event_id=told[-4][0])
        lifecycle = await _told(client, thread_id, 3, last_event_id="-1", stream_mode="lifecycle")
    begun = [data["run_id"] for _, event, data in told if event == "metadata"]
    assert begun == [going["run_id"], following["run_id"]]
    assert rest == told[-3:]
    assert [event for _, event, _ in lifecycle] == ["metadata", "end"] * 3


async def test_an_id_that_is_no_event_of_a_thread_is_refused(server: Server, client: LangGraphClient) -> None:
    thread_id = await new_thread(client)
    async with server.http() as http:
        answer = await http.get(f"/threads/{thread_id}/stream", headers={"Last-Event-ID": "x"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


@pytest.mark.parametrize("id", ["a/b", "a?b#c", "100%", "a%2Fb", "昆明/1", "a b"])
async def test_a_thread_is_reached_whatever_its_id_holds(server: Server, client: LangGraphClient, id: str) -> None:
    await client.threads.create(thread_id=id)
    assert (await client.threads.get(id))["thread_id"] == id
    run = await client.runs.create(id, "slow", input=says("a"), context={"ticks": 1})
    await client.runs.join(id, run["run_id"])
    assert (await client.runs.get(id, run["run_id"]))["status"] == "success"
    place = quote(id, safe="")
    async with server.http() as http:
        answer = await http.get(f"/threads/{place}/runs/{run['run_id']}/stream")
        assert answer.headers["content-location"] == f"/threads/{place}/runs/{run['run_id']}"
        assert (await http.get(answer.headers["content-location"])).json()["thread_id"] == id
        assert (await http.get(f"/api/v1/conversations/{place}/messages")).status_code == 200
        assert (await http.get(f"/threads/{place}/full-history")).status_code == 200
        assert (await http.get(f"/threads/{place}%2Fother")).status_code == 404


async def test_a_list_in_a_query_may_be_repeated_or_json(light: Server) -> None:
    async with light.http() as http:
        run = {"assistant_id": "agent", "input": says("hi"), "stream_mode": ["values", "updates", "custom"]}
        made = (await http.post("/threads/t/runs", json={**run, "if_not_exists": "create"})).json()
        at = f"/threads/t/runs/{made['run_id']}/stream"
        for query in ("stream_mode=updates&stream_mode=custom", 'stream_mode=["updates","custom"]'):
            told = (await http.get(f"{at}?{query}")).text
            kinds = {line.removeprefix("event: ") for line in told.splitlines() if line.startswith("event: ")}
            assert kinds == {"metadata", "updates", "custom", "end"}
        for query in ('stream_mode=["odd"]', "stream_mode=[", "stream_mode=" + "[" * 30_000, "stream_mode=[[]]"):
            assert (await http.get(f"{at}?{query}")).status_code == 422
        (row,) = (await http.get('/threads/t/runs?select=["run_id","status"]')).json()
        assert row.keys() == {"run_id", "status"}


async def test_an_id_that_is_no_events_gives_all_of_a_run(light: Server) -> None:
    async with light.http() as http:
        run = {"assistant_id": "agent", "input": says("hi"), "if_not_exists": "create"}
        id = (await http.post("/threads/t/runs", json=run)).json()["run_id"]
        whole = (await http.get(f"/threads/t/runs/{id}/stream")).text
        for odd in ("abc", "1-1", "-", "99999999999999999", "\u00b2"):
            headers = {b"Last-Event-ID": odd.encode()}
            again = await http.get(f"/threads/t/runs/{id}/stream", headers=headers)
            assert (again.status_code, again.text) == (200, whole)


async def test_to_cancel_what_has_ended_or_is_not_there_is_404(light: Server) -> None:
    async with light.http() as http:
        run = {"assistant_id": "agent", "input": says("hi"), "if_not_exists": "create"}
        await http.post("/threads/t/runs/wait", json=run)
        id = (await http.get("/threads/t/runs")).json()[0]["run_id"]
        assert (await http.post(f"/threads/t/runs/{id}/cancel")).status_code == 404
        assert (await http.post("/runs/cancel", json={"status": "all"})).status_code == 404
        assert (await http.post("/runs/cancel", json={"thread_id": "t", "run_ids": [id]})).status_code == 404


async def test_to_delete_a_run_that_runs_cancels_it(client: LangGraphClient) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "slow", input=says("hi"), context={"ticks": 10_000})
    await client.runs.delete(thread, run["run_id"])
    assert await client.runs.list(thread) == []
    assert (await client.threads.get(thread))["status"] != "busy"

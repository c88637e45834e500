"""Threads, states, assistants and documents through LangGraph's own client, on every store."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError

from everthread.core.nouns import Message, Ref
from tests.http.protocol.rig import Server, says


def contents(values: Any) -> list[str]:
    return [message["content"] for message in values["messages"]]


# -- threads ---------------------------------------------------------------------------------------------------------


async def test_a_thread_is_made_found_changed_and_deleted(client: LangGraphClient) -> None:
    made = await client.threads.create(thread_id="my thread", metadata={"colour": "red"})
    assert (made["thread_id"], made["status"], made["values"]) == ("my thread", "idle", None)
    with pytest.raises(ConflictError):
        await client.threads.create(thread_id="my thread")
    again = await client.threads.create(thread_id="my thread", if_exists="do_nothing")
    assert again["metadata"] == {"colour": "red"}
    await client.threads.update("my thread", metadata={"size": 2})
    assert (await client.threads.get("my thread"))["metadata"] == {"colour": "red", "size": 2}
    await client.threads.delete("my thread")
    with pytest.raises(NotFoundError):
        await client.threads.get("my thread")
    with pytest.raises(NotFoundError):
        await client.threads.delete("my thread")


async def test_a_deleted_thread_is_empty_when_it_is_made_again_and_its_log_is_kept(
    server: Server, client: LangGraphClient
) -> None:
    await client.runs.wait("t", "agent", input=says("before"), if_not_exists="create")
    await client.threads.delete("t")
    await client.threads.create(thread_id="t", graph_id="agent")
    assert (await client.threads.get_state("t"))["values"] == {}
    await client.runs.wait("t", "agent", input=says("after"))
    assert contents((await client.threads.get_state("t"))["values"]) == ["after", "one two three"]
    entries = await server.et.store.log.scan(Ref("local", "t"), after=0, limit=100)
    assert [Message(entry).text for entry in entries] == ["before", "one two three", "after", "one two three"]


async def test_threads_are_found_by_metadata_status_and_values_and_shown_in_part(client: LangGraphClient) -> None:
    for number in range(5):
        await client.threads.create(thread_id=f"t{number}", metadata={"number": number, "even": number % 2 == 0})
    await client.runs.wait("t1", "agent", input=says("please stop"))
    await client.runs.wait("t2", "agent", input=says("hi"))
    assert [one["thread_id"] for one in await client.threads.search()] == ["t4", "t3", "t2", "t1", "t0"]
    assert [one["thread_id"] for one in await client.threads.search(metadata={"even": True})] == ["t4", "t2", "t0"]
    assert [one["thread_id"] for one in await client.threads.search(status="interrupted")] == ["t1"]
    assert [one["thread_id"] for one in await client.threads.search(values={"step": 1})] == ["t2", "t1"]
    assert [one["thread_id"] for one in await client.threads.search(limit=2, offset=1)] == ["t3", "t2"]
    oldest_first = await client.threads.search(sort_by="created_at", sort_order="asc", limit=1)
    assert oldest_first[0]["thread_id"] == "t0"
    part: Any = await client.threads.search(select=["thread_id", "status"], ids=["t1", "t2", "none"])
    assert part == [{"thread_id": "t2", "status": "idle"}, {"thread_id": "t1", "status": "interrupted"}]
    extracted: Any = await client.threads.search(ids=["t2"], extract={"last": "values.messages[-1].content"})
    assert extracted[0]["extracted"] == {"last": "one two three"}
    assert await client.threads.count() == 5
    assert await client.threads.count(metadata={"even": False}) == 2


async def test_a_copy_has_a_log_and_checkpoints_of_its_own(server: Server, client: LangGraphClient) -> None:
    await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    await client.threads.copy("t")
    copied = (await client.threads.search())[0]["thread_id"]
    await client.runs.wait(copied, "agent", input=says("more"))
    assert len(contents((await client.threads.get_state("t"))["values"])) == 2
    assert len(contents((await client.threads.get_state(copied))["values"])) == 4
    assert (await server.et.full_history(copied, merge_checkpoint=False))["archived_count"] == 4


async def test_pruning_keeps_the_newest_state_or_deletes_the_thread(client: LangGraphClient) -> None:
    await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    assert len(await client.threads.get_history("t", limit=50)) > 1
    pruned: Any = await client.threads.prune(["t", "none"], strategy="keep_latest")
    assert pruned == {"pruned_count": 1}
    assert len(await client.threads.get_history("t", limit=50)) == 1
    await client.threads.prune(["t"])
    with pytest.raises(NotFoundError):
        await client.threads.get("t")


# -- states ----------------------------------------------------------------------------------------------------------


async def test_a_state_is_written_as_a_node_would_and_gone_back_to(client: LangGraphClient) -> None:
    await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    before = (await client.threads.get_state("t"))["checkpoint"]
    await client.threads.update_state("t", {"step": 7}, as_node="ask")
    assert (await client.threads.get_state("t"))["values"]["step"] == 7  # type: ignore[call-overload]
    then: Any = await client.threads.get_state("t", checkpoint=before)
    assert then["values"]["step"] == 1
    by_id: Any = await client.threads.get_state("t", checkpoint_id=before["checkpoint_id"])
    assert by_id == then
    with pytest.raises((UnprocessableEntityError, BadRequestError)):
        await client.threads.update_state("t", {"step": 7}, as_node="no such node")


async def test_the_state_of_a_subgraph_is_written_and_named_with_those_around_it(client: LangGraphClient) -> None:
    await client.runs.wait("t", "asking", input=says("hi"), if_not_exists="create")
    state: Any = await client.threads.get_state("t", subgraphs=True)
    inner = state["tasks"][0]["state"]["checkpoint"]
    written: Any = await client.threads.update_state("t", {"step": 7}, checkpoint=inner)
    outer = {"": state["checkpoint"]["checkpoint_id"]}
    assert written["checkpoint"]["checkpoint_map"] == {**outer, inner["checkpoint_ns"]: written["checkpoint_id"]}
    again: Any = await client.threads.get_state("t", checkpoint=written["checkpoint"])
    assert again["values"]["step"] == 7


async def test_a_history_is_read_newest_first_and_before_a_checkpoint(client: LangGraphClient) -> None:
    await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    whole = await client.threads.get_history("t", limit=10)
    assert [state["metadata"]["step"] for state in whole] == [1, 0, -1]  # type: ignore[index]
    rest = await client.threads.get_history("t", limit=10, before=whole[0]["checkpoint"])
    assert rest == whole[1:]


async def test_a_thread_is_made_with_a_past(client: LangGraphClient) -> None:
    steps: Any = [
        {"updates": [{"values": says("first"), "as_node": "__input__"}]},
        {"updates": [{"values": {"messages": [{"role": "ai", "content": "yes"}]}, "as_node": "ask"}]},
    ]
    made = await client.threads.create(supersteps=steps, graph_id="agent")
    assert contents(made["values"])[-1] == "yes"


async def test_a_conversation_of_the_other_door_is_a_thread_with_its_newest_messages(
    server: Server, client: LangGraphClient
) -> None:
    conversation = await server.et.conversations.create(id="c")
    said = [{"role": "user", "content": f"message {number}"} for number in range(250)]
    await conversation.append([*said, {"role": "assistant", "content": "", "tool_calls": [_call()]}])
    state: Any = await client.threads.get_state("c")
    messages = state["values"]["messages"]
    assert (len(messages), messages[-2]["type"], messages[-2]["content"]) == (200, "human", "message 249")
    assert messages[-1]["tool_calls"][0]["name"] == "look"
    async with server.http() as http:
        older = (await http.get("/threads/c/state", params={"cursor": state["older_cursor"]})).json()
    assert contents(older["values"]) == [f"message {number}" for number in range(51)]
    assert older["older_cursor"] is None


def _call() -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


async def test_a_thread_that_ran_here_is_a_conversation_of_the_other_door(
    server: Server, client: LangGraphClient
) -> None:
    await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    conversation = await server.et.conversations.get("t")
    assert [message.text async for message in conversation.messages()] == ["hi", "one two three"]


# -- assistants ------------------------------------------------------------------------------------------------------


async def test_each_graph_has_an_assistant_and_others_are_made_of_it_in_versions(client: LangGraphClient) -> None:
    own = await client.assistants.search(graph_id="agent")
    assert [(one["name"], one["version"]) for one in own] == [("agent", 1)]
    made = await client.assistants.create("slow", context={"ticks": 1}, name="Quick", metadata={"a": 1})
    id = made["assistant_id"]
    await client.assistants.update(id, context={"ticks": 2}, metadata={"b": 2})
    assert (await client.assistants.get(id))["metadata"] == {"a": 1, "b": 2}
    versions = await client.assistants.get_versions(id)
    assert [one["version"] for one in versions] == [2, 1]
    assert (await client.assistants.set_latest(id, 1))["context"] == {"ticks": 1}
    assert await client.assistants.count(graph_id="slow") == 2
    modes: Any = ["custom"]
    ticks = [part async for part in client.runs.stream(None, id, input=says("x"), stream_mode=modes)]
    assert [part.data for part in ticks if part.event == "custom"] == [{"i": 0}]
    await client.assistants.delete(id)
    with pytest.raises(NotFoundError):
        await client.assistants.get(id)
    with pytest.raises(ConflictError):
        await client.assistants.delete(own[0]["assistant_id"])


async def test_an_assistant_shows_its_graph_and_schemas(client: LangGraphClient) -> None:
    drawn: Any = await client.assistants.get_graph("nested", xray=True)
    assert {"__start__", "inner:ask", "__end__"} <= {node["id"] for node in drawn["nodes"]}
    schemas = await client.assistants.get_schemas("slow")
    assert set((schemas["state_schema"] or {})["properties"]) == {"messages", "step"}
    assert set((schemas["context_schema"] or {})["properties"]) == {"ticks", "seconds"}
    assert list(await client.assistants.get_subgraphs("nested")) == ["inner"]


# -- documents -------------------------------------------------------------------------------------------------------


async def test_documents_are_kept_found_and_removed(client: LangGraphClient) -> None:
    await client.store.put_item(["notes", "mine"], "one", {"text": "milk", "rank": 1})
    await client.store.put_item(["notes"], "two", {"text": "bread", "rank": 2})
    found = await client.store.get_item(["notes", "mine"], "one")
    assert found["value"] == {"text": "milk", "rank": 1}
    searched = await client.store.search_items(["notes"], filter={"rank": {"$gt": 1}})
    assert [item["key"] for item in searched["items"]] == ["two"]
    assert (await client.store.list_namespaces())["namespaces"] == [["notes"], ["notes", "mine"]]
    await client.store.delete_item(["notes", "mine"], "one")
    assert await client.store.get_item(["notes", "mine"], "one") is None
    await client.assistants.create("agent")
    assert [item["key"] for item in (await client.store.search_items([]))["items"]] == ["two"]
    with pytest.raises(UnprocessableEntityError):
        await client.store.put_item(["langgraph", "assistants"], "x", {})


@pytest.mark.parametrize("how", ["id", "checkpoint", "config"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_history_is_paged_to_its_end_however_a_client_names_the_checkpoint(
    light: Server, how: str, method: str
) -> None:
    def before(state: Any) -> Any:
        at = state["checkpoint"]
        return {"id": at["checkpoint_id"], "checkpoint": at, "config": {"configurable": at}}[how]

    async def page(http: httpx.AsyncClient, **given: Any) -> list[Any]:
        if method == "POST":
            answer = await http.post("/threads/t/history", json=given)
        else:
            written = {name: json.dumps(value) if isinstance(value, dict) else value for name, value in given.items()}
            answer = await http.get("/threads/t/history", params=written)
        assert answer.status_code == 200, answer.text
        found: list[Any] = answer.json()
        return found

    async with light.http() as http:
        run = {"assistant_id": "agent", "input": says("hi"), "if_not_exists": "create"}
        for _ in range(3):
            await http.post("/threads/t/runs/wait", json=run)
        whole = await page(http, limit=100)
        paged = await page(http, limit=2)
        while len(paged) < 2 * len(whole) and (more := await page(http, limit=2, before=before(paged[-1]))):
            paged += more
    assert len(whole) > 4
    assert paged == whole


async def test_a_before_that_names_no_checkpoint_is_refused(light: Server) -> None:
    async with light.http() as http:
        await http.post("/threads/t/runs/wait", json={"assistant_id": "agent", "if_not_exists": "create"})
        wrong: list[dict[str, Any]] = [{}, {"configurable": {}}, {"configurable": "x"}, {"checkpoint_id": 1}]
        for before in wrong:
            assert (await http.post("/threads/t/history", json={"before": before})).status_code == 422, before
        for written in ("{", '{"a":' * 200):
            assert (await http.get("/threads/t/history", params={"before": written})).status_code == 422


async def test_threads_are_ordered_as_older_clients_ask_for_it(light: Server) -> None:
    async with light.http() as http:
        for id in ("a", "b", "c"):
            await http.post("/threads", json={"thread_id": id})

        async def found(**asked: str) -> str:
            answer = await http.post("/threads/search", json=asked)
            return "".join(row["thread_id"] for row in answer.json())

        assert await found(order_by="created_at ASC") == "abc"
        assert await found(order_by="thread_id desc") == "cba"
        assert await found(order_by="created_at ASC", sort_by="thread_id", sort_order="desc") == "cba"
        for odd in ("odd ASC", "created_at; drop", ""):
            assert await found(order_by=odd) == "cba"


async def test_a_label_that_no_namespace_can_have_is_refused(light: Server) -> None:
    async with light.http() as http:
        for asked in ({"prefix": [""]}, {"suffix": ["a.b"]}, {"prefix": ["a", ""]}, {"prefix": ["a\0"]}):
            assert (await http.post("/store/namespaces", json=asked)).status_code == 422
        assert (await http.get("/store/items", params={"namespace": "a\0", "key": "k"})).status_code == 422


async def test_a_subgraph_that_there_is_not_is_404(light: Server) -> None:
    async with light.sdk() as client, light.http() as http:
        await client.runs.wait("t", "nested", input=says("hi"), if_not_exists="create")
        named = {"checkpoint": {"checkpoint_ns": "no such node"}}
        answer = await http.post("/threads/t/state/checkpoint", json=named)
        assert (answer.status_code, "no such node" in answer.json()["detail"]) == (404, True)
        assert (await http.post("/threads/t/history", json=named)).json() == []


async def test_of_a_state_only_what_is_selected_comes(client: LangGraphClient) -> None:
    thread = (await client.threads.create(thread_id="t"))["thread_id"]
    await client.runs.wait(thread, "agent", input=says("hi"))
    some = ["next", "values.step"]
    state: Any = await client.threads.get_state(thread, select=some)
    assert state == {"next": [], "values": {"step": 1}}
    whole: Any = await client.threads.get_state(thread, select=["values"])
    assert whole["values"].keys() == {"messages", "step"}
    at: Any = (await client.threads.get_state(thread))["checkpoint"]
    assert await client.threads.get_state(thread, at, select=some) == state
    assert await client.threads.get_state(thread, checkpoint_id=at["checkpoint_id"], select=some) == state
    history: Any = await client.threads.get_history(thread, select=["values.step"])
    assert history[0] == {"values": {"step": 1}}
    assert len(history) == 3


async def test_a_thread_is_changed_without_being_returned_if_so_preferred(client: LangGraphClient) -> None:
    await client.threads.create(thread_id="t", metadata={"a": 1})
    changed: Any = await client.threads.update("t", metadata={"b": 2}, return_minimal=True)  # type: ignore[func-returns-value]
    assert changed is None
    assert (await client.threads.get("t"))["metadata"] == {"a": 1, "b": 2}


async def test_an_assistants_threads_go_with_it_if_so_wished(client: LangGraphClient) -> None:
    for assistant in ("mine", "other"):
        await client.assistants.create("agent", assistant_id=assistant)
        await client.threads.create(thread_id=f"of {assistant}")
        await client.runs.wait(f"of {assistant}", assistant, input=says("hi"))
    await client.assistants.delete("mine", delete_threads=True)
    assert [thread["thread_id"] for thread in await client.threads.search()] == ["of other"]


async def test_context_and_configurable_of_an_assistant_are_shown_alike(client: LangGraphClient) -> None:
    by_context = await client.assistants.create("agent", context={"k": 1})
    by_config = await client.assistants.create("agent", {"configurable": {"k": 1}, "tags": ["t"]})
    for made in (by_context, by_config, await client.assistants.get(by_context["assistant_id"])):
        assert (made["context"], made["config"]["configurable"]) == ({"k": 1}, {"k": 1})

"""What the papers ask of a chat: files, tools and pictures are told truly, and a refused request leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from everthread import Everthread
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for
from tests.http.served import API

Client = Callable[..., Any]
PLOT = {"kind": "bar", "title": "Sales", "series": {"a": [1, 2]}}


async def client_with(et: Everthread, folder: Path, *steps: object) -> httpx.AsyncClient:
    """Alice, whose model answers with these steps, again and again."""
    script = folder / "steps.json"
    script.write_text(json.dumps({"steps": steps or ["ok"], "repeat": True}))
    app: FastAPI = create_app(et, Settings(database="memory://", requests_per_minute=0, model=f"scripted:{script}"))
    return client_of(app, await key_for(et, "alice"))


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"name": name, "args": args} for name, args in named]}


async def seen(client: httpx.AsyncClient, answer: dict[str, Any]) -> str:
    """Everything that the model was shown in a turn."""
    place = f"{API}/conversations/{answer['conversation_id']}/turns/{answer['turn_id']}/context"
    return (await client.get(place)).text


# -- files -----------------------------------------------------------------------------------------------------------


async def test_the_model_is_told_of_uploads_once_and_of_files_that_are_named(et: Everthread, tmp_path: Path) -> None:
    async with await client_with(et, tmp_path) as client:
        await client.post(f"{API}/conversations", json={"id": "c"})
        await client.post(f"{API}/conversations/c/files", files={"file": ("data.csv", b"a,b\n1,2\n")})
        line = "[uploaded: uploads/data.csv, text/csv, 8 bytes]"
        first = (await client.post(f"{API}/chat", json={"message": "look", "conversation_id": "c"})).json()
        assert line in await seen(client, first)
        for body in ({"message": "again"}, {"message": "named", "files": ["data.csv"]}):
            await client.post(f"{API}/chat", json={"conversation_id": "c", **body})
        kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
        assert [one["text"] for one in kept if one["role"] == "user"] == [f"{line}\nlook", "again", f"{line}\nnamed"]
        state = (await client.get("/threads/c/state")).json()["values"]
        assert [one["path"] for one in state["uploaded_files"]] == ["uploads/data.csv"]
        assert state["workspace_path"] == str(et.workspaces.path(await et.conversations.get("c", "alice")))


async def test_a_file_answers_with_its_media_type_and_nothing_that_a_browser_runs(
    et: Everthread, tmp_path: Path
) -> None:
    async with await client_with(et, tmp_path) as client:
        await client.post(f"{API}/conversations", json={"id": "c"})
        for name, body, kind in (
            ("a.csv", b"a,b\n", "text/csv"),
            ("a.html", b"<script>1</script>", "application/octet-stream"),
            ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "application/octet-stream"),
        ):
            path = (await client.post(f"{API}/conversations/c/files", files={"file": (name, body)})).json()["path"]
            answer = await client.get(f"{API}/conversations/c/files/{path}")
            assert answer.headers["content-type"].partition(";")[0] == kind
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["x-content-type-options"] == "nosniff"


# -- pictures --------------------------------------------------------------------------------------------------------


async def test_pictures_and_a_description_of_one_step_stand_side_by_side(et: Everthread, tmp_path: Path) -> None:
    about = {"visual_request": {"type": "bar", "of": "sales"}, "insights": ["it rose"]}
    steps = [calls(("plot", PLOT), ("plot", PLOT), ("describe_result", about)), "here"]
    async with await client_with(et, tmp_path, *steps) as client:
        told = (await client.post(f"{API}/chat/stream", json={"message": "draw", "conversation_id": "c/1"})).text
        done = json.loads(told.rpartition("event: done\ndata: ")[2].partition("\n")[0])
        result = done["result"]
        assert (result["visual_request"], result["analysis"]["insights"]) == (about["visual_request"], ["it rose"])
        urls = [(one["success"], one["image_url"]) for one in result["visualizations"]]
        assert sorted(urls) == [
            (True, "/api/v1/conversations/c%2F1/files/plots/sales-2.png"),
            (True, "/api/v1/conversations/c%2F1/files/plots/sales.png"),
        ]
        for kind, media_type in (("image", "image/png"), ("pdf", "application/pdf"), ("data", "text/csv")):
            picture = await client.get(result["visualization"][f"{kind}_url"])
            assert (picture.status_code, picture.headers["content-type"].partition(";")[0]) == (200, media_type)
        (message,) = (
            await client.get(f"{API}/conversations/c%2F1/messages", params={"limit": 1, "before": 99})
        ).json()["items"]
        assert message["payload"]["additional_kwargs"]["everthread"]["result"] == result


@pytest.mark.parametrize("wrong", [{"kind": "pie", "series": {"a": [-1]}}, {"kind": "radar"}])
async def test_a_plot_that_failed_says_so(et: Everthread, tmp_path: Path, wrong: dict[str, Any]) -> None:
    async with await client_with(et, tmp_path, calls(("plot", {**PLOT, **wrong})), "sorry") as client:
        answer = (await client.post(f"{API}/chat", json={"message": "draw"})).json()
    picture = answer["result"]["visualization"]
    assert (picture["success"], picture["title"], picture["image_url"]) == (False, "Sales", None)
    assert picture["error"]


# -- tools, skills, names --------------------------------------------------------------------------------------------


async def test_all_tools_that_a_turn_would_have_are_listed(et: Everthread, tmp_path: Path) -> None:
    async with await client_with(et, tmp_path) as client:
        listed = (await client.get(f"{API}/chat/tools")).json()["items"]
        answer = (await client.post(f"{API}/chat", json={"message": "hi", "conversation_id": "c"})).json()
        same = (await client.get(f"{API}/chat/tools", params={"conversation_id": "c"})).json()["items"]
        conversations = (await client.get(f"{API}/conversations")).json()["items"]
    names = {one["name"] for one in listed if one["offered"] == "always"}
    assert {"now", "read_file", "history_search", "remember", "plot", "call_subagent", "describe_result"} <= names
    assert listed == same
    assert all(one["parameters"]["type"] == "object" for one in listed)
    assert answer["notices"] == []
    assert [one["id"] for one in conversations] == ["c"]  # listing created none


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"kb_prefix": "nothing"}, "kb_prefix"),
        ({"agent_type": "wizard"}, "agent_type"),
        ({"active_skill": "wizardry"}, "active_skill"),
        ({"allowed_tools": ["wand"]}, "allowed_tools"),
        ({"persistent_tools": ["wand_*"]}, "persistent_tools"),
        ({"files": ["nope.txt"]}, "files[0]"),
        ({"model": "nothing"}, "model"),
        ({"message": {"role": "wizard", "content": "x"}}, "messages[0].role"),
        ({"message": "  "}, "messages[0].content"),
    ],
)
async def test_an_unknown_name_is_refused_and_leaves_nothing(
    et: Everthread, tmp_path: Path, wrong: dict[str, Any], field: str
) -> None:
    async with await client_with(et, tmp_path) as client:
        answer = await client.post(f"{API}/chat", json={"message": "hi", "conversation_id": "c", **wrong})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == field
        assert answer.json()["safe"] == "Nothing from this request was stored."
        assert (await client.get(f"{API}/conversations/c")).status_code == 404
        if "model" not in wrong and not isinstance(wrong.get("message"), dict):
            named = {name: value for name, value in wrong.items() if name != "message"}
            run = {
                "assistant_id": "everthread",
                "input": {"messages": [{"role": "user", "content": wrong.get("message", "hi")}]},
                "context": named,
                "if_not_exists": "create",
            }
            assert (await client.post("/threads/t/runs/wait", json=run)).status_code == 422
            assert (await client.get(f"{API}/conversations/t")).status_code == 404


async def test_an_unknown_mention_is_said_and_a_known_agent_answers(et: Everthread, tmp_path: Path) -> None:
    async with await client_with(et, tmp_path) as client:
        body = {"message": "@analyst and @nobody: look", "conversation_id": "c"}
        answer = (await client.post(f"{API}/chat", json=body)).json()
        (notice,) = answer["notices"]
        assert notice.startswith("@nobody ")
        assert "You analyse data" in await seen(client, answer)
        state = (await client.get("/threads/c/state")).json()["values"]
    assert (state["agent_type"], state["mentioned_agents"]) == ("analyst", ["analyst", "nobody"])


@pytest.mark.parametrize("name", ["", "general"])
async def test_the_papers_words_for_no_knowledge_base_are_taken(et: Everthread, tmp_path: Path, name: str) -> None:
    await et.knowledge.add("alice", "films", "Nolan made Memento.", id="films.md")
    async with await client_with(et, tmp_path) as client:
        body = {"message": "who made Memento?", "kb_prefix": name}
        assert "films.md" not in await seen(client, (await client.post(f"{API}/chat", json=body)).json())


async def test_which_knowledge_base_was_chosen_is_said_and_why(et: Everthread, tmp_path: Path) -> None:
    await et.knowledge.add("alice", "films", "Nolan made Memento.", id="films.md")
    async with await client_with(et, tmp_path) as client:
        told = (await client.post(f"{API}/chat/stream", json={"message": "who made Memento?"})).text
    recall = json.loads(told.partition("event: recall\ndata: ")[2].partition("\n")[0])
    assert (recall["collection"], recall["passages"]) == ("films", 1)
    assert recall["why"].startswith("by words: ")


# -- conversations ---------------------------------------------------------------------------------------------------


async def test_a_deleted_conversation_is_not_answered_until_it_is_restored(et: Everthread, tmp_path: Path) -> None:
    async with await client_with(et, tmp_path) as client:
        body = {"message": "hi", "conversation_id": "c"}
        await client.post(f"{API}/chat", json=body)
        await client.delete(f"{API}/conversations/c")
        refused = await client.post(f"{API}/chat", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert "restore" in refused.json()["detail"]
        await client.post(f"{API}/conversations/c/restore")
        assert len((await client.get(f"{API}/conversations/c/messages")).json()["items"]) == 2
        assert (await client.post(f"{API}/chat", json=body)).status_code == 200


async def test_a_number_is_an_id_at_every_door(et: Everthread, tmp_path: Path) -> None:
    async with await client_with(et, tmp_path) as client:
        assert (await client.post(f"{API}/conversations", json={"id": 7})).json()["id"] == "7"
        for id in (7, "7"):
            answer = await client.post(f"{API}/chat", json={"message": "hi", "conversation_id": id})
            assert answer.json()["conversation_id"] == "7"
        assert (await client.post(f"{API}/chat", json={"message": "hi", "session_id": 7})).status_code == 200
        assert (await client.post(f"{API}/chat", json={"message": "hi", "conversation_id": True})).status_code == 422
        made = (await client.post("/threads", json={"thread_id": 8})).json()
        assert made["thread_id"] == "8"
    conversation = await et.conversations.get(7, "alice")
    assert (await et.conversations.ensure(9)).id == (await et.conversations.get("9")).id == "9"
    assert conversation.id == "7"


async def test_the_state_of_our_own_agent_has_what_its_turn_left(et: Everthread, tmp_path: Path) -> None:
    todos = [{"content": "look", "status": "in_progress"}]
    steps = [calls(("todo_write", {"todos": todos}), ("use_skill", {"name": "data-report"})), "done"]
    async with await client_with(et, tmp_path, *steps) as client:
        body = {"message": "work", "conversation_id": "c", "persistent_tools": ["plot"]}
        await client.post(f"{API}/chat", json=body)
        values = (await client.get("/threads/c/state")).json()["values"]
        history = (await client.get("/threads/c/full-history")).json()
    assert (values["todos"], values["active_skill"], values["persistent_tools"]) == (todos, "data-report", ["plot"])
    assert (values["context_id"], values["thread_id"], values["user_id"]) == ("main", "c", "alice")
    assert (values["loops"], values["max_loops"]) == (2, 25)
    assert [one["type"] for one in values["messages"]] == ["human", "ai", "tool", "tool", "ai"]
    assert values["messages"][-1]["usage_metadata"]["output_tokens"] > 0
    assert {"interrupts", "checkpoint_id", "parent_checkpoint_id"} <= set(history)
    shown = history["values"]["messages"]
    assert all(one["created_at"] for one in shown)
    assert [set(one) - {"created_at"} for one in shown] == [set(one) for one in values["messages"]]

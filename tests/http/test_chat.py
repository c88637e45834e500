"""Talking over HTTP: answers whole and as they are made, connections that break, servers that die."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

import everthread
from everthread import Everthread, Invalid
from everthread.adapters.models.weights import LOCAL_DEFAULT
from everthread.http import model_names
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.forkserver import ForkServer
from tests.http.conftest import client_of, key_for
from tests.http.served import API, Event, events, listening, process, scripted, text_of

WORDS = "It never ends and never forgets, 也不会忘记. "
ANSWER = WORDS * 8


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(database="memory://", requests_per_minute=0, model=scripted(tmp_path, ANSWER, pace_seconds=0.002))


@pytest.fixture
async def url_of(app: FastAPI) -> AsyncIterator[str]:
    async with listening(app) as address:
        yield address


@pytest.fixture
async def client(url_of: str, et: Everthread) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {await key_for(et, 'alice')}"}
    async with httpx.AsyncClient(base_url=url_of, headers=headers, timeout=30) as client:
        yield client


async def whole(client: httpx.AsyncClient, method: str, path: str, **how: object) -> list[Event]:
    async with client.stream(method, path, **how) as answer:  # type: ignore[arg-type]
        assert answer.status_code == 200, await answer.aread()
        return [event async for event in events(answer)]


async def test_a_question_is_answered_and_both_are_kept(client: httpx.AsyncClient) -> None:
    said = (await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})).json()
    assert (said["state"], said["text"], said["message"]["text"]) == ("complete", ANSWER, ANSWER)
    kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
    assert [(one["role"], one["is_complete"]) for one in kept] == [("user", True), ("assistant", True)]
    place = f"{API}/conversations/c/turns"
    assert [one["state"] for one in (await client.get(place)).json()["items"]] == ["complete"]
    seen = (await client.get(f"{place}/{said['turn_id']}/context")).json()["requests"]
    assert seen[0]["is_same"]
    assert any("hello" in str(message["content"]) for message in seen[0]["messages"])


async def test_the_context_as_a_turn_is_what_the_next_question_sends(client: httpx.AsyncClient) -> None:
    await client.post(f"{API}/conversations", json={"id": "c"})
    place = f"{API}/conversations/c/context"
    alone = (await client.get(place, params={"question": "hello"})).json()
    foretold = (await client.get(place, params={"question": "hello", "as": "turn"})).json()
    said = (await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})).json()
    (sent,) = (await client.get(f"{API}/conversations/c/turns/{said['turn_id']}/context")).json()["requests"]
    assert foretold["tokens"] == sent["tokens"] > alone["tokens"]
    assert foretold["limit"] < alone["limit"], "tools take some of the room"


async def test_an_answer_is_told_piece_by_piece(client: httpx.AsyncClient) -> None:
    told = await whole(client, "POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"})
    assert (told[0].kind, told[-1].kind) == ("accepted", "done")
    assert text_of(told) == ANSWER == told[-1].data["text"]
    assert sum(one.kind == "token" for one in told) > 10


async def test_a_failing_model_is_a_problem_and_the_question_is_kept(et: Everthread, tmp_path: Path) -> None:
    model = scripted(tmp_path, "so far", error="the provider said hunter22")
    app = create_app(et, Settings(database="memory://", model=model))
    async with client_of(app, await key_for(et, "alice")) as client:
        answer = await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})
        assert answer.status_code == 502
        assert "hunter22" not in answer.text
        problem = answer.json()
        assert problem["detail"].endswith("what was said is kept.")
        assert problem["safe"] == "The question and what was answered until then are kept."
        assert "/turns/" in problem["next_step"]
        kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
    assert (kept[0]["role"], kept[0]["text"]) == ("user", "hello")
    assert [one["is_complete"] for one in kept[1:]] in ([], [False])


@pytest.mark.parametrize("model", ["gguf:/etc/passwd", "scripted:/etc/passwd", "nothing", " GGUF:x"])
async def test_no_request_names_a_file_of_the_server(client: httpx.AsyncClient, model: str) -> None:
    answer = await client.post(f"{API}/chat", json={"message": "hello", "model": model})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "model")


def test_the_model_that_answers_without_settings_may_be_named() -> None:
    model_names.check_model(LOCAL_DEFAULT, Settings())
    with pytest.raises(Invalid, match="only the settings of the server"):
        model_names.check_model(LOCAL_DEFAULT, Settings(model="scripted:echo"))


async def test_a_body_that_is_no_json_is_told_where_it_breaks(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{API}/chat", content=b'{"message": x}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["detail"] == "the body is not valid JSON, at character 12."
    assert [one["field"] for one in problem["errors"]] == ["body"]


async def test_a_question_to_a_model_that_does_not_exist_leaves_nothing(client: httpx.AsyncClient) -> None:
    answer = await client.post(f"{API}/chat", json={"message": "hello", "model": "foo:bar"})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["errors"][0]["field"]) == (422, "invalid", "model")
    assert "foo:bar" in problem["detail"]
    assert problem["safe"] == "Nothing from this request was stored."
    assert (await client.get(f"{API}/conversations")).json()["items"] == []


async def test_a_model_of_the_settings_that_does_not_exist_is_named_before_anything_is_stored(
    et: Everthread, tmp_path: Path
) -> None:
    settings = Settings(database="memory://", model=scripted(tmp_path, ANSWER), model_code="foo:bar")
    async with client_of(create_app(et, settings), await key_for(et, "alice")) as client:
        answer = await client.post(f"{API}/chat", json={"message": "hello", "model_pref": "code"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "model")
        assert "foo:bar" in answer.json()["detail"]
        assert (await client.get(f"{API}/conversations")).json()["items"] == []


async def test_another_answer_that_is_refused_makes_no_branch(client: httpx.AsyncClient) -> None:
    await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})
    before = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
    answer = await client.post(f"{API}/conversations/c/regenerate", json={"model": "foo:bar"})
    assert answer.status_code == 422
    assert (await client.get(f"{API}/conversations/c/messages")).json()["items"] == before


async def test_another_answer_that_must_not_wait_makes_no_branch_while_one_is_given(client: httpx.AsyncClient) -> None:
    await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})
    body = {"message": "and again?", "conversation_id": "c"}
    async with client.stream("POST", f"{API}/chat/stream", json=body) as answer:
        async for event in events(answer):
            if event.kind == "token":
                break
        refused = await client.post(f"{API}/conversations/c/regenerate", json={"when_busy": "reject"})
    assert (refused.status_code, refused.json()["code"]) == (409, "turn_running")
    assert len((await client.get(f"{API}/conversations/c/branches")).json()["items"]) == 1


async def test_i17_a_reader_that_goes_away_changes_nothing(client: httpx.AsyncClient) -> None:
    turn = ""
    async with client.stream("POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"}) as answer:
        async for event in events(answer):
            turn = turn or event.data["turn_id"]
            if event.kind == "token":
                break
    told = await whole(client, "GET", f"{API}/conversations/c/turns/{turn}/stream")
    assert text_of(told) == ANSWER
    kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
    assert [(one["text"], one["is_complete"]) for one in kept] == [("hello", True), (ANSWER, True)]


async def test_i18_whoever_comes_back_gets_exactly_the_rest_live_or_finished(client: httpx.AsyncClient) -> None:
    told = await whole(client, "POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"})
    place = f"{API}/conversations/c/turns/{told[0].data['turn_id']}/stream"
    for cut in (0, 1, len(told) // 2, len(told) - 1, len(told)):
        last = told[cut - 1].number if cut else 0
        rest = await whole(client, "GET", place, headers={"Last-Event-ID": str(last)})
        assert text_of(told[:cut]) + text_of(rest) == ANSWER
        assert [one.number for one in rest] == sorted({one.number for one in rest})
        assert all(one.number > last for one in rest)
    assert (await client.get(place, headers={"Last-Event-ID": "x"})).status_code == 422


async def follow(client: httpx.AsyncClient, chance: random.Random, name: str) -> list[Event]:
    """Ask, and break off at a random event up to three times, coming back each time."""
    breaks = [chance.randrange(1, 40) for _ in range(chance.randrange(0, 4))]
    told: list[Event] = []
    body = {"message": f"hello {name}", "conversation_id": name}
    method, path = "POST", f"{API}/chat/stream"
    headers: dict[str, str] = {}
    while True:
        stop = breaks.pop() if breaks else 0
        how = {"json": body} if method == "POST" else {"headers": headers}
        async with client.stream(method, path, **how) as answer:  # type: ignore[arg-type]
            count = 0
            async for event in events(answer):
                told.append(event)
                count += 1
                if count == stop:
                    break
        if told[-1].kind == "done":
            return told
        method, headers = "GET", {"Last-Event-ID": str(told[-1].number)}
        path = f"{API}/conversations/{name}/turns/{told[0].data['turn_id']}/stream"


async def test_i18_a_hundred_broken_streams_are_all_complete_and_without_a_gap(tmp_path: Path) -> None:
    chance = random.Random(7)
    settings = Settings(database="memory://", model=scripted(tmp_path, ANSWER), requests_per_minute=0)
    url = f"sqlite:///{tmp_path / 'et.db'}"
    async with (
        everthread.open(url, worker=False) as et,
        listening(create_app(et, settings, needs_key=False)) as address,
    ):
        limits = httpx.Limits(max_connections=20)
        async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
            for start in range(0, 100, 10):
                done = await asyncio.gather(*(follow(client, chance, f"c{n}") for n in range(start, start + 10)))
                for told in done:
                    assert text_of(told) == ANSWER
                    assert [one.number for one in told] == sorted({one.number for one in told})
        for n in range(100):
            conv = await et.conversations.get(f"c{n}")
            assert [one.text async for one in conv.messages()] == [f"hello c{n}", ANSWER]
        assert (await et.verify()).ok


async def test_i19_the_same_key_is_the_same_turn_also_for_a_stream(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    first = await whole(client, "POST", f"{API}/chat/stream", json={"message": "hello"}, headers=key)
    again = await whole(client, "POST", f"{API}/chat/stream", json={"message": "hello"}, headers=key)
    assert text_of(again) == text_of(first) == ANSWER
    assert again[0].data == first[0].data
    other = await client.post(f"{API}/chat/stream", json={"message": "other"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    conversation = first[0].data["conversation_id"]
    message = {"messages": [{"role": "user", "content": "x"}]}
    for path, body in (("conversations", {}), (f"conversations/{conversation}/messages", message)):
        other = await client.post(f"{API}/{path}", json=body, headers=key)
        assert (other.status_code, other.json()["code"]) == (422, "key_reused")
    assert len((await client.get(f"{API}/conversations/{conversation}/messages")).json()["items"]) == 2


async def test_i19_a_stream_that_comes_again_says_so(client: httpx.AsyncClient) -> None:
    key, replayed = {"Idempotency-Key": "k"}, []
    question = {"message": "hello", "conversation_id": "c"}
    for path, body in (("chat/stream", question), ("conversations/c/regenerate", {"stream": True})):
        for _ in range(2):
            async with client.stream("POST", f"{API}/{path}", json=body, headers=key) as answer:
                assert text_of([one async for one in events(answer)]) == ANSWER
                replayed.append(answer.headers.get("idempotent-replayed"))
        key = {"Idempotency-Key": "k2"}
    assert replayed == [None, "true", None, "true"]


async def test_i19_a_stream_whose_first_request_died_on_the_way_is_not_made_to_wait(
    client: httpx.AsyncClient, et: Everthread, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = {"message": "hello"}, {"Idempotency-Key": "k"}

    async def die(*_: object) -> None:
        raise ConnectionError("as if the process had died")

    with monkeypatch.context() as dying:
        dying.setattr(et.store.replies, "keep", die)
        dying.setattr(et.store.replies, "drop", die)
        assert (await client.post(f"{API}/chat/stream", json=body, headers=key)).status_code == 500
    for replayed in (None, "true"):
        async with client.stream("POST", f"{API}/chat/stream", json=body, headers=key) as answer:
            assert answer.headers.get("idempotent-replayed") == replayed
            assert text_of([one async for one in events(answer)]) == ANSWER


async def test_i19_an_answer_given_again_under_a_key_comes_as_it_is_said(client: httpx.AsyncClient) -> None:
    await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})
    address, key = f"{API}/conversations/c/regenerate", {"Idempotency-Key": "k"}
    states = []
    async with client.stream("POST", address, json={"stream": True}, headers=key) as answer:
        told = []
        async for event in events(answer):
            told.append(event)
            if event.kind == "accepted":
                turn = f"{API}/conversations/c/turns/{event.data['turn_id']}"
                states.append((await client.get(turn)).json()["state"])
    assert states[0] in ("received", "running")
    again = await whole(client, "POST", address, json={"stream": True}, headers=key)
    assert again[0].data == told[0].data
    assert text_of(again) == text_of(told) == ANSWER
    assert len((await client.get(f"{API}/conversations/c/branches")).json()["items"]) == 2
    other = await client.post(address, json={"stream": True, "model_pref": "vision"}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


async def test_what_is_answered_with_and_without_a_stream_is_declared(client: httpx.AsyncClient, app: FastAPI) -> None:
    operation = app.openapi()["paths"][f"{API}/conversations/{{conversation_id}}/regenerate"]["post"]
    await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})
    for stream in (False, True):
        answer = await client.post(f"{API}/conversations/c/regenerate", json={"stream": stream})
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in operation["responses"][str(answer.status_code)]["content"]


async def test_a_turn_is_cancelled_and_keeps_what_it_said(client: httpx.AsyncClient) -> None:
    async with client.stream("POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"}) as answer:
        told = []
        async for event in events(answer):
            told.append(event)
            if event.kind == "accepted":
                turn = event.data["turn_id"]
                assert (await client.post(f"{API}/conversations/c/turns/{turn}/cancel")).status_code == 200
    assert told[-1].data["state"] == "cancelled"
    kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
    assert kept[0]["text"] == "hello"
    assert ANSWER.startswith(kept[-1]["text"]) or len(kept) == 1
    assert not kept[-1]["is_complete"] or len(kept) == 1


async def test_an_answer_given_again_stands_beside_the_first(client: httpx.AsyncClient) -> None:
    first = (await client.post(f"{API}/chat", json={"message": "hello", "conversation_id": "c"})).json()
    again = (await client.post(f"{API}/conversations/c/regenerate", json={})).json()
    assert again["message"]["parent_seq"] == first["message"]["parent_seq"] == 1
    assert again["message"]["id"] != first["message"]["id"]
    assert len((await client.get(f"{API}/conversations/c/branches")).json()["items"]) == 2


async def test_a_conversation_without_a_title_gets_one_from_its_first_question(tmp_path: Path) -> None:
    settings = Settings(database="memory://", model="scripted:echo", requests_per_minute=0)
    title = None
    async with (
        everthread.open("memory://", worker=True) as et,
        client_of(create_app(et, settings), await key_for(et, "alice")) as client,
    ):
        await client.post(f"{API}/chat", json={"message": "Hello! How high is Kunming?", "conversation_id": "c"})
        for _ in range(200):
            title = title or (await client.get(f"{API}/conversations/c")).json()["title"]
            await asyncio.sleep(0 if title else 0.02)
        run = {
            "assistant_id": "everthread",
            "input": {"messages": [{"role": "user", "content": "Hi! How deep is Dianchi?"}]},
            "if_not_exists": "create",
        }
        await client.post("/threads/t/runs/wait", json=run)
        thread = None
        for _ in range(200):
            thread = thread or (await client.get(f"{API}/conversations/t")).json()["title"]
            await asyncio.sleep(0 if thread else 0.02)
    assert (title, thread) == ("How high is Kunming?", "How deep is Dianchi?")


async def test_tools_are_listed(client: httpx.AsyncClient) -> None:
    await client.post(f"{API}/conversations", json={"id": "c"})
    named = (await client.get(f"{API}/chat/tools", params={"conversation_id": "c"})).json()
    assert {"call_subagent"} <= {one["name"] for one in named["items"]}
    assert "general" in named["agent_types"]
    assert {"data-report", "document-digest"} <= {one["name"] for one in named["skills"]}


async def test_what_the_agent_set_itself_to_do_can_be_read(tmp_path: Path) -> None:
    todos = [{"content": "book the train", "status": "completed"}, {"content": "pack", "status": "pending"}]
    script = tmp_path / "todos.json"
    script.write_text(json.dumps([{"calls": [{"name": "todo_write", "args": {"todos": todos}}]}, "I have a plan."]))
    settings = Settings(database="memory://", requests_per_minute=0, model=f"scripted:{script}")
    async with everthread.open("memory://", worker=False) as et:
        app = create_app(et, settings)
        async with client_of(app, await key_for(et, "alice")) as alice, client_of(app, await key_for(et, "bob")) as bob:
            await alice.post(f"{API}/conversations", json={"id": "c"})
            assert (await alice.get(f"{API}/conversations/c/todos")).json() == {"items": []}
            await alice.post(f"{API}/chat", json={"message": "plan it", "conversation_id": "c"})
            assert (await alice.get(f"{API}/conversations/c/todos")).json() == {"items": todos}
            assert (await bob.get(f"{API}/conversations/c/todos")).status_code == 404


async def test_i31_a_server_killed_in_mid_stream_loses_nothing_it_told(
    forkserver: ForkServer, durable_url: str, tmp_path: Path
) -> None:
    told: list[Event] = []
    slow = {"EVERTHREAD_MODEL": scripted(tmp_path, ANSWER, pace_seconds=0.05)}
    with process(forkserver, durable_url, **slow) as (running, address):
        async with (
            httpx.AsyncClient(base_url=address, timeout=60) as client,
            client.stream("POST", f"{API}/chat/stream", json={"message": "hello", "conversation_id": "c"}) as answer,
        ):
            try:
                async for event in events(answer):
                    told.append(event)
                    if len(told) == 25:
                        running.send(signal.SIGKILL)  # at once: what was told is stored
            except httpx.HTTPError:
                pass
    turn = told[0].data["turn_id"]
    with process(forkserver, durable_url, **slow) as (_, address):
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            ended = (await client.get(f"{API}/conversations/c/turns/{turn}")).json()
            assert ended["state"] == "interrupted"
            kept = (await client.get(f"{API}/conversations/c/messages")).json()["items"]
            assert kept[0]["text"] == "hello"
            assert ANSWER.startswith(kept[1]["text"])
            assert not kept[1]["is_complete"]
            replay = await whole(client, "GET", f"{API}/conversations/c/turns/{turn}/stream")
            assert replay[: len(told)] == told, "no number means two things"
            assert [event.kind for event in replay if event.kind in ("done", "failed")] == [replay[-1].kind] == ["done"]
            assert text_of(replay) == replay[-1].data["text"] == kept[1]["text"]
            after = {"Last-Event-ID": str(told[-1].number)}
            assert (
                await whole(client, "GET", f"{API}/conversations/c/turns/{turn}/stream", headers=after)
                == (replay[len(told) :])
            )
            after = (await client.post(f"{API}/chat", json={"message": "again", "conversation_id": "c"})).json()
            assert after["state"] == "complete"
            assert (await client.post(f"{API}/verify")).json()["ok"]

"""Conversations over HTTP: their rows, their messages, their branches, and what is made of them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import everthread
from everthread import Everthread
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for

API = "/api/v1"


@pytest.fixture
async def trip(alice: httpx.AsyncClient) -> str:
    """The address of a conversation of four messages."""
    await alice.post(f"{API}/conversations", json={"id": "trip", "title": "Trip"})
    messages = [
        {"role": "user", "content": "My grandmother has a peanut allergy.", "id": "m1"},
        {"role": "assistant", "content": "Noted. Where do you want to go?", "id": "m2"},
        {"role": "user", "content": "去昆明。", "id": "m3"},
        {"role": "assistant", "content": "好的。", "id": "m4"},
    ]
    answer = await alice.post(f"{API}/conversations/trip/messages", json={"messages": messages})
    assert answer.status_code == 201
    return f"{API}/conversations/trip"


def seqs(answer: httpx.Response) -> list[int]:
    return [one["seq"] for one in answer.json()["items"]]


async def test_a_conversation_is_made_renamed_put_aside_and_brought_back(alice: httpx.AsyncClient) -> None:
    made = await alice.post(f"{API}/conversations", json={"title": "A", "metadata": {"k": [1, None]}})
    assert made.status_code == 201
    place = f"{API}/conversations/{made.json()['id']}"
    changed = await alice.patch(place, json={"title": None, "is_active": False})
    assert (changed.json()["title"], changed.json()["is_active"], changed.json()["metadata"]) == (
        None,
        False,
        {"k": [1, None]},
    )
    assert (await alice.delete(place)).json()["is_deleted"]
    assert (await alice.get(f"{API}/conversations")).json()["items"] == []
    assert not (await alice.post(f"{place}/restore")).json()["is_deleted"]
    assert len((await alice.get(f"{API}/conversations")).json()["items"]) == 1


async def test_lists_go_on_by_cursor_and_only_with_ones_own(alice: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    for name in "abcde":
        await alice.post(f"{API}/conversations", json={"id": name})
    found, cursor = [], None
    while True:
        page = (
            await alice.get(f"{API}/conversations", params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        found += [one["id"] for one in page["items"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert found == list("edcba")
    assert (await bob.get(f"{API}/conversations")).json()["items"] == []


async def test_messages_are_paged_both_ways(alice: httpx.AsyncClient, trip: str) -> None:
    first = await alice.get(f"{trip}/messages", params={"limit": 3})
    assert (seqs(first), first.json()["has_older"], first.json()["has_newer"]) == ([1, 2, 3], False, True)
    rest = await alice.get(f"{trip}/messages", params={"limit": 3, "after": 3})
    assert (seqs(rest), rest.json()["has_older"], rest.json()["has_newer"]) == ([4], True, False)
    back = await alice.get(f"{trip}/messages", params={"limit": 2, "before": 4})
    assert (seqs(back), back.json()["has_older"], back.json()["has_newer"]) == ([2, 3], True, True)
    assert (await alice.get(f"{trip}/messages", params={"after": 1, "before": 3})).status_code == 422


async def test_what_comes_back_is_what_came_in(alice: httpx.AsyncClient, trip: str) -> None:
    strange = {"role": "user", "content": "\ud800 \x00 half", "id": "odd", "n": 10**30, "extra": {"a": [1.5, None]}}
    body = json.dumps({"messages": [strange]}).encode()
    answer = await alice.post(f"{trip}/messages", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201
    assert (await alice.get(f"{trip}/messages/odd")).json()["payload"] == strange


async def test_an_edit_is_a_sibling_and_both_branches_stay(alice: httpx.AsyncClient, trip: str) -> None:
    edited = (await alice.patch(f"{trip}/messages/m3", json={"content": "去大理。"})).json()
    assert (edited["text"], edited["parent_seq"]) == ("去大理。", 2)
    assert seqs(await alice.get(f"{trip}/messages")) == [1, 2, edited["seq"]]
    assert seqs(await alice.get(f"{trip}/messages", params={"branch": "main"})) == [1, 2, 3, 4]
    branches = (await alice.get(f"{trip}/branches")).json()["items"]
    assert [one["is_active"] for one in branches] == [False, True]
    assert (await alice.put(f"{trip}/branches/main/active")).json()["is_active"]
    fork = await alice.post(f"{trip}/fork", json={"at_seq": 2})
    assert (fork.status_code, fork.json()["leaf_seq"]) == (201, 2)


async def test_a_message_is_put_aside_brought_back_and_pinned(alice: httpx.AsyncClient, trip: str) -> None:
    assert (await alice.delete(f"{trip}/messages/m2")).json()["is_deleted"]
    assert seqs(await alice.get(f"{trip}/messages")) == [1, 3, 4]
    assert seqs(await alice.get(f"{trip}/messages", params={"include_deleted": True})) == [1, 2, 3, 4]
    assert not (await alice.post(f"{trip}/messages/m2/restore")).json()["is_deleted"]
    assert (await alice.put(f"{trip}/messages/m1/pin")).json()["is_pinned"]
    assert not (await alice.delete(f"{trip}/messages/m1/pin")).json()["is_pinned"]


async def test_an_append_that_expects_another_head_is_refused(alice: httpx.AsyncClient, trip: str) -> None:
    late = {"messages": [{"role": "user", "content": "late"}], "expected_head": 3}
    answer = await alice.post(f"{trip}/messages", json=late)
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (409, "head_moved", True)


async def test_a_retry_with_a_key_doubles_nothing_though_the_stored_answer_is_lost(
    alice: httpx.AsyncClient, et: Everthread, trip: str
) -> None:
    body = {"messages": [{"role": "user", "content": "once"}]}
    first = await alice.post(f"{trip}/messages", json=body, headers={"Idempotency-Key": "k"})
    conv = await et.conversations.get("trip", "alice")
    (receipt,) = await conv.append(body["messages"], idempotency_key="k")
    assert first.json()["receipts"][0]["seq"] == receipt.seq
    assert len(seqs(await alice.get(f"{trip}/messages"))) == 5


async def test_a_copy_has_entries_of_its_own(alice: httpx.AsyncClient, trip: str) -> None:
    made = await alice.post(f"{trip}/copy", json={"id": "copy"})
    assert made.status_code == 201
    await alice.post(f"{API}/conversations/copy/messages", json={"messages": [{"role": "user", "content": "more"}]})
    assert len(seqs(await alice.get(f"{trip}/messages"))) == 4
    assert len(seqs(await alice.get(f"{API}/conversations/copy/messages"))) == 5


async def test_children_are_listed_at_their_parent(alice: httpx.AsyncClient, trip: str) -> None:
    await alice.post(f"{API}/conversations", json={"id": "sub", "parent_id": "trip"})
    assert [one["id"] for one in (await alice.get(f"{trip}/children")).json()["items"]] == ["sub"]


async def test_words_are_found_in_one_conversation_or_in_all(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, trip: str
) -> None:
    async def found(client: httpx.AsyncClient, **params: Any) -> list[str]:
        return [hit["id"] for hit in (await client.get(f"{API}/search", params=params)).json()["items"]]

    assert await found(alice, q="allergies") == ["m1"]
    assert await found(alice, q="昆明", conversation_id="trip") == ["m3"]
    assert await found(bob, q="allergies") == []


async def test_what_is_recalled_says_why(alice: httpx.AsyncClient, bob: httpx.AsyncClient, trip: str) -> None:
    told = (await alice.get(f"{trip}/recall", params={"q": "Which allergy is there?"})).json()
    first = told["items"][0]
    assert (first["ids"], first["words"]) == (["m1"], ["allergy"])
    assert "words" in first["why"]
    assert sum(first["parts"].values()) == pytest.approx(first["score"], abs=1e-4)
    assert (told["by_meaning"], told["unanswered"]) == (False, [])
    assert first.keys().isdisjoint({"before", "after"})
    assert (await bob.get(f"{trip}/recall", params={"q": "allergy"})).status_code == 404
    assert (await alice.get(f"{trip}/recall", params={"q": "allergy", "scope": "world"})).status_code == 422


async def test_what_stands_around_a_hit_comes_with_it_if_asked_for(alice: httpx.AsyncClient, trip: str) -> None:
    texts = ["The admin password: hunter2-Pr0d!", "The zebra sleeps.", "Good."]
    await alice.post(f"{trip}/messages", json={"messages": [{"role": "user", "content": text} for text in texts]})
    told = (await alice.get(f"{trip}/recall", params={"q": "zebra", "limit": 1, "around": 2})).json()
    (hit,) = told["items"]
    beside = [*hit["before"], *hit["after"]]
    assert [one["seq"] - hit["seqs"][0] for one in beside] == [-2, -1, 1]
    assert (beside[-1]["speaker"], beside[-1]["text"]) == ("user", "Good.")
    assert "hunter2" not in json.dumps(told)
    assert (await alice.get(f"{trip}/recall", params={"q": "zebra", "around": 51})).status_code == 422


async def test_what_looks_like_a_credential_is_masked_in_what_is_recalled_unless_asked(
    alice: httpx.AsyncClient, trip: str
) -> None:
    said = {"role": "user", "content": "The admin password: hunter2-Pr0d!, the deploy key is ghp_" + "a1B2" * 9}
    await alice.post(f"{trip}/messages", json={"messages": [said]})
    for question in ("What is the deploy key?", "Which are all the deploy keys?"):
        masked = (await alice.get(f"{trip}/recall", params={"q": question})).text
        assert "deploy" in masked
        assert "hunter2" not in masked
        assert "a1B2" not in masked
        shown = (await alice.get(f"{trip}/recall", params={"q": question, "show_secrets": True})).text
        assert "hunter2-Pr0d!" in shown
        assert said["content"][-40:] in shown


async def test_a_search_by_meaning_without_an_embedder_says_that_it_is_by_words(
    alice: httpx.AsyncClient, trip: str
) -> None:
    told = (await alice.get(f"{API}/search", params={"q": "allergies", "meaning": True})).json()
    assert told["items"][0]["id"] == "m1"
    assert (told["by_meaning"], told["is_behind"]) == (False, False)
    assert "no embedder" in told["why_words_alone"]
    assert (await alice.get(f"{API}/search", params={"q": "allergies"})).json()["why_words_alone"] is None


async def test_compactions_are_planned_made_compared_and_undone(alice: httpx.AsyncClient, trip: str) -> None:
    talk = [
        {"role": role, "content": f"Day {n}: the bus leaves at {n % 12}:15 for town {n}. " * 8}
        for n in range(30)
        for role in ("user", "assistant")
    ]
    await alice.post(f"{trip}/messages", json={"messages": talk})
    before = (await alice.get(f"{trip}/context", params={"messages": True})).json()
    assert before["uncovered"] == 64
    plan = (await alice.post(f"{trip}/compact", json={"dry_run": True})).json()
    assert not plan["compacted"]
    assert plan["planned"]
    made = (await alice.post(f"{trip}/compact", json={})).json()
    assert made["compacted"]
    assert (await alice.get(f"{trip}/context")).json()["tokens"] < before["tokens"]
    listed = (await alice.get(f"{trip}/compactions", params={"limit": 1})).json()
    assert listed["items"][0]["number"] == 1
    assert (await alice.get(f"{trip}/compactions/1")).json() == listed["items"][0]
    diff = (await alice.get(f"{trip}/compactions/1/diff")).json()
    assert diff["originals"][0]["id"] == "m1"
    assert (await alice.get(f"{trip}/summary")).json()["summary"]
    last = (await alice.get(f"{trip}/compactions")).json()["items"][-1]
    assert (await alice.post(f"{trip}/compactions/{last['id']}/undo")).json()["undone_at"]
    told = (await alice.get(f"{API}/logs/compaction")).json()["items"]
    assert {"compaction_triggered", "compaction_completed"} <= {one["event"] for one in told}
    assert len(seqs(await alice.get(f"{trip}/messages", params={"limit": 100}))) == 64


async def test_compaction_is_set_for_all_by_an_admin_and_for_one_by_its_owner(
    alice: httpx.AsyncClient, admin: httpx.AsyncClient, trip: str
) -> None:
    assert (await alice.put(f"{API}/config/compaction", json={"threshold": 0.5})).status_code == 403
    assert (await admin.put(f"{API}/config/compaction", json={"threshold": 0.5})).json()["threshold"] == 0.5
    assert (await alice.put(f"{trip}/config/compaction", json={"keep_recent": 4})).json()["keep_recent"] == 4
    here = (await alice.get(f"{trip}/config/compaction")).json()
    assert (here["threshold"], here["keep_recent"]) == (0.5, 4)
    assert (await alice.put(f"{trip}/config/compaction", json={"threshhold": 1})).status_code == 422


async def test_counts_and_proof_are_ones_own_and_for_an_admin_everybodys(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient, admin: httpx.AsyncClient, trip: str
) -> None:
    mine = (await alice.get(f"{API}/stats")).json()
    assert (mine["conversations"], mine["entries"], mine["database"]) == (1, 4, None)
    assert (await bob.post(f"{API}/verify")).json()["conversations"] == 0
    assert (await alice.post(f"{API}/verify")).json()["messages"] == 4
    whole = (await admin.post(f"{API}/verify")).json()
    assert (whole["ok"], whole["messages"]) == (True, 4)
    assert (await admin.get(f"{API}/stats")).json()["database"]


async def test_only_what_is_named_again_is_erased(alice: httpx.AsyncClient, trip: str) -> None:
    assert (await alice.post(f"{trip}/erase", json={"confirm": "tripp"})).status_code == 422
    assert (await alice.post(f"{trip}/messages/m1/erase", json={"confirm": "m1"})).json()["entries"] == 1
    assert (await alice.get(f"{trip}/messages/m1")).status_code == 404
    assert (await alice.post(f"{trip}/erase", json={"confirm": "trip"})).json()["conversations"] == 1
    assert (await alice.get(trip)).status_code == 404
    assert (await alice.post(f"{API}/conversations", json={"id": "trip"})).json()["code"] == "erased"
    assert (await alice.post(f"{API}/erase", json={"confirm": "alice"})).status_code == 200
    assert (await alice.get(f"{API}/conversations")).status_code == 401


async def test_what_was_compacted_is_told_after_a_restart_and_by_another_process(durable_url: str) -> None:
    async with everthread.open(durable_url, worker=False) as before:
        key = await key_for(before, "alice")
        conversation = await before.conversations.create(id="long", owner="alice")
        await conversation.append([{"role": "user", "content": f"Town {n} has {n} wells. " * 20} for n in range(40)])
        assert (await conversation.compact()).compacted
    async with (
        everthread.open(durable_url, worker=False) as et,
        client_of(create_app(et, Settings(database="memory://")), key) as client,
    ):
        told = (await client.get(f"{API}/logs/compaction")).json()["items"]
        of_one = (await client.get(f"{API}/logs/compaction", params={"conversation_id": "long"})).json()["items"]
        unknown = await client.get(f"{API}/logs/compaction", params={"conversation_id": "other"})
    assert told[0]["event"] == "compaction_completed"
    assert told[0]["fields"]["trigger"] == "manual"
    assert told == of_one
    assert unknown.status_code == 404

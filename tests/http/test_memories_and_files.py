"""Memories, documents and files over HTTP, each owner's own."""

from __future__ import annotations

import httpx
import pytest

API = "/api/v1"


async def test_a_memory_is_kept_changed_and_forgotten(alice: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    made = await alice.post(f"{API}/memories", json={"text": "I am allergic to nuts", "kind": "fact"})
    assert made.status_code == 201
    place = f"{API}/memories/{made.json()['id']}"
    changed = (await alice.patch(place, json={"text": "I am allergic to peanuts"})).json()
    told = (await alice.get(f"{API}/memories/{changed['id']}/history")).json()["items"]
    assert [one["text"] for one in told] == ["I am allergic to nuts", "I am allergic to peanuts"]
    hits = (await alice.get(f"{API}/memories/search", params={"q": "peanuts"})).json()["items"]
    assert [hit["memory"]["id"] for hit in hits] == [changed["id"]]
    assert (await bob.get(f"{API}/memories")).json()["items"] == []
    assert (await bob.get(place)).status_code == 404
    await alice.delete(f"{API}/memories/{changed['id']}")
    assert (await alice.get(f"{API}/memories")).json()["items"] == []
    await alice.post(f"{API}/memories/{changed['id']}/restore")
    assert len((await alice.get(f"{API}/memories")).json()["items"]) == 1


async def test_a_memory_is_erased_for_good_by_who_names_it_again(
    alice: httpx.AsyncClient, bob: httpx.AsyncClient
) -> None:
    made = (await alice.post(f"{API}/memories", json={"text": "my number is 4711", "kind": "fact"})).json()["id"]
    place = f"{API}/memories/{made}/erase"
    assert (await bob.post(place, json={"confirm": made})).status_code == 404
    assert (await alice.post(place, json={"confirm": "another"})).status_code == 422
    assert (await alice.get(f"{API}/memories/{made}")).status_code == 200
    erased = await alice.post(place, json={"confirm": made})
    assert (erased.status_code, erased.json()["memory_id"]) == (200, made)
    assert (await alice.get(f"{API}/memories/{made}")).status_code == 404
    assert (await alice.get(f"{API}/memories/search", params={"q": "4711"})).json()["items"] == []


async def test_the_reply_to_an_idempotency_key_does_not_give_an_erased_memory_back(alice: httpx.AsyncClient) -> None:
    key, body = {"Idempotency-Key": "k"}, {"text": "my number is 4711", "kind": "fact"}
    made = (await alice.post(f"{API}/memories", json=body, headers=key)).json()["id"]
    assert (await alice.post(f"{API}/memories", json=body, headers=key)).json()["id"] == made
    await alice.post(f"{API}/memories/{made}/erase", json={"confirm": made})
    again = await alice.post(f"{API}/memories", json=body, headers=key)
    assert (again.status_code, again.json()["code"]) == (409, "erased")
    assert "4711" not in again.text


async def test_a_memory_tells_which_message_it_is_known_from(alice: httpx.AsyncClient) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c"})
    await alice.post(f"{API}/conversations/c/messages", json={"messages": [{"role": "user", "content": "no nuts"}]})
    made = await alice.post(f"{API}/memories", json={"text": "no nuts", "conversation_id": "c", "seq": 1})
    assert made.json()["source"] == {"conversation_id": "c", "seq": 1}


async def test_documents_are_kept_found_and_taken_out(alice: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    body = {"collection": "manuals", "text": "# Pump\n\nTurn the red valve twice.", "id": "pump"}
    assert (await alice.post(f"{API}/knowledge/documents", json=body)).status_code == 201
    form = {"files": {"file": ("fan.md", b"# Fan\n\nThe fan has three speeds.")}, "data": {"collection": "manuals"}}
    assert (await alice.post(f"{API}/knowledge/files", **form)).status_code == 201  # type: ignore[arg-type]
    assert len((await alice.get(f"{API}/knowledge/manuals/documents")).json()["items"]) == 2
    found = (await alice.get(f"{API}/knowledge/manuals/search", params={"q": "red valve"})).json()["items"]
    assert "valve" in str(found[0])
    assert (await bob.get(f"{API}/knowledge/manuals/search", params={"q": "valve"})).status_code == 404
    assert (await alice.delete(f"{API}/knowledge/manuals/documents/pump")).json()["removed"] == 1
    assert (await alice.delete(f"{API}/knowledge/manuals")).json()["removed"] == 1
    assert (await alice.get(f"{API}/knowledge")).json()["items"] == []


async def test_a_file_comes_back_as_it_went_in(alice: httpx.AsyncClient, bob: httpx.AsyncClient) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c"})
    place = f"{API}/conversations/c/files"
    answer = await alice.post(place, files={"file": ("笔记.txt", "你好".encode())})
    assert answer.status_code == 201, answer.text
    listed = (await alice.get(place)).json()
    assert [one["name"] for one in listed["uploads"]] == ["笔记.txt"]
    back = await alice.get(f"{place}/{listed['uploads'][0]['path']}")
    assert back.content == "你好".encode()
    assert back.headers["content-disposition"].startswith("attachment")
    assert (await bob.get(place)).status_code == 404


@pytest.mark.parametrize("path", ["..%2f..%2fet.db", "%2e%2e/%2e%2e/et.db", "/etc/passwd", "a%00b"])
async def test_no_path_leaves_the_workspace(alice: httpx.AsyncClient, path: str) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c"})
    assert (await alice.get(f"{API}/conversations/c/files/{path}")).status_code in (404, 422)

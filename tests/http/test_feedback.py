"""Feedback on an answer is kept with its turn, goes with exports, and can be taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

import everthread
from everthread.http.app import create_app
from everthread.settings import Settings

API = "/api/v1/conversations/trip"


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with everthread.open("memory://") as et:
        app = create_app(et, Settings(database="memory://", model="scripted:echo"), needs_key=False)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            yield client


@pytest.fixture
async def answer(client: httpx.AsyncClient) -> str:
    """The id of an answer that a turn gave."""
    await client.post("/api/v1/conversations", json={"id": "trip", "metadata": {"pinned": True}})
    await client.post("/api/v1/chat", json={"conversation_id": "trip", "message": "Where to?"})
    (turn,) = (await client.get(f"{API}/turns")).json()["items"]
    return str(turn["answer_id"])


async def test_feedback_is_kept_with_the_turn_of_the_answer(client: httpx.AsyncClient, answer: str) -> None:
    (turn,) = (await client.get(f"{API}/turns")).json()["items"]
    given = (
        await client.put(f"{API}/messages/{answer}/feedback", json={"rating": "bad", "reason": "  no coach "})
    ).json()
    assert (given["turn_id"], given["rating"], given["reason"]) == (turn["id"], "bad", "no coach")
    assert (await client.get(f"{API}/feedback")).json()["items"] == [given]
    metadata = (await client.get(API)).json()["metadata"]
    assert metadata["pinned"] is True  # what others keep there stays


async def test_a_second_thought_takes_the_place_of_the_first(client: httpx.AsyncClient, answer: str) -> None:
    await client.put(f"{API}/messages/{answer}/feedback", json={"rating": "bad", "reason": "no coach"})
    await client.put(f"{API}/messages/{answer}/feedback", json={"rating": "good"})
    (only,) = (await client.get(f"{API}/feedback")).json()["items"]
    assert (only["rating"], only["reason"]) == ("good", None)
    assert (await client.delete(f"{API}/messages/{answer}/feedback")).json() == {"removed": True}
    assert (await client.delete(f"{API}/messages/{answer}/feedback")).json() == {"removed": False}
    assert (await client.get(f"{API}/feedback")).json()["items"] == []


async def test_feedback_is_in_the_export(client: httpx.AsyncClient, answer: str) -> None:
    await client.put(f"{API}/messages/{answer}/feedback", json={"rating": "bad", "reason": "it was 昆明"})
    exported = (await client.get(f"{API}/export", params={"format": "json"})).json()
    assert exported["conversation"]["metadata"]["feedback"][answer]["reason"] == "it was 昆明"


async def test_only_an_answer_can_be_rated(client: httpx.AsyncClient, answer: str) -> None:
    (turn,) = (await client.get(f"{API}/turns")).json()["items"]
    refused = await client.put(f"{API}/messages/{turn['question_id']}/feedback", json={"rating": "good"})
    assert refused.status_code == 422
    assert "only an answer" in refused.text
    unknown = await client.put(f"{API}/messages/{answer}/feedback", json={"rating": "superb"})
    assert unknown.status_code == 422
    absent = await client.put(f"{API}/messages/nobody/feedback", json={"rating": "good"})
    assert absent.status_code == 404

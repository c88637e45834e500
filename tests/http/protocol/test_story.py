"""The story that this began with: an agent sums its past up and throws it away; a page still shows everything."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from everthread.http import full_history_router
from tests.http.protocol.rig import Server, says, serving

QUESTIONS = 75
"""With four messages each: the question, the call, its result, the answer."""


async def test_300_messages_under_destructive_summarisation_are_all_in_the_full_history(durable_url: str) -> None:
    async with serving(durable_url) as server, server.sdk() as client:
        await client.threads.create(thread_id="t")
        for number in range(QUESTIONS):
            await client.runs.wait("t", "summarising", input=says(f"place {number}"))
        state: Any = (await client.threads.get_state("t"))["values"]
        assert len(state["messages"]) < 25
        assert any("They looked at places" in str(message["content"]) for message in state["messages"])
        messages = await _pages(server)
    assert len(messages) == 4 * QUESTIONS
    assert [message["type"] for message in messages] == ["human", "ai", "tool", "ai"] * QUESTIONS
    for number in range(QUESTIONS):
        question, call, result, answer = messages[4 * number : 4 * number + 4]
        assert question["content"] == f"place {number}"
        assert _thought(call) == f"what is place {number}"
        assert call["tool_calls"][0]["args"] == {"place": f"place {number}"}
        assert (result["tool_call_id"], result["content"]) == (call["tool_calls"][0]["id"], f"seen place {number}")
        assert _thought(answer) == f"what follows from seen place {number}"


async def _pages(server: Server) -> list[dict[str, Any]]:
    """Page by page, as a page shows it."""
    messages: list[dict[str, Any]] = []
    cursor = None
    async with server.http() as http:
        while True:
            given = {"limit": 50} if cursor is None else {"limit": 50, "cursor": cursor}
            page = (await http.get("/threads/t/full-history", params=given)).json()
            assert page["complete"]
            messages += page["values"]["messages"]
            if (cursor := page["next_cursor"]) is None:
                return messages


def _thought(message: dict[str, Any]) -> str:
    return str(next(block["thinking"] for block in message["content"] if block["type"] == "thinking"))


async def test_another_app_shows_the_full_history_by_the_same_route(server: Server) -> None:
    async with server.sdk() as client:
        await client.runs.wait("t", "agent", input=says("hi"), if_not_exists="create")
    app = FastAPI()
    app.include_router(full_history_router(server.et, owner=lambda request: request.headers.get("x-user", "local")))
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://here") as http, server.http() as ours:
        found = await http.get("/threads/t/full-history")
        same = (await ours.get("/threads/t/full-history", params={"merge_checkpoint": False})).json()
        assert found.json()["values"] == same["values"]
        assert (await http.get("/threads/t/full-history", headers={"X-User": "other"})).status_code == 404
        assert (await http.get("/threads/t/full-history", params={"cursor": "odd"})).status_code == 422

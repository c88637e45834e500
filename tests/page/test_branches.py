"""Branches: nothing that was said is out of reach, and every change of branch is told and can be taken back."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect


@pytest.fixture
def conversation(server: str) -> Iterator[str]:
    """The id of a conversation of six messages, the second question of which was edited: there are two branches."""
    with httpx.Client(base_url=f"{server}/api/v1", timeout=60) as api:
        id: str = api.post("/conversations", json={"title": "ways"}).raise_for_status().json()["id"]
        said = [
            {"role": ("user", "assistant")[n % 2], "content": text}
            for n, text in enumerate(("where to", "north or south", "the quince road north", "then pack wool"))
        ]
        messages = api.post(f"/conversations/{id}/messages", json={"messages": said}).raise_for_status()
        second = messages.json()["messages"][2]["id"] if "messages" in messages.json() else _third(api, id)
        edit = {"content": "the medlar road south", "activate": True}
        api.patch(f"/conversations/{id}/messages/{second}", json=edit).raise_for_status()
        yield id
        api.post(f"/conversations/{id}/erase", json={"confirm": id}).raise_for_status()


def _third(api: httpx.Client, id: str) -> str:
    found: str = api.get(f"/conversations/{id}/messages", params={"limit": 10}).json()["items"][2]["id"]
    return found


def said(page: Page, text: str) -> Locator:
    return page.locator("article.message", has_text=text)


def test_a_hit_on_another_branch_says_where_it_is_and_leads_there(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    expect(said(page, "medlar")).to_be_visible()
    page.get_by_label("Search all messages").fill("quince")
    page.locator("search .conversation").first.click()
    told = page.get_by_role("main").get_by_role("status").filter(has_text="is on another branch")
    expect(told).to_contain_text("the quince road north")
    told.get_by_role("button", name="Open that branch").click()
    expect(said(page, "quince")).to_be_in_viewport()
    expect(said(page, "quince")).to_have_attribute("data-target", "true")
    expect(told).to_have_count(0)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(told).to_be_visible()


def test_branching_is_told_and_can_be_undone(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    first = said(page, "where to")
    first.hover()
    first.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="Branch from here").click()
    expect(said(page, "medlar")).to_have_count(0)
    toast = page.locator(".toast")
    expect(toast).to_contain_text("A new branch begins after #1")
    toast.get_by_role("button", name="Undo").click()
    expect(said(page, "medlar")).to_be_visible()


def test_every_branch_is_listed_and_can_be_opened(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    expect(said(page, "medlar")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Branches").click()
    lines = page.get_by_role("dialog").get_by_role("listitem")
    expect(lines).to_have_count(2)
    expect(lines.filter(has_text="the medlar road south").get_by_text("open", exact=True)).to_be_visible()
    lines.filter(has_text="then pack wool").get_by_role("button", name="Open").click()
    expect(said(page, "then pack wool")).to_be_visible()
    expect(said(page, "medlar")).to_have_count(0)


def test_the_title_counts_messages_and_branches_not_entries(page: Page, conversation: str, server: str) -> None:
    address = f"{server}/api/v1/conversations/{conversation}"
    entry: str = httpx.get(f"{address}/messages", params={"limit": 1}).json()["items"][0]["id"]
    httpx.put(f"{address}/messages/{entry}/pin").raise_for_status()
    assert httpx.get(address).json()["entry_count"] > 5
    page.goto(f"/#/c/{conversation}")
    expect(page.locator(".top .named")).to_contain_text("3 messages · 2 branches")
    expect(page.locator(".conversation", has_text="ways").get_by_title("3 messages")).to_be_visible()


def test_a_branch_shows_neither_summaries_nor_recall_of_another(page: Page, server: str) -> None:
    with httpx.Client(base_url=f"{server}/api/v1", timeout=60) as api:
        id: str = api.post("/demo").raise_for_status().json()["id"]
        branches = api.get(f"/conversations/{id}/branches").raise_for_status().json()["items"]
        former = next(one["id"] for one in branches if one["is_active"])
        forked = max(branches, key=lambda one: one["fork_seq"])
        other = next(one for one in branches if one["id"] != forked["id"])
        compactions = api.get(f"/conversations/{id}/compactions").raise_for_status().json()["items"]
        assert [one for one in compactions if one["last_seq"] > forked["fork_seq"]]
        recalled = page.get_by_label("Recalled for the last question").get_by_role("listitem")
        summarized = page.locator('.map rect[data-kind="summary"]')
        waiting = page.get_by_label("Compactions").get_by_role("listitem").filter(has_text="not in use on this branch")

        api.put(f"/conversations/{id}/branches/{other['id']}/active").raise_for_status()
        page.goto(f"/#/c/{id}")
        expect(recalled.first).to_be_visible()
        expect(summarized.first).to_be_visible()
        expect(waiting).to_have_count(0)

        api.put(f"/conversations/{id}/branches/{forked['id']}/active").raise_for_status()
        with page.expect_response(lambda answer: "limit=1&" in answer.url and "before=" in answer.url):
            page.reload()  # which turn is the last one of this branch is asked for after a while
        page.wait_for_load_state("networkidle")
        expect(waiting).to_have_count(len(compactions))
        expect(page.locator(".band")).to_have_count(0)
        expect(summarized).to_have_count(0)
        expect(page.locator(".map rect[data-kind]")).to_have_count(forked["fork_seq"] + 2)
        expect(recalled).to_have_count(0)
        api.put(f"/conversations/{id}/branches/{former}/active").raise_for_status()

"""The right column: what is to do, what is remembered, what was saved, and how this conversation is set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.forkserver import ForkServer
from tests.page.conftest import Served, serving, watched

TODOS = [{"content": "book the train", "status": "completed"}, {"content": "pack the blue bag", "status": "pending"}]


@pytest.fixture(scope="module")
def planner(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model first makes a plan, and then says the same again and again."""
    folder = tmp_path_factory.mktemp("planner")
    script = folder / "script.json"
    plan = {"calls": [{"name": "todo_write", "args": {"todos": TODOS}}]}
    script.write_text(json.dumps([plan, *["I have a plan."] * 40]))
    with serving(forkserver, folder, EVERTHREAD_MODEL=f"scripted:{script}") as served:
        served.begin()
        _talk(served.address)
        yield served


def _talk(address: str) -> None:
    """A turn with a plan, a long talk that is summarised, and a turn after that."""
    api = f"{address}/api/v1"
    asked = {"message": "plan the journey", "conversation_id": "plan"}
    httpx.post(f"{api}/chat", json=asked, timeout=60).raise_for_status()
    httpx.put(f"{api}/conversations/plan/config/compaction", json={"max_message_history": 40}).raise_for_status()
    said = [{"role": ("user", "assistant")[n % 2], "content": f"stop {n}: " + "rice and tea. " * 40} for n in range(30)]
    httpx.post(f"{api}/conversations/plan/messages", json={"messages": said}).raise_for_status()
    assert httpx.post(f"{api}/conversations/plan/compact", json={}, timeout=60).json()["compacted"]
    httpx.post(f"{api}/chat", json=asked | {"message": "and now?"}, timeout=60).raise_for_status()
    memory = {"text": "travels with a blue bag", "conversation_id": "plan", "seq": 1}
    httpx.post(f"{api}/memories", json=memory).raise_for_status()


@pytest.fixture
def page(browser: Browser, planner: Served) -> Iterator[Page]:
    with watched(browser, planner.address) as opened:
        opened.goto("/#/c/plan")
        yield opened


def card(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def test_the_next_request_counts_what_the_agent_adds_and_says_what_comes_on_top(page: Page, planner: Served) -> None:
    address = f"{planner.address}/api/v1/conversations/plan/context"
    told = httpx.get(address, params={"as": "turn"}).json()
    assert told["tokens"] > httpx.get(address).json()["tokens"]
    context = card(page, "Context for the next request")
    expect(context.locator(".figure")).to_contain_text(f"{told['tokens']:,} of")
    expect(context).to_contain_text("Your next question is added to this.")


def test_what_is_to_do_stands_with_its_state(page: Page) -> None:
    todos = card(page, "To do").locator("li")
    expect(todos).to_have_count(2)
    expect(todos.first.get_by_label("done")).to_be_visible()
    expect(todos.last).to_contain_text("pack the blue bag")


COSTS_MORE = """() => {
  const label = document.querySelector(".plot")?.getAttribute("aria-label") ?? "";
  const figures = (label.match(/[\\d.]+K?/g) ?? []).map((one) => parseFloat(one) * (one.endsWith("K") ? 1000 : 1));
  return figures.length === 2 && figures[1] > figures[0];
}"""


def test_the_plot_tells_what_the_full_history_would_have_cost(page: Page) -> None:
    plot = card(page, "Tokens per turn").get_by_role("img")
    expect(plot).to_be_visible()
    page.wait_for_function(COSTS_MORE)  # the line is drawn anew when the figures of all messages have come


def test_both_marks_stand_in_the_gauge(page: Page) -> None:
    expect(card(page, "Context for the next request").locator(".gauge .mark")).to_have_count(2)
    expect(card(page, "Context for the next request")).to_contain_text("compaction at")
    expect(card(page, "Context for the next request").get_by_role("meter")).to_have_count(2)


def test_a_memory_leads_to_its_message_and_can_be_forgotten_and_brought_back(page: Page) -> None:
    memory = card(page, "Memories").locator("li", has_text="blue bag")
    memory.get_by_role("button", name="source #1").click()
    expect(page.get_by_role("log").get_by_text("plan the journey")).to_be_visible()
    memory.get_by_role("button", name="Forget").click()
    expect(memory).to_have_count(0)
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(memory).to_have_count(1)


def test_only_what_was_changed_is_set(page: Page, planner: Served) -> None:
    settings = card(page, "Conversation settings")
    settings.locator("summary").click()
    settings.get_by_label("Recent messages kept verbatim").fill("12")
    settings.get_by_label("Compact automatically").uncheck()
    with page.expect_request(lambda request: request.method == "PUT") as sent:
        settings.get_by_role("button", name="Save").click()
    assert json.loads(sent.value.post_data or "") == {"keep_recent": 12, "enabled": False}
    expect(page.get_by_text("Saved.")).to_be_visible()
    policy = httpx.get(f"{planner.address}/api/v1/conversations/plan/config/compaction").json()
    assert (policy["keep_recent"], policy["enabled"]) == (12, False)


def test_the_choice_of_model_and_recall_goes_with_each_question(page: Page) -> None:
    settings = card(page, "Conversation settings")
    settings.locator("summary").click()
    page.get_by_role("button", name="Model:").click()
    page.get_by_role("menuitem", name="Another model").click()
    page.get_by_label("Model name").fill("scripted:echo")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    settings.get_by_label("Recall relevant earlier messages").uncheck()
    page.reload()
    expect(page.get_by_role("button", name="Model: scripted:echo")).to_be_visible()
    page.get_by_label("Write a message").fill("say this back")
    with page.expect_request("**/chat/stream") as sent:
        page.get_by_label("Write a message").press("Enter")
    body = json.loads(sent.value.post_data or "")
    assert (body["model"], body["recall"]) == ("scripted:echo", False)
    expect(page.locator('article[data-role="assistant"]', has_text="say this back")).to_be_visible()


def test_a_deleted_message_stays_in_the_history_and_comes_back(page: Page) -> None:
    page.goto("/#/c/plan?at=1")
    message = page.locator('article[data-role="user"]', has_text="plan the journey")
    message.hover()
    message.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(message).to_have_attribute("data-deleted", "true")
    message.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="Restore").click()
    expect(message).to_have_attribute("data-deleted", "false")

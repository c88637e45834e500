"""What only this page can show: a conversation that is written while one watches, and why something was recalled."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, expect

DEMO = "/#/c/demo-journey"


def test_one_watches_the_window_fill_and_fold(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="Watch it happen", exact=True).click()
    bar = page.get_by_role("region", name="Watch it happen", exact=True)
    expect(bar).to_contain_text("the model's window fills up")
    expect(page.locator("article.message").first).to_be_visible()
    expect(bar).to_contain_text("are now summarized for the model")
    expect(page.locator("section.band").first).to_be_in_viewport()
    expect(page.get_by_text("automatic").first).to_be_visible()
    bar.get_by_role("button", name="Close").click()
    expect(bar).to_have_count(0)
    expect(page.locator("article.message").first).to_be_visible()  # what was written stays


def test_an_answer_shows_from_which_messages_it_was_recalled_and_why(page: Page) -> None:
    page.goto(DEMO)
    card = page.get_by_role("region", name="Recalled for the last question")
    expect(card.locator("li").first).to_be_visible()
    card.get_by_role("button", name="Why these?").click()
    expect(card.get_by_text("same words").first).to_be_visible()
    answer = page.locator("article.message").last
    expect(answer.locator(".recall-line")).to_contain_text(re.compile(r"\d+ earlier messages recalled"))
    sources = answer.get_by_role("list", name="Recalled for the last question")
    seq = (sources.get_by_role("button").first.inner_text()).removeprefix("#")
    sources.get_by_role("button").first.click()
    expect(page.locator(f'article.message[data-target="true"][data-seq="{seq}"]')).to_be_in_viewport()


def test_a_request_is_shown_as_it_reads_with_the_way_to_each_original(page: Page) -> None:
    page.goto(f"{DEMO}?view=model")
    call = page.locator(".block", has=page.locator(".call")).first
    expect(call.locator(".call b")).to_have_text("forecast")
    expect(call.locator("pre")).to_have_count(0)  # no JSON where words do
    link = page.locator('.block[data-role="user"][data-kind="window"]').first.get_by_role("button")
    seq = link.inner_text().removeprefix("#")
    link.click()
    expect(page.locator(f'article.message[data-target="true"][data-seq="{seq}"]')).to_be_in_viewport()


def test_going_back_in_time_says_what_came_in_since_the_turn_before(page: Page) -> None:
    page.goto(f"{DEMO}?view=model")
    slider = page.get_by_role("slider", name="Turn")
    expect(page.locator(".slider")).to_contain_text("the next request")
    slider.press("Home")
    expect(page.locator(".slider")).to_contain_text("1 of 3")
    slider.press("ArrowRight")
    expect(page.locator(".slider")).to_contain_text("2 of 3")
    expect(page.locator(".slider .changes")).to_contain_text("+ 2 messages")  # the answer, and the next question
    recalled = page.locator(".slider .changes").get_by_role("button")
    expect(recalled.first).to_be_visible()


def test_a_conversation_is_shared_by_a_link_that_can_be_revoked(page: Page, server: str) -> None:
    made = httpx.post(f"{server}/api/v1/conversations", json={"title": "To be read"}).json()["id"]
    said = [{"role": "user", "content": "Shall we go by train?"}]
    httpx.post(f"{server}/api/v1/conversations/{made}/messages", json={"messages": said}).raise_for_status()
    page.goto(f"/#/c/{made}")
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Share").click()
    dialog = page.get_by_role("dialog", name="Share")
    dialog.get_by_role("button", name="Create a link").click()
    link = dialog.get_by_label("Link").input_value()
    assert "Shall we go by train?" in httpx.get(link).text
    dialog.get_by_role("button", name="Revoke the link").click()
    expect(dialog.get_by_role("button", name="Create a link")).to_be_visible()
    assert httpx.get(link).status_code == httpx.codes.NOT_FOUND


def test_one_conversation_is_verified_where_it_stands(page: Page) -> None:
    page.goto(DEMO)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Verify").click()
    expect(page.get_by_role("main").get_by_text("chain intact")).to_be_visible()


def test_what_a_compaction_would_do_is_shown_and_nothing_is_done(page: Page, server: str) -> None:
    made = httpx.post(f"{server}/api/v1/conversations", json={"title": "Long"}).json()["id"]
    said = [
        {"role": "user", "content": f"What is said about stop {number} of the journey, and why? " * 8}
        for number in range(60)
    ]
    httpx.post(f"{server}/api/v1/conversations/{made}/messages", json={"messages": said}).raise_for_status()
    page.goto(f"/#/c/{made}")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("region", name="Context for the next request").get_by_role("status")).to_contain_text(
        "would be summarized"
    )
    assert httpx.get(f"{server}/api/v1/conversations/{made}/compactions").json()["items"] == []


def test_a_conversation_that_is_not_there_says_so_once(page: Page) -> None:
    page.goto("/#/c/no-such-conversation")
    expect(page.get_by_role("heading", name="There is no such conversation here.")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("main").get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("button", name="Watch it happen", exact=True)).to_be_visible()

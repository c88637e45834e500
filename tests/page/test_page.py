"""The page in a real browser, over the real service: the history is whole, and what compaction did can be seen."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.page.conftest import PATIENCE_SECONDS
from tests.page.payloads import XSS

DEMO = "/#/c/demo-journey"


def open_demo(page: Page, more: str = "") -> None:
    page.goto(f"{DEMO}{more}")
    expect(page.get_by_role("log")).to_be_visible()
    expect(page.locator("article.message").first).to_be_visible()


def to_first(page: Page) -> None:
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="To the first message").click()


def test_a_conversation_opens_at_its_newest_message_and_goes_back_to_its_first(page: Page) -> None:
    open_demo(page)
    expect(page.get_by_text("412 CNY for two rooms, with a breakfast without nuts.")).to_be_in_viewport()
    to_first(page)
    expect(page.get_by_text("a grandmother with a peanut allergy")).to_be_visible()


def test_what_left_the_window_is_marked_and_still_there(page: Page) -> None:
    open_demo(page, "?at=1")
    outside = page.locator('article.message[data-outside="true"]')
    expect(outside.first).to_be_visible()
    expect(page.get_by_label("No longer in the model's window").first).to_be_visible()


def test_thinking_and_tool_calls_are_folded_and_open(page: Page) -> None:
    open_demo(page, "?at=1")
    first = page.locator("article.message", has=page.locator("summary b", has_text="note")).first
    expect(first.locator("pre")).to_have_count(0)
    first.locator("summary", has_text="note").first.click()
    expect(first.get_by_text("peanut allergy: grandmother").first).to_be_visible()


def test_a_band_opens_to_summary_and_originals_and_can_be_undone(page: Page) -> None:
    open_demo(page, "?at=354")
    bands = page.locator("section.band")
    band = bands.last
    band.get_by_role("button").first.click()
    expect(band.get_by_role("heading", name="Summary")).to_be_visible()
    expect(band.get_by_role("heading", name="Originals")).to_be_visible()
    expect(band.locator("p", has_text="#").first).to_be_visible()
    id = band.get_attribute("data-compaction")
    band.get_by_role("button", name="Undo this compaction").click()
    expect(page.locator(f'section.band[data-compaction="{id}"]')).to_have_count(0)


def test_the_list_of_compactions_leads_to_the_band_and_opens_it(page: Page) -> None:
    open_demo(page)
    span = page.get_by_role("region", name="Compactions").get_by_role("button").last
    first, last = span.inner_text().removeprefix("#").split("–")
    for _ in range(2):  # also when one is there already
        span.click()
        band = page.get_by_role("region", name=f"Messages {first}–{last} are summarized for the model")
        expect(band.get_by_role("heading", name="Summary")).to_be_in_viewport()
        expect(band.get_by_role("heading", name="Originals")).to_be_visible()
        band.get_by_role("button", name="Close").click()
        expect(band.get_by_role("heading", name="Summary")).to_have_count(0)


def test_hits_stand_under_their_conversation_and_a_call_by_its_name_and_values(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Search all messages").fill("Kunming")
    found = page.get_by_role("region", name="Search results")
    expect(found.get_by_role("heading", name="A slow journey by train")).to_have_count(1)
    expect(found.locator(".hit", has_text="guide Kunming").first).to_be_visible()
    expect(found).not_to_contain_text('{"')


def test_a_conversation_begins_when_its_first_message_was_said(page: Page) -> None:
    open_demo(page)
    expect(page.locator("header.top")).to_contain_text(re.compile(r"since 1 Sep"))


def test_a_first_visit_in_chinese_speaks_chinese_also_on_a_phone(browser: Browser, server: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN", base_url=server)
    page = context.new_page()
    page.route("**/about", lambda route: route.fulfill(json=route.fetch().json() | {"is_toy_model": True}))
    page.goto("/")
    tries = page.locator(".tries button")
    expect(tries).to_have_count(3)
    for text in tries.all_inner_texts():
        assert re.search("[一-鿿]", text)
    page.goto(DEMO)
    expect(page.get_by_role("tab", name="模型所见").locator("span:visible")).to_have_text("模型所见")
    context.close()


def test_a_hit_of_the_search_jumps_to_its_message(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Search all messages").fill("QX-4417-PLUM")
    page.locator("search .hit").first.click()
    expect(page.get_by_role("log").get_by_text("QX-4417-PLUM").first).to_be_visible()


def test_the_model_view_is_what_the_service_would_send(page: Page, server: str) -> None:
    open_demo(page)
    page.get_by_role("tab", name="What the model sees").click()
    sent = httpx.get(
        f"{server}/api/v1/conversations/demo-journey/context", params={"as": "turn", "messages": True}
    ).json()
    expect(page.locator(".block")).to_have_count(len(sent["messages"]))
    assert 0.95 * sent["tokens"] < sum(sent["message_tokens"]) <= sent["tokens"]  # parts are counted one by one
    expect(page.locator(".block").last).to_contain_text(f"{sent['message_tokens'][-1]:,} tokens")
    shown = page.locator(".block .said").last.text_content()
    assert shown is not None
    assert sent["messages"][-1]["content"][:40] in shown


def test_versions_of_a_message_can_be_switched(page: Page) -> None:
    open_demo(page, "?at=44")
    earlier = page.locator("article.message", has_text="Can one cycle around the lake?")
    later = page.locator("article.message", has_text="Can one walk along the lake instead?")
    expect(earlier.or_(later)).to_be_visible()
    if later.is_visible():  # as a run of this test that was cut short left it
        later.get_by_label("Earlier version").click()
    expect(earlier.get_by_text("1/2")).to_be_visible()
    earlier.get_by_label("Later version").click()
    expect(later).to_be_visible()
    later.get_by_label("Earlier version").click()
    expect(earlier).to_be_visible()


def test_the_page_speaks_chinese_when_asked(page: Page) -> None:
    page.goto("/")
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", name="永不结束、永不遗忘的对话")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="新对话").first).to_be_visible()


def test_a_phone_shows_one_column_at_a_time(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    open_demo(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("tab", name="Context").click()
    expect(page.get_by_role("meter").first).to_be_visible()
    expect(page.get_by_role("log")).to_be_hidden()
    page.get_by_role("tab", name="Conversations").click()
    expect(page.get_by_label("Search all messages")).to_be_visible()
    expect(page.get_by_label("Write a message")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("place", ["/", DEMO, f"{DEMO}?view=model"])
def test_nobody_is_shut_out(page: Page, axe: str, place: str, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(place)
    page.wait_for_load_state("networkidle")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


XSS_AT_ONCE = 3
"""How many stand in one conversation: each has a title of its own, and few enough messages are drawn at once."""


def hostile(text: str, call: str) -> list[dict[str, Any]]:
    """A text wherever a message has one."""
    function = {"name": text, "arguments": text}
    return [
        {"role": "user", "name": text[:60], "content": text},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": text,
            "tool_calls": [{"id": call, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call, "name": text, "content": text},
    ]


def test_nothing_that_was_said_is_run(page: Page, server: str) -> None:
    """In messages, thinking, calls, their results and titles; `page` fails when another host is asked."""
    with httpx.Client(base_url=f"{server}/api/v1") as api:
        for place, text in enumerate(XSS):
            api.post("/conversations", json={"id": f"xss-{place}", "title": text}).raise_for_status()
            of = f"xss-{place - place % XSS_AT_ONCE}"
            api.post(f"/conversations/{of}/messages", json={"messages": hostile(text, f"c{place}")}).raise_for_status()
    for place in range(0, len(XSS), XSS_AT_ONCE):
        page.goto(f"/#/c/xss-{place}")
        expect(page.locator("article.message")).to_have_count(2 * len(XSS[place : place + XSS_AT_ONCE]))
        page.locator("article.message summary").evaluate_all("all => all.forEach(one => one.click())")
        expect(page.locator("article.message details:not([open])")).to_have_count(0)
        assert page.locator("[href^='javascript' i], [href^='vbscript' i], [href^='data' i]").count() == 0
        page.locator(".message a").evaluate_all("links => links.forEach(link => link.click())")
    page.get_by_label("Search all messages").fill("hacked")
    expect(page.locator("search .conversation").first).to_be_visible()
    page.goto("/#/c/xss-0?view=model")
    expect(page.locator(".block").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main iframe, main object, main embed, main style, main base").count() == 0


def test_nothing_is_run_that_a_file_is_called(page: Page, server: str) -> None:
    """The service takes no such names; an agent's tools might write some all the same."""
    httpx.post(f"{server}/api/v1/conversations", json={"id": "named"}).raise_for_status()
    moment = "2026-01-01T00:00:00Z"
    files = [{"path": f"{number}/{name}", "size_bytes": 1, "modified_at": moment} for number, name in enumerate(XSS)]
    page.route("**/files", lambda route: route.fulfill(json={"items": files, "uploads": []}))
    page.goto("/#/c/named")
    expect(page.get_by_role("region", name="Files").locator("li")).to_have_count(len(XSS))
    assert page.evaluate("window.hacked") is None
    assert page.locator("aside script, aside iframe, aside img, aside svg:not(.icon)").count() == 0


def test_ten_thousand_messages_are_opened_at_the_end_and_drawn_a_few_at_a_time(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "long"}).raise_for_status()
    for start in range(0, 10_000, 1000):
        said = [
            {"role": "user" if n % 2 else "assistant", "content": f"message {n}"} for n in range(start, start + 1000)
        ]
        httpx.post(f"{api}/long/messages", json={"messages": said}, timeout=60).raise_for_status()
    page.goto("/#/c/long")
    expect(page.get_by_text("message 9999", exact=True)).to_be_visible()
    assert page.locator("article.message").count() < 100
    for _ in range(12):  # further than the pages that are held at once
        seen = page.locator("article.message").first.get_attribute("data-seq")
        page.wait_for_function(  # again and again: what was at the top stays in sight when older ones are put above it
            """seq => {
                document.querySelector("[role=log]").scrollTop = 0;
                return document.querySelector(`article.message[data-seq="${seq}"]`) === null;
            }""",
            arg=seen,
            timeout=PATIENCE_SECONDS * 1000,
        )
    assert page.locator("article.message").count() < 100
    to_first(page)
    expect(page.get_by_role("log").get_by_text("message 0", exact=True)).to_be_visible()
    assert page.locator("article.message").count() < 100


# --- talking ---


def ask(page: Page, text: str) -> None:
    page.get_by_label("Write a message").fill(text)
    page.get_by_label("Write a message").press("Enter")


def test_a_first_visit_asks_and_is_answered(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Conversations that never end")).to_be_visible()
    ask(page, "the moon is made of stone")
    expect(page.locator('article[data-role="assistant"]', has_text="the moon is made of stone")).to_be_visible()
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(page.locator("article.message")).to_have_count(2)


def test_a_draft_survives_a_reload(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Write a message").fill("not yet sent")
    page.reload()
    expect(page.get_by_label("Write a message")).to_have_value("not yet sent")


def test_an_answer_given_again_stands_beside_the_first(page: Page) -> None:
    page.goto("/")
    ask(page, "say it twice")
    answer = page.locator('article[data-role="assistant"]', has_text="say it twice")
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(answer).to_have_count(1)
    answer.get_by_role("button", name="Regenerate").click()
    expect(answer.get_by_text("2/2")).to_be_visible()


def test_an_answer_stays_when_the_history_was_read_before_it_came(page: Page) -> None:
    slow: list[bool] = []

    def hold_back(route: Route) -> None:
        read = route.fetch()
        if not slow:
            slow.append(True)
            time.sleep(1.5)  # by then the turn is over
        route.fulfill(response=read)

    page.route("**/messages?*", hold_back)
    page.goto("/")
    ask(page, "read too soon")
    expect(page.locator("article.message")).to_have_count(2)
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(page.locator('article[data-role="assistant"]', has_text="read too soon")).to_have_count(1)


def test_an_edited_question_is_answered_on_a_branch_of_its_own(page: Page) -> None:
    page.goto("/")
    ask(page, "first wording")
    expect(page.locator('article[data-role="assistant"]', has_text="first wording")).to_be_visible()
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    page.locator('article[data-role="user"]').get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit").fill("second wording")
    page.locator("article").get_by_role("button", name="Save and answer").click()
    expect(page.locator('article[data-seq][data-role="assistant"]', has_text="second wording")).to_be_visible()
    expect(page.locator('article[data-role="user"]').get_by_text("2/2")).to_be_visible()


def test_edit_in_the_menu_gives_the_keyboard_to_the_text_which_keys_save_and_leave(page: Page) -> None:
    page.goto("/")
    ask(page, "third wording")
    expect(page.locator('article[data-seq][data-role="assistant"]', has_text="third wording")).to_be_visible()
    editing = page.get_by_role("textbox", name="Edit")

    def edit() -> None:
        page.locator('article[data-role="user"]').get_by_role("button", name="Message actions").click()
        page.get_by_role("menuitem", name="Edit").click()
        expect(editing).to_be_focused()

    edit()
    page.keyboard.type(", dropped")
    page.keyboard.press("Escape")
    expect(editing).to_have_count(0)
    edit()
    page.keyboard.type(", kept")
    page.keyboard.press("Control+Enter")
    expect(editing).to_have_count(0)
    expect(page.locator('article[data-seq][data-role="assistant"]')).to_have_text(re.compile("third wording, kept"))


def test_what_a_turn_sent_can_be_looked_into(page: Page, server: str) -> None:
    page.goto("/")
    ask(page, "look into this")
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(page.locator('article[data-role="assistant"]', has_text="look into this")).to_be_visible()
    page.get_by_role("tab", name="What the model sees").click()
    page.get_by_role("slider", name="Turn").press("ArrowLeft")
    id = page.url.split("/c/")[1].split("?")[0]
    turns = httpx.get(f"{server}/api/v1/conversations/{id}/turns").json()["items"]
    seen = httpx.get(f"{server}/api/v1/conversations/{id}/turns/{turns[0]['id']}/context").json()["requests"][-1]
    assert seen["is_same"]
    expect(page.locator(".block")).to_have_count(len(seen["messages"]))


def test_a_skill_is_offered_when_it_is_mentioned(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Write a message").press_sequentially("@data")
    skill = page.get_by_role("option", name="@data-report")
    expect(skill).to_contain_text("Turn a table")
    skill.click()
    expect(page.get_by_label("Write a message")).to_have_value("@data-report ")
    page.get_by_label("Write a message").fill("")
    page.get_by_label("Write a message").press_sequentially("/com")
    expect(page.get_by_role("option", name="/compact")).to_contain_text("summarize older messages")


def test_exports_come_as_files(page: Page) -> None:
    open_demo(page)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Export").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "QX-4417-PLUM" in text
    assert "奶奶坐长途汽车会晕车" in text
    assert "Calls note:" in text


def test_an_export_leaves_out_what_is_not_ticked(page: Page) -> None:
    open_demo(page)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Export").click()
    page.get_by_label("Include tool calls").uncheck()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Export").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "奶奶坐长途汽车会晕车" in text
    assert "Calls note:" not in text


def test_an_archive_comes_back_in(page: Page, server: str, tmp_path: Path) -> None:
    archive = tmp_path / "demo.jsonl.zst"
    exported = httpx.get(f"{server}/api/v1/conversations/demo-journey/export", params={"format": "archive"}, timeout=60)
    archive.write_bytes(exported.raise_for_status().content)
    page.goto("/")
    page.locator('input[type="file"]').first.set_input_files(archive)
    expect(page).to_have_url(f"{server}/#/c/demo-journey")


def test_pictures_of_the_main_screens_are_made(page: Page, tmp_path: Path) -> None:
    """Into the folder that EVERTHREAD_PICTURES names: those of the README were made so."""
    folder = Path(os.environ.get("EVERTHREAD_PICTURES", tmp_path))
    open_demo(page, "?at=225")
    page.locator("section.band").first.get_by_role("button").first.click()
    expect(page.get_by_role("heading", name="Originals")).to_be_visible()
    page.screenshot(path=folder / "history.png")
    page.goto(f"{DEMO}?view=model")
    expect(page.locator(".block").first).to_be_visible()
    page.screenshot(path=folder / "model-view.png")
    assert (folder / "history.png").stat().st_size > 10_000

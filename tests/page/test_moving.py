"""Getting about: jumps that arrive, the map, keys, long texts and long lists."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

DEMO = "/#/c/demo-journey"
BIG_CHARACTERS = 5_000_000


def open_demo(page: Page, more: str = "") -> None:
    page.goto(f"{DEMO}{more}")
    expect(page.locator("article.message").first).to_be_visible()


def scroll_up(page: Page) -> None:
    page.get_by_role("log").evaluate("log => { log.scrollTop -= 3000 }")


def test_to_the_newest_leads_there_every_time(page: Page) -> None:
    open_demo(page)
    newest = page.get_by_text("412 CNY for two rooms, with a breakfast without nuts.")
    expect(newest).to_be_in_viewport()
    for _ in range(3):
        scroll_up(page)
        expect(newest).not_to_be_in_viewport()
        page.get_by_role("button", name="To the newest").click()
        expect(newest).to_be_in_viewport()
    expect(page.get_by_role("button", name="To the newest")).to_have_count(0)


@pytest.mark.parametrize("seq", [2, 100, 200, 300])
def test_a_message_in_the_address_is_in_sight(page: Page, seq: int) -> None:
    open_demo(page, f"?at={seq}")
    expect(page.locator('article.message[data-target="true"]')).to_be_in_viewport()


def test_j_and_k_go_from_message_to_message_in_sight(page: Page) -> None:
    open_demo(page, "?at=100")
    expect(page.locator('article.message[data-target="true"]')).to_be_in_viewport()
    page.get_by_role("log").focus()
    current = page.locator('article.message[data-current="true"]')
    seen = []
    for key in "jjjjjjjjkk":
        page.keyboard.press(key)
        expect(current).to_have_count(1)
        expect(current).to_be_in_viewport()
        seen.append(int(current.get_attribute("data-seq") or 0))
    assert seen[:8] == sorted(set(seen[:8]))
    assert seen[8:] == [seen[6], seen[5]]


def test_arrow_keys_choose_in_the_palette(page: Page) -> None:
    open_demo(page)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to or run").fill("what the model")
    expect(page.get_by_role("option").first).to_have_attribute("aria-selected", "true")
    page.get_by_role("combobox", name="Go to or run").fill("")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", name="What the model sees")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator(".block").first).to_be_visible()


def test_the_map_shows_how_the_model_sees_each_stretch_and_leads_there(page: Page) -> None:
    open_demo(page)
    bars = page.locator(".map rect[data-kind]")
    expect(page.locator('.map rect[data-kind="summary"]').first).to_be_visible()
    expect(page.locator('.map rect[data-kind="window"]').first).to_be_visible()
    assert bars.count() < 300
    box = page.locator(".map").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 20, box["y"] + 14)
    expect(page.locator('article.message[data-seq="1"]')).to_be_in_viewport()
    page.get_by_role("slider", name="Map of the conversation").press("End")
    expect(page.get_by_text("412 CNY for two rooms, with a breakfast without nuts.")).to_be_in_viewport()


def test_a_message_of_five_megabytes_does_not_hold_up_the_page(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "big"}).raise_for_status()
    big = "**all work** and no play\n" * (BIG_CHARACTERS // 25)
    said = [{"role": "user", "content": big}, {"role": "assistant", "content": "read it"}]
    httpx.post(f"{api}/big/messages", json={"messages": said}, timeout=60).raise_for_status()
    page.goto("/#/c/big")
    expect(page.get_by_text("read it")).to_be_visible()
    long = page.locator("article.message", has_text="all work").first
    assert len(long.inner_text()) < 10_000
    long.get_by_role("button", name="Show all").click()
    expect(long.get_by_role("button", name="Show less")).to_have_count(1)
    page.get_by_label("Write a message").fill("still here")
    expect(page.get_by_label("Write a message")).to_have_value("still here")


def test_two_thousand_conversations_are_loaded_as_one_scrolls(page: Page, server: str) -> None:
    with httpx.Client(base_url=f"{server}/api/v1", timeout=60) as api:
        for number in range(450):
            api.post("/conversations", json={"id": f"many-{number}", "title": f"talk {number}"}).raise_for_status()
    page.goto("/")
    line = page.get_by_role("navigation", name="Conversations").get_by_role("button")
    expect(line.first).to_be_visible()
    assert line.count() < 100
    for number in (300, 0):
        for _ in range(60):
            if (
                page.get_by_role("button", name=f"talk {number} ")
                .or_(page.get_by_title(f"talk {number}", exact=True))
                .count()
            ):
                break
            page.get_by_role("navigation", name="Conversations").evaluate("nav => { nav.scrollTop += 1500 }")
            page.wait_for_timeout(60)
        expect(page.get_by_title(f"talk {number}", exact=True)).to_have_count(1)
    assert line.count() < 100
    with httpx.Client(base_url=f"{server}/api/v1", timeout=60) as api:
        for number in range(450):
            api.delete(f"/conversations/many-{number}").raise_for_status()


def test_conversations_stand_by_day_and_pinned_ones_above(page: Page, server: str) -> None:
    httpx.post(f"{server}/api/v1/conversations", json={"id": "to-pin", "title": "keep this near"}).raise_for_status()
    page.goto("/#/c/to-pin")
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Pin to top").click()
    expect(page.get_by_role("heading", name="Pinned")).to_be_visible()
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("button").first).to_contain_text(
        "keep this near"
    )
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Unpin from top").click()
    expect(page.get_by_role("heading", name="Pinned")).to_have_count(0)


def test_a_hit_says_where_who_and_when(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Search all messages").fill("QX-4417-PLUM")
    expect(page.locator("search").get_by_role("heading", name="A slow journey by train")).to_be_visible()
    hit = page.locator("search .hit").first
    expect(hit).to_contain_text(re.compile(r"(You|Assistant) · .*\d:\d\d.* · #\d+"))
    expect(page.locator("search .hit", has_text="1 Sept").first).to_be_visible()
    page.get_by_label("By meaning").check()
    expect(page.get_by_role("status").filter(has_text="Searched by words only")).to_be_visible()


def test_a_search_can_be_kept_to_this_conversation(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "elsewhere", "title": "elsewhere"}).raise_for_status()
    said = [{"role": "user", "content": "peanut butter"}]
    httpx.post(f"{api}/elsewhere/messages", json={"messages": said}).raise_for_status()
    page.goto("/#/c/elsewhere")
    page.get_by_label("Search all messages").fill("peanut")
    expect(page.locator("search .hit").nth(1)).to_be_visible()
    page.get_by_label("Only this conversation").check()
    expect(page.locator("search .hit")).to_have_count(1)
    expect(page.locator("search").get_by_role("heading", name="elsewhere")).to_be_visible()


def test_code_is_coloured_and_a_picture_that_was_handed_in_is_shown(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "code"}).raise_for_status()
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
        "a5f645400000000049454e44ae426082"
    )
    made = httpx.post(f"{api}/code/files", files={"file": ("dot.png", pixel, "image/png")}).raise_for_status().json()
    note = f"[uploaded: {made['path']}, image/png, {len(pixel)} bytes]"
    said = [
        {"role": "user", "content": f"{note}\nwhat is this?"},
        {"role": "assistant", "content": "```python\ndef answer() -> int:\n    return 42\n```"},
    ]
    httpx.post(f"{api}/code/messages", json={"messages": said}).raise_for_status()
    page.goto("/#/c/code")
    expect(page.locator(".code .hljs-keyword", has_text="def")).to_be_visible()
    picture = page.get_by_role("img", name="dot.png")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 1)  # drawn, and not only named
    expect(page.locator('article[data-role="user"] .said')).to_have_text("what is this?")
    question = page.locator('article[data-role="user"]')
    question.hover()
    question.get_by_role("button", name="Edit", exact=True).click()
    expect(question.get_by_role("textbox", name="Edit")).to_have_value("what is this?")  # its picture stays


def test_the_gauge_is_for_the_model_that_answers(page: Page, server: str) -> None:
    told = httpx.get(f"{server}/api/v1/conversations/demo-journey/context", params={"as": "turn"}).json()
    open_demo(page)
    gauge = page.get_by_role("region", name="Context for the next request")
    expect(gauge).to_contain_text(f"{told['tokens']:,} of {told['limit']:,} tokens")
    expect(gauge).to_contain_text("scripted:echo")


def test_a_phone_has_a_new_conversation_and_one_button_of_actions_at_hand(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    open_demo(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    message = page.locator("article.message").last
    expect(message.locator(".tools button:visible")).to_have_count(1)
    page.get_by_role("tab", name="Context").click()
    plot = page.locator(".plot canvas")
    expect(plot).to_be_visible()
    assert (plot.bounding_box() or {"width": 0})["width"] > 200
    page.get_by_role("button", name="New conversation").first.click()
    expect(page.get_by_role("heading", name="Conversations that never end")).to_be_visible()


def test_the_keyboard_skips_to_the_conversation(page: Page) -> None:
    open_demo(page)
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the conversation")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()

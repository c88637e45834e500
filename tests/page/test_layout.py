"""Room for what is read: on narrow screens nothing is cut that is needed, and what Enter does is marked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page.conftest import watched

CUT = "element => element.scrollWidth > element.clientWidth"


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """Without motion: what moves is at another place each time it is measured."""
    with watched(browser, server) as opened:
        opened.emulate_media(reduced_motion="reduce")
        yield opened


def expect_drawn(place: Locator) -> None:
    """It stands there, in the font that it keeps."""
    expect(place.first).to_be_visible()
    place.page.evaluate("document.fonts.ready.then(() => null)")


def is_cut(place: Locator) -> bool:
    found: bool = place.evaluate(CUT)
    return found


def lines_of(place: Locator) -> int:
    """How many lines a text takes."""
    count: int = place.evaluate(
        "element => { const range = document.createRange(); range.selectNodeContents(element);"
        " return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size; }"
    )
    return count


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [901, 1024, 1100])
def test_title_name_and_times_have_room_on_a_small_screen(page: Page, width: int, language: str) -> None:
    page.set_viewport_size({"width": width, "height": 768})
    page.add_init_script(f"localStorage.setItem('everthread.language', '{language}')")
    page.goto("/#/c/demo-journey?at=113")
    expect_drawn(page.locator("article.message"))
    expect(page.locator(".top h1")).to_have_text("A slow journey by train")
    assert not is_cut(page.locator(".top h1"))
    assert not is_cut(page.locator(".foot .who span"))
    for time in page.locator("article.message header .number").all():
        assert lines_of(time) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_in_chinese_tells_its_tabs_apart_and_leaves_no_suggestion_alone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.add_init_script("localStorage.setItem('everthread.language', 'zh')")
    page.goto("/")
    expect_drawn(page.locator(".tries button"))
    assert page.get_by_role("tab").all_inner_texts() == ["列表", "聊天", "上下文"]
    tries = page.locator(".tries button")
    expect(tries).to_have_count(3)
    rows: dict[int, int] = {}
    for one in tries.all():
        box = one.bounding_box()
        assert box is not None
        rows[round(box["y"])] = rows.get(round(box["y"]), 0) + 1
    assert len(set(rows.values())) == 1


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_no_line_of_the_first_screen_has_a_word_or_two_alone(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.add_init_script("localStorage.setItem('everthread.language', 'zh')")
    page.goto("/")
    texts = page.locator(".empty h1, .empty .soft")
    expect_drawn(texts)
    for text in texts.all():
        widths: list[float] = text.evaluate(
            "element => { const range = document.createRange(); range.selectNodeContents(element);"
            " return [...range.getClientRects()].map(box => box.width); }"
        )
        assert widths[-1] > max(widths) / 3


def test_the_palette_marks_the_line_that_enter_runs(page: Page) -> None:
    page.goto("/")
    expect(page.locator(".tries button").first).to_be_visible()  # before, nobody hears the keys
    page.keyboard.press("Control+k")
    chosen = page.get_by_role("option", selected=True)
    other = page.get_by_role("option", selected=False).first
    expect(chosen).to_contain_text("↵")
    background = "element => getComputedStyle(element).backgroundColor"
    dialog = page.get_by_role("dialog").evaluate(background)
    assert chosen.evaluate(background) not in (dialog, other.evaluate(background), "rgba(0, 0, 0, 0)")

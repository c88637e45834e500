"""What is easy to forget about a chat: input methods, the way back, edits in mid-answer, very much text at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.forkserver import ForkServer
from tests.page.conftest import Served, serving, watched

WORDS = " ".join(f"word{number}" for number in range(60))


@pytest.fixture(scope="module")
def slow(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model takes its time."""
    folder = tmp_path_factory.mktemp("chat")
    script = folder / "script.json"
    script.write_text(json.dumps({"steps": [{"text": WORDS, "pace_seconds": 0.15}], "repeat": True}))
    with serving(forkserver, folder, EVERTHREAD_MODEL=f"scripted:{script}") as served:
        served.begin()
        yield served


@pytest.fixture
def page(browser: Browser, slow: Served) -> Iterator[Page]:
    with watched(browser, slow.address) as opened:
        yield opened


@pytest.fixture
def conversation(slow: Served) -> str:
    """The id of a conversation of two questions and their answers."""
    said = ["first question", "first answer", "second question", "second answer"]
    return made(slow, [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)])


def made(slow: Served, messages: list[dict[str, str]]) -> str:
    with httpx.Client(base_url=f"{slow.address}/api/v1", timeout=60) as api:
        id: str = api.post("/conversations", json={"title": "Edges"}).raise_for_status().json()["id"]
        api.post(f"/conversations/{id}/messages", json={"messages": messages}).raise_for_status()
    return id


def composer(page: Page) -> Locator:
    return page.get_by_label("Write a message")


def live(page: Page) -> Locator:
    return page.locator('article[data-live="true"]')


def test_enter_that_ends_an_input_methods_choice_sends_nothing(page: Page) -> None:
    page.goto("/")
    composer(page).click()
    devtools = page.context.new_cdp_session(page)
    devtools.send("Input.imeSetComposition", {"text": "ni", "selectionStart": 2, "selectionEnd": 2})
    enter = {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
    devtools.send("Input.dispatchKeyEvent", enter)
    devtools.send("Input.insertText", {"text": "你好"})
    expect(composer(page)).to_have_value("你好")
    # Safari tells of the key only after the choice has ended
    page.evaluate(
        "document.activeElement.dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }))"
    )
    expect(composer(page)).to_have_value("你好")
    expect(page.locator("article")).to_have_count(0)


def test_escape_of_an_input_method_does_not_end_an_edit(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    question = page.locator('article[data-role="user"]', has_text="second question")
    question.hover()
    question.get_by_role("button", name="Edit").click()
    text = page.get_by_role("textbox", name="Edit")
    text.fill("rewritten")
    text.evaluate(
        "element => element.dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'Escape', isComposing: true, bubbles: true, cancelable: true }))"
    )
    expect(text).to_have_value("rewritten")


def test_the_browsers_way_back_leaves_an_answer_where_it_belongs(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    expect(page.get_by_text("second answer")).to_be_visible()
    page.get_by_role("button", name="New conversation").last.click()
    composer(page).fill("asked elsewhere")
    composer(page).press("Enter")
    expect(live(page)).to_contain_text("word3")
    asked_in = page.evaluate("location.hash")
    page.go_back()
    page.go_back()
    expect(page.get_by_text("second answer")).to_be_visible()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(page.locator("article", has_text="word")).to_have_count(0)
    page.go_forward()
    page.go_forward()
    assert page.evaluate("location.hash") == asked_in
    expect(page.locator('article[data-role="user"]', has_text="asked elsewhere")).to_be_visible()
    expect(page.locator('article[data-role="assistant"]')).to_contain_text("word59")
    expect(page.locator("article")).to_have_count(2)


def test_an_edited_question_stands_before_its_answer_has_come(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    _edit(page, "second question", "a better question")
    expect(live(page)).to_contain_text("word1")
    expect(page.locator('article[data-role="user"]').last).to_contain_text("a better question")
    expect(page.get_by_text("second answer")).to_have_count(0)


def test_an_edit_while_an_answer_comes_in_stops_it_and_is_answered(page: Page, conversation: str) -> None:
    page.goto(f"/#/c/{conversation}")
    composer(page).fill("third question")
    composer(page).press("Enter")
    expect(live(page)).to_contain_text("word3")
    _edit(page, "second question", "a better question")
    expect(page.locator('article[data-role="user"]').last).to_contain_text("a better question")
    expect(live(page)).to_contain_text("word3")
    expect(page.locator('article[data-role="assistant"]').last).to_contain_text("word59")
    expect(live(page)).to_have_count(0)
    expect(page.locator("article")).to_have_count(4)
    expect(page.locator(".notice.problem")).to_have_count(0)


def _edit(page: Page, old: str, new: str) -> None:
    question = page.locator('article[data-role="user"]', has_text=old)
    question.hover()
    question.get_by_role("button", name="Edit").click()
    text = page.get_by_role("textbox", name="Edit")
    text.fill(new)
    text.press("Control+Enter")


def test_after_a_stop_the_next_question_is_answered_and_enter_while_it_is_keeps_what_is_typed(page: Page) -> None:
    page.goto("/")
    composer(page).fill("one")
    composer(page).press("Enter")
    composer(page).press("Enter")  # a second one at once sends nothing
    expect(live(page)).to_contain_text("word3")
    expect(page.locator('article[data-role="user"]')).to_have_count(1)
    page.get_by_role("button", name="Stop", exact=True).click()
    composer(page).fill("two")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    composer(page).press("Enter")
    expect(page.locator('article[data-role="user"]', has_text="two")).to_be_visible()
    expect(live(page)).to_contain_text("word3")
    composer(page).fill("three, not sent yet")
    composer(page).press("Enter")
    expect(page.get_by_role("status").filter(has_text="Answer in progress: stop it")).to_be_visible()
    expect(live(page)).to_contain_text("word9")
    expect(composer(page)).to_have_value("three, not sent yet")
    expect(page.locator('article[data-role="user"]')).to_have_count(2)


def test_a_pasted_megabyte_is_taken_in_at_once_where_the_cursor_stands(page: Page) -> None:
    page.goto("/")
    composer(page).fill("before  after")
    composer(page).evaluate("element => element.setSelectionRange(7, 7)")
    page.evaluate(
        "const clipboardData = new DataTransfer();"
        "const lines = ('a line 中文 ' + '长'.repeat(40) + '\\r\\n').repeat(20_000);"
        "clipboardData.setData('text/plain', lines + 'x'.repeat(200_000) + '\\n');"
        "document.querySelector('.composer textarea')"
        ".dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))"
    )
    text = composer(page).input_value()
    line = f"a line 中文 {'长' * 40}\n"
    assert text == f"before {line * 20_000}{'x' * 200_000}\n after"
    box = composer(page).bounding_box()
    assert box is not None
    assert box["height"] < 300


def test_a_pasted_picture_becomes_an_attachment(page: Page) -> None:
    page.goto("/")
    page.evaluate(
        "const clipboardData = new DataTransfer();"
        "clipboardData.items.add(new File([new Uint8Array([1, 2, 3])], 'image.png', { type: 'image/png' }));"
        "document.querySelector('.composer textarea')"
        ".dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))"
    )
    chip = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(chip).to_contain_text("image.png")


WIDE = f"| {' | '.join(f'column{n}' for n in range(30))} |\n|{'---|' * 30}\n| {' | '.join(['some value'] * 30)} |"


@pytest.mark.parametrize("width", [1400, 390])
def test_whatever_is_long_stays_in_its_place(page: Page, slow: Served, width: int) -> None:
    texts = ["a" * 900, f"{'b' * 900}\n\n{WIDE}\n\n```\n{'c' * 900}\n```", f"https://example.com/{'d' * 900}", "last"]
    id = made(slow, [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)])
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"/#/c/{id}")
    expect(page.get_by_text("last", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for said in page.locator("article .said").all():
        assert said.evaluate("element => element.scrollWidth <= element.clientWidth")
    cell = page.locator("article td").first.bounding_box()
    assert cell is not None
    assert cell["width"] > 60  # its words whole, not letter under letter; the table scrolls


def test_what_is_written_from_right_to_left_runs_so(page: Page, slow: Served) -> None:
    id = made(
        slow,
        [
            {"role": "user", "content": "مرحبا بالعالم!"},
            {"role": "assistant", "content": "أهلا وسهلا!\n\n- واحد\n- اثنان\n\nAnd in English.\n\n```\nx = 1\n```"},
        ],
    )
    page.goto(f"/#/c/{id}")
    direction = "element => getComputedStyle(element).direction"
    assert page.locator('article[data-role="user"] .said').evaluate(direction) == "rtl"
    answer = page.locator('article[data-role="assistant"]')
    assert answer.locator("p").first.evaluate(direction) == "rtl"
    assert answer.locator("li").first.evaluate(direction) == "rtl"
    assert answer.locator("p").last.evaluate(direction) == "ltr"
    assert answer.locator("pre").evaluate(direction) == "ltr"


def test_what_is_still_being_read_is_not_called_empty(page: Page, conversation: str) -> None:
    held: list[Route] = []
    page.route("**/memories?*", lambda route: held.append(route))
    page.goto(f"/#/c/{conversation}")
    memories = page.get_by_role("region", name="Memories")
    expect(memories.get_by_role("status", name="Loading")).to_be_visible()
    expect(memories).not_to_contain_text("Nothing is remembered")
    for route in held:
        route.continue_()
    expect(memories).to_contain_text("Nothing is remembered")

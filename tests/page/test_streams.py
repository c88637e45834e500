"""Answers that take their time: reloaded, cut off, counted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.forkserver import ForkServer
from tests.page.conftest import PATIENCE_SECONDS, Served, serving, watched
from tests.page.cuttable_proxy import CuttableProxy

WORDS = " ".join(f"word{number}" for number in range(60))
PACED = {"text": WORDS, "pace_seconds": 0.08}
"""Some seconds long: time enough to reload in the middle of it."""


@pytest.fixture(scope="module")
def slow(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model speaks slowly."""
    folder = tmp_path_factory.mktemp("slow")
    script = folder / "script.json"
    script.write_text(json.dumps({"steps": [PACED], "repeat": True}))
    with serving(forkserver, folder, EVERTHREAD_MODEL=f"scripted:{script}") as served:
        served.begin()
        yield served


@pytest.fixture
def page(browser: Browser, slow: Served) -> Iterator[Page]:
    with watched(browser, slow.address) as opened:
        yield opened


def ask(page: Page, text: str) -> None:
    page.goto("/")
    page.get_by_label("Write a message").fill(text)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-live="true"]')).to_contain_text("word3")


def expect_whole(page: Page) -> None:
    expect(page.locator('article[data-role="assistant"] .said')).to_have_text(WORDS)
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(page.locator('article[data-role="assistant"]')).to_have_count(1)


def test_a_reload_in_mid_stream_loses_nothing_of_the_answer(page: Page) -> None:
    ask(page, "go on")
    page.reload()
    expect(page.locator('article[data-live="true"]')).to_contain_text("word0")  # what was told before is told again
    expect_whole(page)


def expect_kept(page: Page) -> None:
    """The one answer, as the history has it: with its number, and with all that can be done with it."""
    kept = page.locator('article[data-role="assistant"]')
    expect(kept).to_have_count(1)
    expect(kept).to_have_attribute("data-seq", re.compile(r"\d+"))
    expect(kept).to_contain_text("word3")
    kept.hover()
    for action in ("Copy", "Regenerate", "Good answer"):
        expect(kept.get_by_role("button", name=action)).to_be_visible()


def test_a_stopped_answer_is_one_of_the_history_without_a_reload(page: Page) -> None:
    ask(page, "stop here")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped. What was said is kept.")).to_be_visible()
    expect_kept(page)


def test_an_answer_of_a_killed_server_is_one_of_the_history_when_it_is_back(page: Page, slow: Served) -> None:
    ask(page, "fall over")
    slow.kill()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    page.get_by_label("Write a message").fill("typed meanwhile")
    page.get_by_label("Write a message").press("Enter")
    expect(page.get_by_text("There is no connection. Send when it is back.")).to_be_visible()
    expect(page.get_by_text("Answer in progress")).to_have_count(0)
    slow.begin()
    expect(page.get_by_text("The server stopped in the middle of this answer.")).to_be_visible()
    expect_kept(page)
    expect(page.get_by_role("button", name="Try again")).to_be_visible()


def test_a_regenerated_answer_that_was_stopped_stands_once_also_when_its_question_is_erased(page: Page) -> None:
    ask(page, "once only")
    page.get_by_role("button", name="Stop", exact=True).click()
    answer = page.locator('article[data-role="assistant"]')
    answer.hover()
    answer.get_by_role("button", name="Regenerate").click()
    expect(page.locator('article[data-live="true"]')).to_contain_text("word3")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(answer.get_by_text("2/2")).to_be_visible()
    expect_kept(page)
    question = page.locator('article[data-role="user"]')
    question.hover()
    question.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="Erase").click()
    page.get_by_label("I understand that this cannot be undone").check()
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    expect(question).to_have_count(0)
    expect_kept(page)
    expect(page.get_by_text("Stopped. What was said is kept.")).to_have_count(0)


def test_a_model_that_has_not_begun_is_said_to_be_waited_for(
    browser: Browser, forkserver: ForkServer, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"text": "Here I am.", "delay_seconds": 12}]}))
    with (
        serving(forkserver, tmp_path, EVERTHREAD_MODEL=f"scripted:{script}") as served,
        watched(browser, _begun(served)) as page,
    ):
        page.goto("/")
        page.get_by_label("Write a message").fill("Are you there?")
        page.get_by_label("Write a message").press("Enter")
        live = page.locator('article[data-live="true"]')
        expect(live.get_by_role("status")).to_contain_text("Waiting for the model")
        expect(page.locator('article[data-seq][data-role="assistant"]')).to_contain_text("Here I am.")
        expect(page.get_by_text("Waiting for the model")).to_have_count(0)


def _begun(served: Served) -> str:
    served.begin()
    return served.address


def test_an_answer_asks_for_nothing_while_it_comes_in(page: Page) -> None:
    asked: list[str] = []
    ask(page, "count the requests")

    def note(request: Request) -> None:
        asked.append(request.url)

    expect(page.locator('article[data-live="true"]')).to_contain_text(
        "word10"
    )  # what a new conversation needs is there
    page.on("request", note)
    expect(page.locator('article[data-live="true"]')).to_contain_text("word50")
    page.remove_listener("request", note)
    assert asked == []
    expect_whole(page)


def test_a_dropped_connection_is_told_and_the_rest_is_replayed(browser: Browser, slow: Served) -> None:
    with CuttableProxy(int(slow.address.rpartition(":")[2])) as proxy, watched(browser, proxy.address) as page:
        ask(page, "hold the line")
        proxy.cut()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        proxy.mend()
        expect(page.get_by_text("Connection lost")).to_have_count(0)
        expect_whole(page)


def test_a_server_that_restarts_leaves_what_was_said_and_a_way_on(page: Page, slow: Served) -> None:
    ask(page, "stop and go on")
    slow.end()
    slow.begin()
    cut = page.locator('article[data-role="assistant"]').first
    expect(cut).to_contain_text("word3")
    expect(page.get_by_text("Connection lost")).to_have_count(0)
    expect_kept(page)
    page.reload()
    expect(page.locator('article[data-role="assistant"]').first).to_contain_text("word3")


IN_VAIN = 6
"""By then the page has given up whatever it asked for when the server went."""
COUNTED = """
window.triedInVain = 0;
const real = window.fetch;
window.fetch = async (url, options) => {
  try {
    return await real(url, options);
  } catch (problem) {
    if (String(url).includes("/readyz")) window.triedInVain += 1;
    throw problem;
  }
};
"""


def test_a_server_that_is_stopped_takes_nothing_from_the_screen_and_is_told_once(page: Page, slow: Served) -> None:
    page.add_init_script(COUNTED)
    ask(page, "first question")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    page.get_by_label("Write a message").fill("second question")
    page.get_by_label("Write a message").press("Enter")
    question = page.locator('article[data-role="user"]', has_text="second question")
    answer = page.locator('article[data-role="assistant"]').last
    expect(page.locator('article[data-live="true"]')).to_contain_text("word3")
    slow.end()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    page.wait_for_function(f"() => window.triedInVain >= {IN_VAIN}", timeout=PATIENCE_SECONDS * 1000)
    expect(question).to_have_count(1)
    expect(answer).to_contain_text("word3")
    expect(page.get_by_role("alert")).to_have_count(0)
    slow.begin()
    expect(page.get_by_text("Connection lost")).to_have_count(0)
    expect(question).to_have_count(1)
    expect(answer).to_contain_text("word3")
    expect(page.locator('article[data-role="user"]')).to_have_count(2)


def test_a_question_stands_at_once(page: Page) -> None:
    ask(page, "here I am")
    question = page.locator('article[data-role="user"]', has_text="here I am")
    expect(question).to_have_count(1)
    expect(page.locator('article[data-live="true"]')).to_have_count(1)  # while the answer still comes in
    expect_whole(page)
    expect(question).to_have_count(1)


def test_what_was_sent_without_a_connection_is_kept_and_sent_when_it_is_back(browser: Browser, slow: Served) -> None:
    with CuttableProxy(int(slow.address.rpartition(":")[2])) as proxy, watched(browser, proxy.address) as page:
        page.goto("/")
        expect(page.get_by_role("heading", name="Conversations that never end")).to_be_visible()
        proxy.cut()
        page.get_by_label("Write a message").fill("do not lose me")
        page.get_by_label("Write a message").press("Enter")
        waiting = page.locator('article[data-role="user"]', has_text="do not lose me")
        expect(waiting).to_contain_text("Not sent yet")
        expect(page.locator('article[data-live="true"]')).to_have_count(0)  # nobody answers yet
        proxy.mend()
        expect_whole(page)
        expect(waiting).to_have_count(1)  # once, however often it was tried
        expect(page.get_by_text("Not sent yet")).to_have_count(0)


def test_what_was_not_sent_yet_survives_a_reload(page: Page) -> None:
    page.goto("/")
    page.route("**/chat/stream", lambda route: route.abort())
    page.get_by_label("Write a message").fill("after the storm")
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-role="user"]', has_text="after the storm")).to_be_visible()
    page.reload()
    expect(page.locator('article[data-role="user"]', has_text="after the storm")).to_be_visible()
    page.unroute("**/chat/stream")
    expect_whole(page)


def test_what_the_server_refuses_stands_in_the_composer_again(page: Page) -> None:
    refusal = {"title": "Invalid", "status": 422, "code": "invalid", "detail": "not so", "retryable": False}
    page.route("**/chat/stream", lambda route: route.fulfill(status=422, json=refusal))
    page.goto("/")
    page.get_by_label("Write a message").fill("keep my words")
    page.get_by_label("Write a message").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not so")
    expect(page.get_by_label("Write a message")).to_have_value("keep my words")


def test_the_page_comes_back_by_itself_after_a_restart(page: Page, slow: Served) -> None:
    ask(page, "die and come back")
    slow.kill()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    slow.begin()
    expect(page.get_by_text("Connection lost")).to_have_count(0)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()  # nothing runs any more
    expect(page.locator('article[data-role="assistant"]').first).to_contain_text("word3")
    page.get_by_label("Write a message").fill("and go on")
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-role="user"]', has_text="and go on")).to_be_visible()


def test_a_connection_that_fell_silent_is_given_up(page: Page) -> None:
    """As after a laptop slept: the browser says that the network is back, and the old stream never says anything."""
    page.add_init_script(SILENT_ONCE)
    page.goto("/")
    page.get_by_label("Write a message").fill("wake up")
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-role="user"]', has_text="wake up")).to_be_visible()
    page.wait_for_function("() => window.isSilent")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect_whole(page)


SILENT_ONCE = """
const real = window.fetch;
window.fetch = async (url, options) => {
  if (window.isSilent || !String(url).includes("/chat/stream")) return real(url, options);
  await real(url, { ...options, signal: undefined });
  window.isSilent = true;
  const give_up = (stream) => options.signal.addEventListener("abort", () => stream.error(new Error("aborted")));
  const body = new ReadableStream({ start: give_up });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
};
"""


def test_stopping_keeps_what_was_said(page: Page) -> None:
    ask(page, "enough")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped. What was said is kept.")).to_be_visible()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def drop(page: Page, name: str, content: str, on: str = "main") -> None:
    """As a hand drops a file on a place of the page."""
    page.evaluate(DROP, {"on": on, "name": name, "content": content})


DROP = """
({ on, name, content }) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([content], name));
  for (const kind of ["dragover", "drop"]) {
    document.querySelector(on).dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
  }
}
"""


def test_a_file_dropped_before_anything_was_said_waits_for_what_is_said(page: Page, slow: Served) -> None:
    listed = f"{slow.address}/api/v1/conversations"
    before = len(httpx.get(listed, params={"limit": 1000}).json()["items"])
    page.goto("/")
    drop(page, "note.txt", "the blue bag", on=".empty")
    chip = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(chip).to_contain_text("note.txt")
    expect(chip).to_contain_text("12 B")
    page.reload()
    expect(page.get_by_role("heading", name="Conversations that never end")).to_be_visible()
    assert len(httpx.get(listed, params={"limit": 1000}).json()["items"]) == before
    drop(page, "note.txt", "the blue bag", on=".empty")
    page.get_by_label("Write a message").fill("what is in it?")
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-role="user"] .chip', has_text="note.txt")).to_be_visible()
    expect(page.locator(".top h1")).to_have_text("what is in it?")
    expect(chip).to_have_count(0)
    expect(page.get_by_role("region", name="Files").get_by_text("uploaded")).to_be_visible()
    assert len(httpx.get(listed, params={"limit": 1000}).json()["items"]) == before + 1


def test_files_can_be_dropped_anywhere_on_a_conversation(page: Page) -> None:
    ask(page, "take this")
    drop(page, "list.csv", "a,b", on="article.message")
    chip = page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(chip).to_contain_text("list.csv")
    expect(chip).to_contain_text("3 B")


def test_an_archive_that_is_dropped_can_be_imported_or_attached(page: Page) -> None:
    said = [{"role": "user", "content": "to be carried over"}, {"role": "assistant", "content": "and so it was"}]
    lines = json.dumps({"messages": said})
    ask(page, "take this in")
    drop(page, "talk.jsonl", lines, on="article.message")
    dialog = page.get_by_role("dialog", name="Import or attach?")
    expect(dialog).to_contain_text("talk.jsonl")
    dialog.get_by_role("button", name="Attach").click()
    expect(page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_contain_text("talk.jsonl")
    page.goto("/")
    drop(page, "trip.jsonl", lines)
    dialog.get_by_role("button", name="Import conversations").click()
    expect(page.locator('article[data-role="user"]', has_text="to be carried over")).to_be_visible()

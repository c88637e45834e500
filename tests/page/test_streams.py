"""Answers that take their time: reloaded, cut off, counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.forkserver import ForkServer
from tests.page.conftest import Served, serving, watched
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
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    expect(page.locator('article[data-role="assistant"]')).to_have_count(1)
    assert page.locator('article[data-role="assistant"] .said').inner_text().strip() == WORDS


def test_a_reload_in_mid_stream_loses_nothing_of_the_answer(page: Page) -> None:
    ask(page, "go on")
    page.reload()
    expect(page.locator('article[data-live="true"]')).to_contain_text("word0")  # what was told before is told again
    expect_whole(page)


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
    page.reload()
    expect(page.locator('article[data-role="assistant"]').first).to_contain_text("word3")


def test_stopping_keeps_what_was_said(page: Page) -> None:
    ask(page, "enough")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped. What was said is kept.")).to_be_visible()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def test_a_file_dropped_before_anything_was_said_makes_a_conversation(page: Page, tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("the blue bag")
    page.goto("/")
    page.locator(".composer input[type=file]").set_input_files(note)
    expect(page.get_by_role("region", name="Files").get_by_text("note.txt")).to_be_visible()
    expect(page.get_by_role("region", name="Files").get_by_text("uploaded")).to_be_visible()

"""Answers in several steps, with tools between them: nothing said on the way is lost, and all stands as one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.forkserver import ForkServer
from tests.page.conftest import Served, serving, watched

FIRST = "Let me look at the files first."
LAST = " ".join(f"word{number}" for number in range(40))
STEPS = [
    {"text": FIRST, "thinking": "Which files are there?", "calls": [{"name": "list_files", "args": {"path": "/"}}]},
    {"text": LAST, "thinking": "Now I know.", "pace_seconds": 0.2},
]


@pytest.fixture(scope="module")
def looking(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose model looks at its files before it answers, slowly."""
    folder = tmp_path_factory.mktemp("steps")
    script = folder / "script.json"
    script.write_text(json.dumps({"steps": STEPS, "repeat": True}))
    with serving(forkserver, folder, EVERTHREAD_MODEL=f"scripted:{script}") as served:
        served.begin()
        yield served


@pytest.fixture
def page(browser: Browser, looking: Served) -> Iterator[Page]:
    with watched(browser, looking.address) as opened:
        yield opened


def ask(page: Page, text: str) -> None:
    page.goto("/")
    page.get_by_label("Write a message").fill(text)
    page.get_by_label("Write a message").press("Enter")
    expect(page.locator('article[data-live="true"]')).to_contain_text("word3")


def test_what_was_said_before_a_tool_stays_while_the_answer_comes_in(page: Page) -> None:
    ask(page, "which files are there?")
    live = page.locator('article[data-live="true"]')
    expect(live).to_contain_text(FIRST)
    thoughts = live.locator('.fold[data-icon="thinking"]')
    expect(thoughts).to_have_count(2)
    thoughts.first.locator("summary").click()
    expect(thoughts.first.locator(".said")).to_have_text("Which files are there?")  # not run together with the next


def test_an_answer_in_several_steps_stands_as_one(page: Page) -> None:
    ask(page, "and which are in the folder?")
    expect(page.locator('article[data-live="true"]')).to_have_count(0)
    steps = page.locator('article[data-role="assistant"]')
    expect(steps).to_have_count(2)
    first, last = steps.all()
    expect(first.locator(".face")).to_be_visible()
    expect(last.locator(".face")).to_be_hidden()
    number = last.locator("header .number")
    expect(number).to_have_css("opacity", "0")
    last.hover()
    expect(number).to_have_css("opacity", "1")


def test_a_new_conversation_is_listed_by_its_question_while_it_is_answered(page: Page) -> None:
    ask(page, "how many boats are in the harbour?")
    expect(page.locator('article[data-live="true"]')).to_have_count(1)
    expect(page.get_by_role("heading", name="how many boats are in the harbour?")).to_be_visible()
    expect(page).to_have_title("how many boats are in the harbour? · everthread")
    listed = page.get_by_role("navigation", name="Conversations").get_by_role("button", name="how many boats")
    expect(listed).to_have_attribute("aria-current", "true")
    expect(page.locator('article[data-live="true"]')).to_have_count(1)  # all of that while it still comes in

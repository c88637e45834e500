"""A server that asks for keys: the page asks for one, and each person sees only what is theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.forkserver import ForkServer
from tests.page.conftest import Served, serving, watched

SECRET = "the plum is in the well"


@pytest.fixture(scope="module")
def locked(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(forkserver, tmp_path_factory.mktemp("locked"), EVERTHREAD_REQUIRE_KEY="true") as served:
        yield served


@pytest.fixture(scope="module")
def keys(locked: Served) -> dict[str, str]:
    """Keys of two people, one of whom has said something."""
    made = {owner: locked.run("key", "create", "--owner", owner).split()[-1] for owner in ("ann", "bob")}
    locked.begin()
    as_ann = {"Authorization": f"Bearer {made['ann']}"}
    question = {"message": SECRET, "conversation_id": "ann-only"}
    httpx.post(f"{locked.address}/api/v1/chat", json=question, headers=as_ann, timeout=60).raise_for_status()
    note = {"text": SECRET, "scope": "user"}
    httpx.post(f"{locked.address}/api/v1/memories", json=note, headers=as_ann).raise_for_status()
    return made


@pytest.fixture
def page(browser: Browser, locked: Served, keys: dict[str, str]) -> Iterator[Page]:
    with watched(browser, locked.address) as opened:
        yield opened


def enter(page: Page, key: str) -> None:
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_label("Search all messages")).to_be_visible()


def test_a_server_with_keys_asks_for_one_and_shows_nothing_before(page: Page) -> None:
    page.goto("/#/c/ann-only")
    expect(page.get_by_role("heading", name="This server needs a key")).to_be_visible()
    assert SECRET not in page.content()


def test_each_person_sees_their_own(page: Page, keys: dict[str, str]) -> None:
    page.goto("/#/c/ann-only")
    enter(page, keys["ann"])
    expect(page.locator('article[data-role="user"]')).to_contain_text(SECRET)


def test_another_person_sees_nothing_of_it(page: Page, keys: dict[str, str]) -> None:
    page.goto("/")
    enter(page, keys["bob"])
    expect(page.get_by_text("No conversations yet")).to_be_visible()
    page.get_by_label("Search all messages").fill("plum")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.goto("/#/c/ann-only")
    nothing = page.get_by_role("heading", name="There is no such conversation here.")
    expect(nothing.or_(page.get_by_role("alert")).first).to_be_visible()
    assert SECRET not in page.content()


def test_a_wrong_key_is_told_and_asked_for_again(page: Page, keys: dict[str, str]) -> None:
    page.goto("/")
    page.get_by_label("Key", exact=True).fill("etk_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("This key is not valid")
    enter(page, keys["bob"])


def test_one_sees_who_one_is_changes_to_another_key_and_leaves(page: Page, keys: dict[str, str]) -> None:
    page.goto("/")
    enter(page, keys["bob"])
    page.get_by_role("button", name="Signed in as bob").click()
    page.get_by_role("menuitem", name="Sign in with another key").click()
    enter(page, keys["ann"])
    page.get_by_role("button", name="Signed in as ann").click()
    page.get_by_role("menuitem", name="Switch to bob").click()
    page.get_by_role("button", name="Signed in as bob").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("button", name="Signed in as ann")).to_be_visible()  # the other one that is known here
    page.get_by_role("button", name="Signed in as ann").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="This server needs a key")).to_be_visible()
    assert keys["ann"] not in page.evaluate("JSON.stringify(localStorage)")


def test_a_key_that_is_revoked_is_asked_for_again_and_nothing_typed_is_lost(
    page: Page, locked: Served, keys: dict[str, str]
) -> None:
    made = json.loads(locked.run("key", "create", "--owner", "ann", "--json"))
    page.goto("/#/c/ann-only")
    enter(page, made["key"])
    question = page.locator('article[data-role="user"]')
    expect(question).to_contain_text(SECRET)
    question.hover()
    question.get_by_role("button", name="Edit").click()
    page.get_by_role("textbox", name="Edit").fill("edited, not yet saved")
    locked.run("key", "revoke", "--owner", "ann", made["id"])
    page.get_by_label("Write a message").fill("sent in vain")
    page.get_by_label("Write a message").press("Enter")
    expect(page.get_by_role("heading", name="This server needs a key")).to_be_visible()
    expect(page.get_by_role("alert").first).to_contain_text("no longer valid")
    expect(question).to_be_hidden()
    enter(page, keys["ann"])
    expect(page.get_by_role("textbox", name="Edit")).to_have_value("edited, not yet saved")
    expect(page.get_by_label("Write a message")).to_have_value("sent in vain")

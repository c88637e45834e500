"""What the service can do can be done on the page: verify, erase with its proof, memories, knowledge, jobs."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
from playwright.sync_api import Page, expect

from tests.page.payloads import XSS


def manage(page: Page, section: str) -> None:
    page.goto("/")
    page.get_by_role("button", name="Manage", exact=True).click()
    page.get_by_role("dialog").get_by_role("tab", name=section).click()


def test_the_chain_is_verified_and_the_result_is_one_line(page: Page) -> None:
    manage(page, "Verify")
    page.get_by_role("dialog").get_by_role("button", name="Verify", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="chain intact")).to_have_text(
        re.compile(r"[\d,]+ entries, chain intact")
    )


def test_a_message_is_erased_with_its_proof(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "secret"}).raise_for_status()
    said = [{"role": "user", "content": "the password is swordfish"}, {"role": "user", "content": "and good night"}]
    httpx.post(f"{api}/secret/messages", json={"messages": said}).raise_for_status()
    page.goto("/#/c/secret")
    message = page.locator("article.message", has_text="swordfish")
    message.hover()
    message.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="Erase").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Erase for good")).to_be_disabled()
    dialog.get_by_label("I understand").check()
    dialog.get_by_role("button", name="Erase for good").click()
    expect(dialog).to_contain_text("1 entry erased")
    expect(dialog).to_contain_text("chain intact")
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_text("swordfish")).to_have_count(0)
    expect(page.get_by_text("and good night")).to_be_visible()
    expect(page.locator(".erased")).to_have_count(0)  # before the first one nothing is missed


def test_an_erased_message_leaves_its_number_and_a_report_in_plain_chinese(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "plain"}).raise_for_status()
    said = [{"role": "user", "content": text} for text in ("first", "swordfish", "third", "halibut")]
    httpx.post(f"{api}/plain/messages", json={"messages": said}).raise_for_status()
    page.add_init_script("localStorage.setItem('everthread.language', 'zh')")
    page.goto("/#/c/plain")
    for text in ("swordfish", "halibut"):
        message = page.locator("article.message", has_text=text)
        message.hover()
        message.get_by_role("button", name="消息操作").click()
        page.get_by_role("menuitem", name="抹除").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("checkbox").check()
        dialog.get_by_role("button", name="永久抹除").click()
        expect(dialog).to_contain_text("已抹除：消息 1 条")
        expect(dialog).to_contain_text("此前的备份和导出文件；文件系统快照")
        assert not re.search(r"[a-z_]{3,}", dialog.inner_text())
        dialog.get_by_role("button", name="关闭").last.click()
    expect(page.locator(".erased")).to_have_text(["#2 已抹除", "#4 已抹除"])


def test_an_erased_conversation_is_not_asked_for_again(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "ended", "title": "ended"}).raise_for_status()
    httpx.post(f"{api}/ended/messages", json={"messages": [{"role": "user", "content": "a"}]}).raise_for_status()
    page.goto("/#/c/ended")
    expect(page.locator("article.message")).to_be_visible()
    missing: list[str] = []
    page.on("response", lambda answer: missing.append(answer.url) if answer.status == 404 else None)
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="Erase").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("I understand").check()
    dialog.get_by_role("button", name="Erase for good").click()
    expect(dialog).to_contain_text("chain intact")
    page.wait_for_load_state("networkidle")
    assert missing == []


def test_a_deleted_conversation_is_found_and_restored(page: Page, server: str) -> None:
    api = f"{server}/api/v1/conversations"
    httpx.post(api, json={"id": "thrown", "title": "thrown away"}).raise_for_status()
    httpx.delete(f"{api}/thrown").raise_for_status()
    manage(page, "Deleted")
    line = page.get_by_role("dialog").locator("li", has_text="thrown away")
    line.get_by_role("button", name="Restore").click()
    expect(line).to_have_count(0)
    assert not httpx.get(f"{api}/thrown").json()["is_deleted"]


def test_memories_are_added_found_edited_pinned_and_explained(page: Page) -> None:
    manage(page, "Memories")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Something to remember").fill("prefers the window seat")
    dialog.get_by_role("button", name="Add", exact=True).click()
    memory = dialog.locator("ul > li", has_text="window seat")
    expect(memory).to_be_visible()
    memory.get_by_role("button", name="Pin", exact=True).click()
    expect(memory.get_by_text("pinned", exact=True)).to_be_visible()
    memory.get_by_role("button", name="Edit").click()
    dialog.get_by_role("textbox", name="Edit").fill("prefers the aisle seat")
    dialog.get_by_role("button", name="Save").click()
    changed = dialog.locator("ul > li", has_text="aisle seat").first
    expect(changed).to_be_visible()
    dialog.get_by_label("Search memories").fill("aisle")
    expect(dialog.locator("ul > li")).to_have_count(1)
    changed.get_by_role("button", name="Where from?").click()
    expect(changed).to_contain_text("you added it: prefers the window seat")


def test_nothing_is_run_that_is_remembered_or_stands_in_a_document(page: Page, server: str) -> None:
    groups = ["\n".join(XSS[start : start + 12]) for start in range(0, len(XSS), 12)]
    with httpx.Client(base_url=f"{server}/api/v1", timeout=30) as api:
        for number, text in enumerate(groups):
            api.post("/memories", json={"text": f"hacked {number} {text}"[:2000]}).raise_for_status()
            title = XSS[number]
            document = {"collection": "bad", "id": f"d{number}", "title": title, "text": f"hacked {number}\n\n{text}"}
            api.post("/knowledge/documents", json=document).raise_for_status()
    manage(page, "Memories")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("ul > li").first).to_be_visible()
    dialog.get_by_label("Search memories").fill("hacked")
    expect(dialog.locator("ul > li").first).to_contain_text("hacked")
    page.keyboard.press("Escape")
    manage(page, "Knowledge")
    expect(dialog.locator("li").first).to_be_visible()
    dialog.get_by_label("Search this collection").fill("hacked")
    expect(dialog.locator("li").first).to_contain_text("hacked")
    assert page.evaluate("window.hacked") is None
    assert page.locator("[href^='javascript' i], [href^='vbscript' i], [href^='data:text' i]").count() == 0
    assert dialog.locator("script, iframe, object, embed, style, base, img, svg:not(.icon)").count() == 0
    httpx.delete(f"{server}/api/v1/knowledge/bad").raise_for_status()  # the server is the other tests' too


def test_documents_are_added_and_found_and_removed(page: Page, tmp_path: Path) -> None:
    manual = tmp_path / "manual.md"
    manual.write_text("# Kettle\n\nThe kettle has a blue lid.\n")
    manage(page, "Knowledge")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Collection").fill("house")
    dialog.locator('input[type="file"]').set_input_files(manual)
    expect(dialog.locator("li", has_text="manual.md")).to_be_visible()
    dialog.get_by_label("Search this collection").fill("kettle lid")
    expect(dialog.locator("li", has_text="blue lid")).to_be_visible()
    dialog.get_by_label("Search this collection").fill("")
    dialog.get_by_role("button", name="Remove manual.md").click()
    expect(dialog.locator("li", has_text="manual.md")).to_have_count(0)


def test_an_admin_sees_jobs_and_health(page: Page) -> None:
    manage(page, "Server")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("The server and its database answer")).to_be_visible()
    expect(dialog.get_by_role("region", name="Background jobs")).to_contain_text("waiting")


def test_one_sees_what_the_model_saw_for_an_answer(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Write a message").fill("why did you say so?")
    page.get_by_label("Write a message").press("Enter")
    answer = page.locator('article[data-seq][data-role="assistant"]', has_text="why did you say so?")
    expect(answer).to_be_visible()
    answer.hover()
    answer.get_by_role("button", name="Message actions").click()
    page.get_by_role("menuitem", name="What the model saw").click()
    expect(page.locator('.block[data-kind="question"]')).to_contain_text("why did you say so?")

"""The sessions of coding agents on the page: by project, with what is gone from disk and still here."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.forkserver import ForkServer
from tests.imports.agent_files import CWD, claude_compacted, claude_file, codex_file
from tests.page.conftest import serving, watched


def test_sessions_stand_under_their_project_and_say_what_is_gone_from_disk(
    browser: Browser, forkserver: ForkServer, tmp_path: Path, axe: str
) -> None:
    home = tmp_path / "home"
    path = claude_file(home, claude_compacted())
    codex_file(home)
    with serving(forkserver, tmp_path, HOME=str(home)) as served:
        served.run("watch", "--once")
        path.unlink()
        served.run("watch", "--once")
        served.begin()
        with watched(browser, served.address) as page:
            page.goto("/")
            page.get_by_role("button", name="Manage", exact=True).click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_role("tab", name="Agents").click()
            expect(dialog).to_contain_text("everthread watch")  # nobody follows them here
            project = dialog.get_by_role("region", name=CWD)
            expect(project).to_contain_text("2 sessions")
            expect(project.locator("li", has_text="Claude Code")).to_contain_text("file deleted")
            expect(project.locator("li", has_text="Codex")).not_to_contain_text("file deleted")
            project.get_by_role("button", name="Details of “Why does the login test fail?”").click()
            expect(project).to_contain_text("are still here")
            expect(project).to_contain_text("The agent compacted it once")
            expect(project.get_by_role("row", name="claude-test-1")).to_contain_text("21")
            page.evaluate(axe)
            found = page.evaluate("axe.run().then(({violations}) => violations.map(({id, impact}) => [id, impact]))")
            assert found == []
            dialog.get_by_role("button", name="Codex 1").click()
            expect(project).to_contain_text("1 session")
            project.get_by_role("button", name="List the files.", exact=True).click()
            expect(page.locator("article.message", has_text="There is a.py.")).to_be_visible()
            expect(page.get_by_role("note")).to_have_text("Imported from Codex.")
            expect(page.locator("article.message .tag", has_text="another program")).to_have_count(0)  # said once


def test_a_session_goes_on_here_in_a_copy_and_its_own_summary_says_whose_it_is(
    browser: Browser, forkserver: ForkServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    claude_file(home, claude_compacted())
    with serving(forkserver, tmp_path, HOME=str(home)) as served:
        served.run("watch", "--once")
        served.begin()
        with watched(browser, served.address) as page:
            page.goto("/")
            page.get_by_text("Why does the login test fail?").first.click()
            band = page.locator("section.band")
            expect(band).to_contain_text("summarized by Claude Code for itself")
            band.get_by_role("button").click()
            expect(band.get_by_role("button", name="Undo")).to_have_count(0)
            expect(page.get_by_text("This is a session of Claude Code")).to_be_visible()
            expect(page.locator("form.composer")).to_have_count(0)
            page.get_by_role("button", name="Copy and go on").click()
            expect(page.locator("form.composer")).to_be_visible()


def test_a_session_that_its_agent_cut_says_once_that_its_messages_are_gone_from_its_file(
    browser: Browser, forkserver: ForkServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    path = claude_file(home, claude_compacted())
    with serving(forkserver, tmp_path, HOME=str(home)) as served:
        served.run("watch", "--once")
        path.write_text("")
        served.run("watch", "--once")
        served.begin()
        with watched(browser, served.address) as page:
            page.goto("/")
            line = page.get_by_role("navigation", name="Conversations").get_by_role("button").first
            expect(line.get_by_role("img", name="Claude Code")).to_be_visible()
            line.click()
            expect(page.locator("article.message").first).to_be_visible()
            expect(page.get_by_role("note")).to_contain_text("were removed from its file")
            expect(page.locator("article.message .tag", has_text="removed")).to_have_count(0)

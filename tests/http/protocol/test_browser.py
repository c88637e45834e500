"""Chat pages as people write them, in a real browser, at an address of their own: they are named in `cors_origins`, and
need nothing else."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.forkserver import ForkServer
from tests.http.protocol.rig import CONFIG, HERE
from tests.http.served import process
from tools.chromium import chromium

BARE = "--no-sandbox --headless --disable-gpu --disable-background-networking --disable-component-update".split()
PATIENCE_SECONDS = 60.0
KINDS = ("client 1", "client 2", "useStream 1", "useStream 2", "@langchain/react", "assistant-ui")

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("needs chromium: sh tools/chromium.sh")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=BARE)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, built."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs Node and npm")
    folder = tmp_path_factory.mktemp("page") / "page"
    shutil.copytree(HERE / "browser", folder)
    install = (npm, "ci", "--no-audit", "--no-fund", "--loglevel", "error")
    subprocess.run(install, cwd=folder, check=True)
    production = '--define:process.env.NODE_ENV="production"'
    build = ("page.tsx", "--bundle", "--format=esm", "--jsx=automatic", "--outfile=page.js", production)
    subprocess.run((str(folder / "node_modules" / ".bin" / "esbuild"), *build), cwd=folder, check=True)
    return folder


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Not into the tests' output."""


@pytest.fixture(scope="module")
def origin(folder: Path) -> Iterator[str]:
    """Where the page is."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def _server(forkserver: ForkServer, folder: Path, **environment: str) -> Iterator[str]:
    database = f"sqlite:///{folder / 'et.db'}"
    with process(forkserver, database, "--langgraph", str(CONFIG), **environment) as (_, address):
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_chats_is_asked_and_answers(
    forkserver: ForkServer, tmp_path: Path, origin: str, page: Page, kind: str
) -> None:
    with _server(forkserver, tmp_path, EVERTHREAD_CORS_ORIGINS=origin) as address:
        page.goto(f"{origin}?{urlencode({'server': address, 'kind': kind})}")
        line = page.get_by_role("textbox")
        said = page.get_by_role("listitem")
        line.fill("please stop")
        line.press("Enter")
        expect(said).to_have_text(["please stop", "one two three"], timeout=PATIENCE_SECONDS * 1000)
        if kind == "assistant-ui":  # its page would show the question by a component of its own
            return
        expect(page.get_by_role("status")).to_have_text('{"question":"sure?"}', timeout=PATIENCE_SECONDS * 1000)
        line.fill("yes")
        line.press("Enter")
        expected = ["please stop", "one two three", "got yes"]
        expect(said).to_have_text(expected, timeout=PATIENCE_SECONDS * 1000)


def test_a_page_that_is_not_named_gets_nothing(forkserver: ForkServer, tmp_path: Path, origin: str, page: Page) -> None:
    with _server(forkserver, tmp_path, EVERTHREAD_CORS_ORIGINS="http://localhost:1") as address:
        page.goto(f"{origin}?{urlencode({'server': address, 'kind': 'client 2'})}")
        with page.expect_event("requestfailed") as failed:
            page.get_by_role("textbox").fill("hi")
            page.get_by_role("textbox").press("Enter")
        assert failed.value.url == f"{address}/threads"

"""A real server on a port of its own, and a real browser that looks at it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from everthread.http.page import FOLDER

BARE = (
    "--no-sandbox --headless --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
).split()
PATIENCE_SECONDS = 60.0
expect.set_options(timeout=PATIENCE_SECONDS * 1000)  # what is expected comes; how soon is for a benchmark to say


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; for one module, since its driver keeps a loop running that tests of others could not start."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs chromium: sh tools/chromium.sh")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=BARE)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `everthread serve` on SQLite, with a model that says everything back."""
    if not (FOLDER / "index.html").is_file():
        pytest.skip("the page is not built: make web")
    folder = tmp_path_factory.mktemp("served")
    database = f"sqlite:///{folder / 'et.db'}"
    environment = {**os.environ, "EVERTHREAD_MODEL": "scripted:echo", "EVERTHREAD_DATABASE": database}
    command = [sys.executable, "-m", "everthread"]
    subprocess.run([*command, "demo", "--load"], env=environment, cwd=folder, check=True, capture_output=True)
    port = _free_port()
    served = subprocess.Popen([*command, "serve", "--port", str(port)], env=environment, cwd=folder)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address)
        yield address
    finally:
        served.terminate()
        served.wait(PATIENCE_SECONDS)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait_for(address: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            if httpx.get(f"{address}/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise TimeoutError(f"no server at {address}")


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """A page that has loaded nothing yet, in English; what goes wrong in it fails the test."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-GB", base_url=server)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_SECONDS * 1000)
    wrong: list[str] = []
    elsewhere: list[str] = []
    opened.on("pageerror", lambda problem: wrong.append(str(problem)))
    opened.on(
        "request",
        lambda request: None if request.url.startswith((server, "data:", "blob:")) else elsewhere.append(request.url),
    )
    yield opened
    context.close()
    assert wrong == []
    assert [url for url in elsewhere if not url.startswith((server, "data:", "blob:"))] == []


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe, which finds what shuts people out."""
    program = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not program.is_file():
        pytest.skip("needs axe-core: make web")
    return program.read_text(encoding="utf-8")

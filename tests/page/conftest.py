"""A real server on a port of its own, and a real browser that looks at it."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from everthread.http.page import FOLDER
from tests.forkserver import SERVING, Child, ForkServer
from tools.chromium import chromium

BARE = (
    "--no-sandbox --headless --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
).split()
PATIENCE_SECONDS = 60.0
expect.set_options(timeout=PATIENCE_SECONDS * 1000)  # what is expected comes; how soon is for a benchmark to say


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; for one module, since its driver keeps a loop running that tests of others could not start."""
    program = chromium()
    if program is None:
        pytest.skip("needs chromium: sh tools/chromium.sh")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=BARE)
        yield opened
        opened.close()


class Served:
    """`everthread serve` on a port of its own, over SQLite in a folder; it can be stopped and begun again there."""

    def __init__(self, forkserver: ForkServer, folder: Path, **environment: str) -> None:
        self._forkserver = forkserver
        self.folder = folder
        database = f"sqlite:///{folder / 'et.db'}"
        given = {"EVERTHREAD_MODEL": "scripted:echo", "EVERTHREAD_DATABASE": database} | environment
        self._environment = {**os.environ, **given}
        self._port = _free_port()
        self._process: Child | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def run(self, *arguments: str) -> str:
        """A command of the program, on this database."""
        command = ("-m", "everthread", *arguments)
        done = self._forkserver.run_program(*command, folder=self.folder, env=self._environment, needs=SERVING)
        assert done.code == 0, done.err
        return done.out

    def begin(self) -> None:
        command = ("-m", "everthread", "serve", "--port", str(self._port))
        self._process = self._forkserver.start_program(
            *command, folder=self.folder, env=self._environment, needs=SERVING
        )
        _wait_for(self.address)

    def end(self) -> None:
        self._end_with(signal.SIGTERM)

    def kill(self) -> None:
        """As by a crash: nothing is put in order."""
        self._end_with(signal.SIGKILL)

    def _end_with(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send(number)
            self._process.wait()
            self._process = None


@contextmanager
def serving(forkserver: ForkServer, folder: Path, **environment: str) -> Iterator[Served]:
    if not (FOLDER / "index.html").is_file():
        pytest.skip("the page is not built: make web")
    served = Served(forkserver, folder, **environment)
    try:
        yield served
    finally:
        served.end()


@pytest.fixture(scope="module")
def server(forkserver: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the demo, and a model that says everything back."""
    with serving(forkserver, tmp_path_factory.mktemp("served")) as served:
        served.run("demo", "--load")
        served.begin()
        yield served.address


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


@contextmanager
def watched(browser: Browser, address: str) -> Iterator[Page]:
    """A page that has loaded nothing yet, in English; what goes wrong in it fails the test, and so does a request to
    another host."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, locale="en-GB", base_url=address)
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE_SECONDS * 1000)
    wrong: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda problem: wrong.append(str(problem)))
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with watched(browser, server) as opened:
        yield opened


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe, which finds what shuts people out."""
    program = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not program.is_file():
        pytest.skip("needs axe-core: make web")
    return program.read_text(encoding="utf-8")

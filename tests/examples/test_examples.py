"""Each example runs as it is, in an empty folder, and prints what it is there to show."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import everthread
from everthread.langgraph import ArchivingSaver
from tests.docs.test_readme import ROOT, output_of
from tests.forkserver import ForkServer
from tests.langgraph.test_archiving_saver import THREAD, echo

SHOWN = {
    "langgraph_saver.py": """\
in the state: 2
in the full history: 6 from the archive
complete: True
""",
    "langchain_middleware.py": """\
answer: It is zebra.
messages in the state: 126
the model saw fewer than 50: True
in the full history: 126
""",
    "deepagents_everything.py": """\
in the thread: 4
in its subagent: 4
characters of the tool's result: 208889
""",
    "own_loop.py": """\
kept: 200
sent in the last request, fewer than 120: True
chain verified: True
""",
}


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_prints_what_it_shows(name: str, forkserver: ForkServer, tmp_path: Path) -> None:
    assert output_of(str(ROOT / "examples" / name), forkserver=forkserver, folder=tmp_path) == SHOWN[name]


def test_every_example_is_run() -> None:
    found = {file.name for file in (ROOT / "examples").glob("*.py")}
    assert found == {*SHOWN, "langchain_archive.py"}  # which tests/docs runs


# -- the front end ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front end's example, compiled, with the JavaScript SDK beside it."""
    if shutil.which("npm") is None:
        pytest.skip("needs Node and npm")
    folder = tmp_path_factory.mktemp("frontend") / "frontend"
    shutil.copytree(ROOT / "examples" / "frontend", folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    fetched = _ran(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"], folder)
    if fetched.returncode != 0 and is_out_of_reach(fetched.stderr):
        pytest.skip("npm reaches no registry to fetch the JavaScript SDK from")
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    made = _ran(["npm", "run", "build"], folder)
    assert made.returncode == 0, made.stdout + made.stderr
    return folder


def _ran(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def is_out_of_reach(said: str) -> bool:
    """Whether npm failed because there is no network, and not because something is wrong with what it was to fetch."""
    codes = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT")
    return any(f"code {code}" in said or f"errno {code}" in said for code in codes)


def test_without_a_network_the_front_end_is_skipped_and_with_a_bad_package_it_fails() -> None:
    assert is_out_of_reach("npm error code ENOTFOUND\nnpm error errno ENOTFOUND\nnpm error network request failed")
    assert not is_out_of_reach("npm error code EINTEGRITY\nnpm error sha512 integrity checksum failed")


@contextmanager
def serving(pages: dict[str, Any], asked: list[str], status: int = 404) -> Iterator[str]:
    """A server that answers these paths; `status` for all others."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked.append(self.path)
            page = pages.get(parts.path)
            found = page(parse_qs(parts.query)) if callable(page) else page
            self.send_response(status if found is None else 200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found or {"detail": "not found"}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def show(built: Path, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", "dist/show.js", url, "t"], cwd=built, capture_output=True, text=True, check=False)


async def histories() -> dict[str | None, Any]:
    """What `full_history` answers, page by page, by cursor."""
    pages: dict[str | None, Any] = {}
    async with everthread.open("memory://") as et:
        saver = ArchivingSaver(InMemorySaver(), et)
        for number in range(3):
            await echo(saver).ainvoke({"messages": [f"q{number}"]}, THREAD)
        cursor: str | None = None
        while not pages or cursor is not None:
            page = await et.full_history("t", saver=saver, limit=4, cursor=cursor)
            pages[cursor] = page
            cursor = page["next_cursor"]
    return pages


async def test_a_page_loads_the_full_history_through_the_sdk(built: Path) -> None:
    pages = await histories()
    assert len(pages) == 2
    asked: list[str] = []
    with serving({"/threads/t/full-history": lambda query: pages[query.get("cursor", [None])[0]]}, asked) as url:
        loaded = json.loads(show(built, url).stdout)
    assert [message["content"] for message in loaded["messages"]] == ["q0", "re: q0", "q1", "re: q1", "q2", "re: q2"]
    assert (loaded["source"], loaded["complete"], loaded["gaps"]) == ("archive", True, [])
    assert all("merge_checkpoint=true" in path for path in asked)


def test_a_server_without_it_gives_the_state_and_the_page_knows(built: Path) -> None:
    state = {"values": {"messages": [{"type": "human", "content": "hi"}]}, "next": [], "tasks": []}
    asked: list[str] = []
    with serving({"/threads/t/state": state}, asked) as url:
        loaded = json.loads(show(built, url).stdout)
    assert [message["content"] for message in loaded["messages"]] == ["hi"]
    assert (loaded["source"], loaded["complete"]) == ("state", False)


def test_a_server_that_fails_is_an_error_and_no_short_history(built: Path) -> None:
    state = {"values": {"messages": []}, "next": [], "tasks": []}
    with serving({"/threads/t/state": state}, [], status=500) as url:
        ran = show(built, url)
    assert ran.returncode != 0
    assert ran.stdout == ""

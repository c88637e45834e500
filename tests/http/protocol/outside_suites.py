"""Suites that others wrote for servers of this protocol, run against our server and against LangGraph's own.

They are not part of this project: check them out, name the folders, and run

    EVERTHREAD_LANGGRAPH_CHECKOUT=../langgraph EVERTHREAD_AEGRA_CHECKOUT=../aegra make test-long \
        ARGS=tests/http/protocol/test_outside_suites.py

which also writes the table in docs/reference/langgraph-protocol.md. LangGraph's own server comes with `make peers`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import xml.etree.ElementTree as xml
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from tests.http.served import listening

ROOT = Path(__file__).parents[3]
REFERENCE = ROOT / ".venv-peers" / "bin" / "langgraph"
PAGE = ROOT / "docs" / "reference" / "langgraph-protocol.md"
_TRIES = 2
_PACE_SECONDS = 0.02
"""For each word of the model that aegra's graphs ask, streamed or not: some tests cancel what it writes."""
_LIMIT_SECONDS = 20
"""For each of their tests. One that fails is tried once more, on both servers: the client for threads may miss an
interrupt that comes at once, and then waits for ever."""


class Suite(NamedTuple):
    """Where it is in its checkout, and what it needs."""

    name: str
    variable: str
    """Of the environment: where the checkout is."""
    folder: str
    """Whence it is run."""
    tests: str
    marker: str
    graphs: str
    """The file that names its graphs."""
    absent: Mapping[str, str]
    """Tests that need what we declare absent, by the beginning of their names, and what that is."""

    @property
    def checkout(self) -> Path | None:
        named = os.environ.get(self.variable)
        return Path(named).resolve() if named else None


LANGGRAPH = Suite(
    name="LangGraph's SDK",
    variable="EVERTHREAD_LANGGRAPH_CHECKOUT",
    folder="libs/sdk-py",
    tests="tests/integration",
    marker="integration",
    graphs="libs/sdk-py/integration/langgraph.json",
    absent={"test_websocket": "WebSocket"},
)
AEGRA = Suite(
    name="aegra",
    variable="EVERTHREAD_AEGRA_CHECKOUT",
    folder="libs/aegra-api",
    tests="tests/e2e",
    marker="e2e and not auth_only and not manual_auth",
    graphs="aegra.json",
    absent={"test_custom_routes": "routes of an app's own"},
)


class Results(NamedTuple):
    """The tests of one suite by their names, `file::test`, and whether each passed."""

    ours: Mapping[str, bool]
    theirs: Mapping[str, bool]

    def worse(self, suite: Suite) -> list[str]:
        """What LangGraph's own server passes and ours does not, though it is not declared absent."""
        return sorted(
            test
            for test, passed in self.theirs.items()
            if passed and not self.ours.get(test) and not test.startswith(tuple(suite.absent))
        )

    def rows(self, suite: Suite) -> list[str]:
        files = sorted({test.partition("::")[0] for test in (*self.ours, *self.theirs)})
        return [self._row(suite, file) for file in files]

    def _row(self, suite: Suite, file: str) -> str:
        ours = [passed for test, passed in self.ours.items() if test.startswith(f"{file}::")]
        theirs = [passed for test, passed in self.theirs.items() if test.startswith(f"{file}::")]
        why = next((f"no {what}" for start, what in suite.absent.items() if file.startswith(start)), "")
        return f"| {suite.name} | `{file}` | {sum(ours)} of {len(ours)} | {sum(theirs)} of {len(theirs)} | {why} |"


async def run_suite(suite: Suite, checkout: Path, folder: Path) -> Results:
    """Against both servers, one after the other."""
    async with _model() as model:
        environment = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model, "LANGSMITH_TRACING": "false"}
        graphs = _graphs(checkout / suite.graphs, folder)
        async with _our_server(graphs, folder, environment) as address:
            ours = await _run_tests(suite, checkout, address, folder / "ours", environment)
        async with _reference(graphs, environment) as address:
            theirs = await _run_tests(suite, checkout, address, folder / "theirs", environment)
    return Results(ours, theirs)


def _graphs(file: Path, folder: Path) -> Path:
    """The graphs of a suite, without routes, logins and scopes of their own; paths as they are seen from elsewhere."""
    given = json.loads(file.read_text())
    graphs = {name: str(file.parent / place) for name, place in given["graphs"].items()}
    written = folder / "graphs" / "langgraph.json"
    written.parent.mkdir(parents=True)
    dependencies = [str((file.parent / place).resolve()) for place in given["dependencies"]]
    written.write_text(json.dumps({"dependencies": dependencies, "graphs": graphs}))
    return written


# -- servers ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _our_server(graphs: Path, folder: Path, environment: Mapping[str, str]) -> AsyncIterator[str]:
    database = f"sqlite:///{folder / 'et.db'}"
    command = (sys.executable, "-m", "everthread", "serve", "--database", database, "--langgraph", str(graphs))
    async with _started((*command, "--port", "0", "--json"), graphs.parent, environment, says=True) as process:
        assert process.stdout is not None
        yield str(json.loads(await process.stdout.readline())["listening"])


@asynccontextmanager
async def _reference(graphs: Path, environment: Mapping[str, str]) -> AsyncIterator[str]:
    port = free_port()
    command = (str(REFERENCE), "dev", "--no-browser", "--no-reload", "--allow-blocking", "--port", str(port))
    async with _started((*command, "--config", str(graphs)), graphs.parent, environment):
        address = f"http://127.0.0.1:{port}"
        await until_up(address)
        yield address


@asynccontextmanager
async def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, says: bool = False
) -> AsyncIterator[asyncio.subprocess.Process]:
    silent = asyncio.subprocess.DEVNULL
    out = asyncio.subprocess.PIPE if says else silent
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdout=out, stderr=silent)
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


async def until_up(address: str) -> None:
    """Wait until a server of the protocol answers."""
    async with httpx.AsyncClient(base_url=address) as http:
        for _ in range(3000):
            try:
                if (await http.get("/ok")).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise TimeoutError("the reference server did not come up")


# -- their tests -----------------------------------------------------------------------------------------------------

_AEGRA_SETTINGS = """
import os
from types import SimpleNamespace

settings = SimpleNamespace(
    app=SimpleNamespace(SERVER_URL=os.environ["SERVER_URL"], KEEPALIVE_INTERVAL_SECS=5),
    cron=SimpleNamespace(CRON_ALLOW_SECONDS_SCHEDULE=False, CRON_POLL_INTERVAL_SECONDS=60),
    observability=SimpleNamespace(ENABLE_PROMETHEUS_METRICS=False),
)
"""
"""All that aegra's tests need of aegra itself: where the server is."""


_ADDRESS = """
import os

def pytest_collection_modifyitems(items):
    for item in items:
        if str(getattr(item.module, "URL", "")).endswith(":2024"):
            item.module.URL = os.environ["SERVER_URL"]
"""
"""A plugin: the tests of RemoteGraph name no address but the port 2024, which may be taken."""


async def _run_tests(
    suite: Suite, checkout: Path, address: str, folder: Path, environment: Mapping[str, str]
) -> dict[str, bool]:
    package = folder / "aegra_api"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(_AEGRA_SETTINGS)
    (folder / "address_of_tests.py").write_text(_ADDRESS)
    report = folder / "report.xml"
    options = (
        "-p",
        "no:cacheprovider",
        "-p",
        "no:langsmith_plugin",
        "-p",
        "no:schemathesis",
        "-p",
        "address_of_tests",
        "-q",
        "--noconftest",
    )
    kept = tuple(option for option in options if suite is AEGRA or option != "--noconftest")
    limit = (
        "--timeout",
        str(_LIMIT_SECONDS),
        "--reruns",
        str(_TRIES - 1),
        "-o",
        "addopts=",
        "-o",
        "asyncio_mode=auto",
        "-o",
        "timeout_func_only=true",  # else a second try has no limit
        "-W",
        "ignore",
    )
    marks = ("-m", suite.marker, "--continue-on-collection-errors", f"--junitxml={report}")
    where = {
        "LANGGRAPH_INTEGRATION_URL": address,
        "SERVER_URL": address,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", suite.tests, *kept, *limit, *marks),
        cwd=checkout / suite.folder,
        env={**environment, **where},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    (folder / "said.txt").write_bytes(said)
    return _passed(report)


def _passed(report: Path) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.find("skipped") is None:
            file = case.get("classname", "").rpartition(".")[2]
            failed = case.find("failure") is not None or case.find("error") is not None
            found[f"{file}::{case.get('name')}"] = not failed
    return found


# -- the model that aegra's graphs ask -------------------------------------------------------------------------------


@asynccontextmanager
async def _model() -> AsyncIterator[str]:
    """A server of OpenAI's protocol: it asks for the first tool there is when asked to search or for the weather, and
    else counts words, slowly enough to be cancelled."""
    app = FastAPI()
    app.post("/v1/chat/completions", response_model=None)(_complete)
    async with listening(app) as address:
        yield f"{address}/v1"


async def _complete(request: Request) -> Response:
    asked = await request.json()
    message = _answer(asked["messages"], asked.get("tools") or [])
    finish = "tool_calls" if "tool_calls" in message else "stop"
    common = {"id": "c", "created": 0, "model": asked["model"]}
    if not asked.get("stream"):
        await asyncio.sleep(_PACE_SECONDS * len(_pieces(message)))
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return JSONResponse({**common, "object": "chat.completion", "choices": [choice], "usage": usage})

    async def lines() -> AsyncIterator[str]:
        for delta in [*_pieces(message), {}]:
            choice = {"index": 0, "delta": delta, "finish_reason": None if delta else finish}
            yield f"data: {json.dumps({**common, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"
            await asyncio.sleep(_PACE_SECONDS)
        yield "data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


def _answer(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    last = messages[-1]
    text = str(last.get("content")).lower()
    if last["role"] == "user" and tools and any(word in text for word in ("search", "weather", "tool", "look up")):
        function = {"name": tools[0]["function"]["name"], "arguments": json.dumps({"query": "weather"})}
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    count = 200 if any(word in text for word in ("long", "essay", "slowly", "detail")) else 10
    return {"role": "assistant", "content": " ".join(f"word{number}" for number in range(count))}


def _pieces(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "tool_calls" in message:
        calls = [{"index": index, **call} for index, call in enumerate(message["tool_calls"])]
        return [{"role": "assistant", "content": "", "tool_calls": calls}]
    return [{"role": "assistant", "content": f"{word} "} for word in message["content"].split()]


# -- the table -------------------------------------------------------------------------------------------------------

_MARK = "outside suites: written by tests/http/protocol/test_outside_suites.py"


def write_rows(suite: Suite, rows: Sequence[str]) -> None:
    """Put a suite's rows into the reference, in the place of those it has there."""
    others = [line for line in _table(_MARK)[1][2:] if not line.startswith(f"| {suite.name} |")]
    head = ["suite", "file", "passed here", "by LangGraph's own server", ""]
    write_table(_MARK, head, sorted([*others, *rows]))


def write_table(mark: str, head: Sequence[str], rows: Sequence[str]) -> None:
    """Put a table into the reference, in the place of the one that stands between this mark and the next end."""
    before, _, after = _table(mark)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *rows]
    PAGE.write_text(f"{before}<!-- {mark} -->\n{chr(10).join(lines)}\n<!-- end -->{after}")


def _table(mark: str) -> tuple[str, list[str], str]:
    """What stands before a table of the reference, its lines, and what stands after it."""
    before, begin, rest = PAGE.read_text().partition(f"<!-- {mark} -->")
    table, end, after = rest.partition("<!-- end -->")
    assert begin, f"no {mark} in {PAGE}"
    assert end, f"no end of it in {PAGE}"
    return before, table.strip().splitlines(), after

"""Every operation with whatever its schema allows, and with what it forbids, on a real server, with a key and on things
that there are: never a 5xx, never an answer that the OpenAPI does not declare. One of each here, many in
`make test-long`."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.served import listening

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
NOT_INSTALLED = 501
"""What an extra would bring is no defect of a server without it."""
DELETING = {"POST", "DELETE"}
"""The methods of what may delete what a next case is to find."""
QUIET = [
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
]
EXAMPLES = 300 if settings.get_current_profile_name() == "new" else 1
"""For each operation, beside what schemathesis finds at the edges of each of its parameters."""
CHOSEN = Settings(
    database="memory://",
    model="scripted:echo",
    requests_per_minute=0,
    max_body_bytes=65_536,
    langgraph_config=Path(__file__).parent / "protocol" / "langgraph.json",
)
WHOLE = schemathesis.openapi.from_dict(create_app(everthread.open("memory://", worker=False), CHOSEN).openapi())
SCHEMA = WHOLE.exclude(path_regex="/import$")
"""Archives are no text that could be made up; they have tests of their own."""
OPERATIONS = {
    operation.label: operation
    for operation in (found.ok() for found in SCHEMA.get_all_operations())  # type: ignore[union-attr]  # a broken one raises
}


class Service(NamedTuple):
    """Where it listens, and the key of somebody who may do everything."""

    address: str
    key: str


class _Running(threading.Thread):
    """The service in a loop of its own, so that what a request has started goes on."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._is_up = threading.Event()
        self.service = Service("", "")

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with everthread.open("memory://", worker=False) as et:
            made = new_key("alice", is_admin=True, now=system_clock())
            await et.store.api_keys.add(made.key)
            async with listening(create_app(et, CHOSEN)) as address:
                self.service = Service(address, made.written)
                self._is_up.set()
                await self._end.wait()

    def begin(self) -> Service:
        self.start()
        assert self._is_up.wait(60)
        return self.service

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self.join()


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with closing(_Running()) as running:
        yield running.begin()


class Things:
    """What there is to be named: a conversation with a message, a run, a checkpoint, a document, an assistant."""

    def __init__(self, service: Service) -> None:
        headers = {"Authorization": f"Bearer {service.key}"}
        self._http = httpx.Client(base_url=service.address, headers=headers, timeout=60)
        self._made: dict[str, str] = {}
        self.session = requests.Session()
        """For the cases, which schemathesis words for it."""

    def close(self) -> None:
        self._http.close()
        self.session.close()

    def name_in(self, given: Any) -> None:
        """Most of the time something that there is; what is made up is nearly always refused at once."""
        for name in given if isinstance(given, dict) else ():
            if (
                name in self._made
                and isinstance(given[name], str)
                and zlib.crc32(given[name].encode("utf-8", "replace")) % 4
            ):
                given[name] = self._made[name]

    def make(self) -> None:
        """Anew, where an example has deleted them."""
        thread = self._made.get("thread_id", "none")
        if self._http.get(f"/threads/{thread}").status_code != httpx.codes.OK:
            self._made = _make(self._http)


@pytest.fixture(scope="module")
def things(service: Service) -> Iterator[Things]:
    with closing(Things(service)) as made:
        yield made


def _make(http: httpx.Client) -> dict[str, str]:
    thread = http.post("/threads", json={"metadata": {"k": "v"}}).json()["thread_id"]
    said = {"messages": [{"role": "user", "content": "hello", "id": "m"}]}
    http.post(f"/threads/{thread}/runs/wait", json={"assistant_id": "agent", "input": said}).raise_for_status()
    state = http.get(f"/threads/{thread}/state").json()
    run = http.get(f"/threads/{thread}/runs").json()[0]
    assistant = http.post("/assistants", json={"graph_id": "agent"}).json()["assistant_id"]
    http.put("/store/items", json={"namespace": ["notes"], "key": "k", "value": {}}).raise_for_status()
    return {
        "thread_id": thread,
        "conversation_id": thread,
        "message_id": "m",
        "run_id": run["run_id"],
        "turn_id": run["run_id"],
        "checkpoint_id": state["checkpoint_id"],
        "assistant_id": assistant,
        "namespace": "notes",
        "key": "k",
    }


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=QUIET)
def _keeps_to_its_schema(case: Any, service: Service, things: Things) -> None:
    if case.method in DELETING:
        things.make()
    for part in (case.path_parameters, case.query, case.body):
        things.name_in(part)
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {service.key}"}
    case.headers.pop("Idempotency-Key", None)
    asked = case.as_transport_kwargs(base_url=service.address)
    with things.session.request(**asked, stream=True, timeout=60) as answer:
        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        if is_stream:  # some have no end
            answer._content = b""
        else:
            assert answer.content is not None
    assert answer.status_code < 500 or answer.status_code == NOT_INSTALLED, answer.text
    case.validate_response(answer, checks=CHECKS[:2] if is_stream else CHECKS)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # of hypothesis to schemathesis, by some seeds
@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_keeps_to_its_schema(label: str, service: Service, things: Things) -> None:
    """Its cases are made here. `SCHEMA.parametrize()` makes those of all operations whenever tests are collected, which
    takes every process of a run some seconds."""
    things.make()
    build_operation_test(
        config=SCHEMA.config,
        operation=OPERATIONS[label],
        test_func=_keeps_to_its_schema,
        given_kwargs={},
        feedback=FeedbackSources(),
    )(service=service, things=things)

"""Every operation with whatever its schema allows, and with what it forbids: never a 5xx, never an answer that the
OpenAPI does not declare. A few of each here, many in `make test-long`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import everthread
from everthread.http.app import create_app
from everthread.settings import Settings

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STREAMS = r"(/stream$|^/(assistants|threads|runs|store|info|ok))"
"""Streams have tests of their own, and LangGraph's protocol is held against its own server."""
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The service over a database that lives in a loop of its own, where requests come in one by one."""
    folder: Path = tmp_path_factory.mktemp("schema")
    chosen = Settings(
        database="memory://", model="scripted:echo", models_dir=folder, requests_per_minute=0, max_body_bytes=65_536
    )
    with anyio.from_thread.start_blocking_portal() as portal:
        et = everthread.open("memory://", worker=False)
        with portal.wrap_async_context_manager(et) as opened:
            yield schemathesis.openapi.from_asgi("/openapi.json", create_app(opened, chosen, needs_key=False))


def _tried(case: Any) -> None:
    case.headers = {**(case.headers or {}), "Host": "127.0.0.1"}
    case.headers.pop("Idempotency-Key", None)
    case.call_and_validate(checks=CHECKS)


lazy = schemathesis.pytest.from_fixture("schema").exclude(path_regex=STREAMS)


@lazy.parametrize()
@settings(max_examples=4, deadline=None, suppress_health_check=QUIET, derandomize=True)
def test_an_operation_keeps_to_its_schema(case: Any) -> None:
    _tried(case)


@pytest.mark.long
@lazy.parametrize()
@settings(max_examples=300, deadline=None, suppress_health_check=QUIET)
def test_an_operation_keeps_to_its_schema_whatever_comes(case: Any) -> None:
    _tried(case)

"""Every operation with whatever its schema allows, and with what it forbids: never a 5xx, never an answer that the
OpenAPI does not declare. A few of each here, many in `make test-long`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import everthread
from everthread.http.app import create_app
from everthread.settings import Settings

CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
STREAMS = r"(/stream$|/import$|^/(assistants|threads|runs|store|info|ok))"
"""Streams and archives have tests of their own, and LangGraph's protocol is held against its own server."""
NOT_INSTALLED = 501
"""What an extra would bring is no defect of a server without it."""
QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
EXAMPLES = 300 if settings.get_current_profile_name() == "new" else 3
"""One test for both: each has its operations worked through, in seconds, whenever tests are collected."""

DATABASE = everthread.open("memory://", worker=False)
APP = create_app(
    DATABASE,
    Settings(database="memory://", model="scripted:echo", requests_per_minute=0, max_body_bytes=65_536),
    needs_key=False,
)
SCHEMA = schemathesis.openapi.from_dict(APP.openapi()).exclude(path_regex=STREAMS)
SCHEMA.app = APP


@pytest.fixture(scope="module", autouse=True)
def opened() -> Iterator[None]:
    """In memory a database belongs to no loop, so each request may have its own."""
    asyncio.run(DATABASE.__aenter__())
    yield
    asyncio.run(DATABASE.close())


@SCHEMA.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=QUIET)
def test_an_operation_keeps_to_its_schema(case: Any) -> None:
    case.headers = {**(case.headers or {}), "Host": "127.0.0.1"}
    case.headers.pop("Idempotency-Key", None)
    answer = case.call()
    assert answer.status_code < 500 or answer.status_code == NOT_INSTALLED, answer.text
    case.validate_response(answer, checks=CHECKS)

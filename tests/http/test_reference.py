"""The reference names every operation of the service, and none that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import everthread
from everthread.http.app import create_app
from everthread.http.errors import PROBLEM_TYPES
from everthread.settings import Settings
from tests.http.operations import operations

PAGES = (Path(__file__).parents[2] / "docs" / "reference" / "http.md", Path(__file__).parents[2] / "docs/zh/http.md")
ROW = re.compile(r"^\| `(?P<method>[A-Z]+) (?P<path>/[^`?]*)(?:\?[^`]*)?` \|", re.M)
OURS = ("/api/v1", "/healthz", "/readyz", "/metrics")


def test_every_operation_is_documented_and_exists() -> None:
    app = create_app(everthread.open("memory://", worker=False), Settings(database="memory://"))
    known = {
        (one.method.upper(), re.sub(r"\{\w+\}", "{}", one.path)) for one in operations(app) if one.path.startswith(OURS)
    }
    for page in PAGES:
        rows = ROW.finditer(page.read_text(encoding="utf-8"))
        documented = {(row["method"], re.sub(r"\{\w+\}", "{}", row["path"])) for row in rows}
        assert documented == known, page


def test_every_code_of_an_error_is_documented_at_its_status() -> None:
    for page in PAGES:
        rows = re.findall(r"^\| (\d{3}) \|(.*)\|$", page.read_text(encoding="utf-8"), re.M)
        documented = {int(status): set(re.findall(r"`([a-z_]+)`", codes)) for status, codes in rows}
        for error, kind in PROBLEM_TYPES.items():
            assert error.code in documented[kind.status], (page, error)

"""The page's types of what comes over the wire are those of the service as it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.forkserver import SERVING, ForkServer

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "web" / "src" / "api" / "schema.d.ts"
MAKER = ROOT / "web" / "node_modules" / ".bin" / "openapi-typescript"


@pytest.fixture(scope="module")
def schema(forkserver: ForkServer) -> str:
    """What the service says of the operations that the page asks for."""
    ran = forkserver.run_program(str(ROOT / "tools" / "openapi.py"), folder=ROOT, env=os.environ, needs=SERVING)
    assert ran.code == 0, ran.err
    return ran.out


def test_the_types_are_those_of_the_service(schema: str) -> None:
    if not MAKER.exists():
        pytest.skip("needs openapi-typescript: make web")
    command = ["npm", "--prefix", str(ROOT / "web"), "run", "--silent", "types"]
    made = subprocess.run(command, input=schema, check=True, capture_output=True, text=True).stdout
    assert made.strip() == KEPT.read_text(encoding="utf-8").strip(), "out of date: make types"


def test_only_what_the_page_asks_for_is_typed(schema: str) -> None:
    asked = json.loads(schema)
    assert "/conversations/{conversation_id}/messages" in asked["paths"]
    assert "/erase" not in asked["paths"]
    assert "RunBody" not in asked["components"]["schemas"]
    assert "description" not in asked["components"]["schemas"]["Policy"]
    assert "description" in asked["components"]["schemas"]["ToolOut"]["properties"], (
        "a field of that name is no sentence"
    )

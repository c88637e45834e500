"""What others test servers of this protocol with: no test fails here that LangGraph's own server passes, except those
of what docs/reference/langgraph-protocol.md declares absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.protocol.outside_suites import AEGRA, LANGGRAPH, REFERENCE, Suite, run_suite, write_rows

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference server: make peers"),
]


@pytest.mark.parametrize("suite", [LANGGRAPH, AEGRA], ids=["langgraph", "aegra"])
async def test_a_suite_of_others_finds_nothing_worse_than_in_langgraphs_own_server(
    suite: Suite, tmp_path: Path
) -> None:
    if (checkout := suite.checkout) is None:
        pytest.skip(f"set {suite.variable} to a checkout")
    results = await run_suite(suite, checkout, tmp_path)
    assert results.theirs, (tmp_path / "theirs" / "said.txt").read_text()
    write_rows(suite, results.rows(suite))
    assert results.worse(suite) == []

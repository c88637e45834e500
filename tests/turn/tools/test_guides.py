"""The programs of the guides on tools and files print what stands beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from everthread import Everthread
from everthread.core.tools import ToolPolicy
from everthread.turn.skills import SHIPPED_SKILLS, load_skills
from everthread.turn.tools import ToolContext, make_tools
from tests.docs.test_readme import ROOT, output_of
from tests.forkserver import ForkServer

SHOWN = re.compile(r"```python\n(?P<program>import asyncio\n.*?)```\n\n```text\n(?P<output>.*?)```", re.S)
GUIDES = [
    f"docs/{folder}/{page}.md" for folder in ("how-to", "zh") for page in ("work-with-files", "give-an-agent-tools")
]


@pytest.mark.parametrize("page", GUIDES)
def test_a_program_prints_what_the_page_shows(page: str, forkserver: ForkServer, tmp_path: Path) -> None:
    (program,) = SHOWN.finditer((ROOT / page).read_text(encoding="utf-8"))
    assert output_of("-c", program["program"], forkserver=forkserver, folder=tmp_path) == program["output"]


async def test_every_tool_and_argument_stands_in_the_reference(memory_et: Everthread) -> None:
    page = (ROOT / "docs/reference/tools.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|([^|]*)\|", page, re.M))
    context = ToolContext.create(
        memory_et,
        await memory_et.conversations.create(),
        policy=ToolPolicy(run_command=True),
        skills=load_skills(SHIPPED_SKILLS).skills,
    )
    tools = {tool.name: tool for tool in make_tools(context)}
    assert set(rows) == set(tools)
    for name, tool in tools.items():
        told = {found for code in re.findall(r"`([^`]*)`", rows[name]) for found in [code.partition("=")[0]]}
        assert set(tool.args) <= told, name

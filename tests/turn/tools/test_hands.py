"""The hands of an agent: tools and skills of a turn, by what its question names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import everthread
from everthread import Everthread
from everthread.core.tools import ToolPolicy, unregister
from everthread.turn.tools.hands import Hands


@pytest.fixture(autouse=True)
def deploy() -> Iterator[None]:
    """A tool that must be named."""

    @everthread.tool(offered="when_named")
    def deploy() -> str:
        """Put it online."""
        return "done"

    yield
    unregister("deploy")


async def test_a_tool_that_must_be_named_is_there_when_it_is(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    hands = Hands.of(ToolPolicy())

    def names(question: str, *named: str) -> set[str]:
        return {tool.name for tool in hands.tools(memory_et, conv, question=question, named=named)}

    assert "deploy" not in names("please deploy it")
    assert "deploy" in names("@deploy please")
    assert "deploy" in names("please", "deploy")
    assert {"read_file", "now", "use_skill", "history_search"} <= names("hello")
    assert "run_command" not in names("@run_command ls")


def test_a_skill_is_in_the_prompt_when_it_is_named_or_active(tmp_path: Path) -> None:
    hands = Hands.of(ToolPolicy(), skills_dir=tmp_path)
    assert hands.prompt("hello").count("\n") == 0
    assert "# From a table to a report" in hands.prompt("use @data-report on this")
    assert "# From a table to a report" in hands.prompt("go on", active="data-report")
    assert hands.prompt("mail to @nobody") == hands.prompt("hello")

"""Tools of the users' own: by decorator and by entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool

import everthread
from everthread import Conflict, Invalid
from everthread.core.tools import registered_tools, unregister
from everthread.turn.tools import ToolContext, make_tools
from everthread.turn.tools.user_tools import ENTRY_POINT_GROUP, load_entry_points
from tests.turn.tools.conftest import ToolCaller


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = set(registered_tools())
    yield
    for name in set(registered_tools()) - before:
        unregister(name)


def named(context: ToolContext, name: str) -> BaseTool:
    (found,) = (tool for tool in make_tools(context) if tool.name == name)
    return found


async def test_a_registered_function_is_a_tool_with_its_signature(toolbox: ToolCaller) -> None:
    @everthread.tool
    async def weather(city: Annotated[str, "where"], days: int = 1) -> dict[str, Any]:
        """What the weather will be."""
        return {"city": city, "days": days}

    tool = named(toolbox.context, "weather")
    assert tool.description == "What the weather will be."
    assert {name: field["type"] for name, field in tool.args.items()} == {"city": "string", "days": "integer"}
    assert tool.args["city"]["description"] == "where"
    assert '"days": 3' in await toolbox("weather", city="Kunming", days=3)
    assert await weather("Kunming") == {"city": "Kunming", "days": 1}


async def test_a_function_gets_the_tool_context_and_the_model_does_not_see_it(toolbox: ToolCaller) -> None:
    @everthread.tool(name="where-am-i")
    def where(tool_context: ToolContext) -> str:
        """The conversation."""
        return tool_context.conversation.id

    assert named(toolbox.context, "where-am-i").args == {}
    assert await toolbox("where-am-i") == toolbox.context.conversation.id
    assert "do not fit" not in await toolbox("where-am-i", tool_context="forged")


async def test_ours_are_not_replaced_by_a_tool_of_the_same_name(toolbox: ToolCaller) -> None:
    @everthread.tool(name="read_file")
    def theirs(path: str) -> str:
        """Reads anything."""
        return "stolen"

    await toolbox("write_file", path="a", text="mine")
    assert await toolbox("read_file", path="a") == "mine"


def test_a_name_is_taken_once() -> None:
    @everthread.tool(name="one")
    def first() -> None:
        """First."""

    with pytest.raises(Conflict, match="'one'"):

        @everthread.tool(name="one")
        def second() -> None:
            """Second."""


def test_what_a_model_could_not_be_shown_is_refused() -> None:
    def silent() -> None: ...

    for given, options in ((silent, {}), (len, {"name": "two words"}), (len, {"timeout_seconds": 0})):
        with pytest.raises(Invalid):
            everthread.tool(**options)(given)
    with pytest.raises(Invalid):
        everthread.tool(7)  # type: ignore[call-overload]


# --- entry points -----------------------------------------------------------------------------------

PACKAGE = '''
from langchain_core.tools import tool

def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()

@tool
def whisper(text: str) -> str:
    """Say it quietly."""
    return text.lower()

both = [shout, whisper]
number = 7
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package that names tools."""
    (tmp_path / "loud_tools.py").write_text(PACKAGE)
    (tmp_path / "broken_tools.py").write_text("raise RuntimeError('broken on import')")
    info = tmp_path / "loud_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINT_GROUP}]\nboth = loud_tools:both\nbroken = broken_tools:x\nabsent = no_such_module:x\n"
        "gone = loud_tools:gone\nnumber = loud_tools:number\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("loud_tools", "broken_tools"):
        sys.modules.pop(name, None)


def test_tools_of_packages_are_loaded_and_broken_ones_are_told(package: Path) -> None:
    found = load_entry_points(entry_points(group=ENTRY_POINT_GROUP))
    assert [one.name for one in found.tools] == ["shout", "whisper"]
    assert len(found.problems) == 4
    assert any("broken on import" in problem for problem in found.problems)


def test_an_entry_point_may_name_one_function(package: Path) -> None:
    (shout,) = load_entry_points([EntryPoint(name="x", value="loud_tools:shout", group=ENTRY_POINT_GROUP)]).tools
    assert shout.description == "Say it loudly."

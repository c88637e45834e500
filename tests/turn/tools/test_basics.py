"""The time and the list of things to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from everthread.turn.tools import StateChanges
from tests.turn.tools.conftest import ToolCaller


async def test_the_time_is_told_in_any_zone(make_toolbox: Callable[..., Any]) -> None:
    toolbox = await make_toolbox(clock=lambda: datetime(2026, 2, 28, 23, 30, tzinfo=UTC))
    assert await toolbox("now") == "2026-02-28T23:30:00+00:00 (Saturday, UTC)"
    assert await toolbox("now", timezone="Asia/Shanghai") == "2026-03-01T07:30:00+08:00 (Sunday, Asia/Shanghai)"


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "a\x00b"])
async def test_what_is_no_time_zone_is_told(toolbox: ToolCaller, zone: str) -> None:
    assert "unknown time zone" in await toolbox.refused("now", timezone=zone)


async def test_todos_are_written_as_a_whole_and_left_for_the_graph(toolbox: ToolCaller) -> None:
    todos = [
        {"content": "look", "status": "completed"},
        {"content": "think", "status": "in_progress"},
        {"content": "do"},
    ]
    assert await toolbox("todo_write", todos=todos) == "[x] look\n[~] think\n[ ] do"
    assert toolbox.changes["todos"] == [*todos[:2], {"content": "do", "status": "pending"}]
    assert await toolbox("todo_read") == "[x] look\n[~] think\n[ ] do"
    await toolbox("todo_write", todos=[])
    assert await toolbox("todo_read") == "Nothing is to be done."


async def test_todos_that_do_not_fit_change_nothing(toolbox: ToolCaller) -> None:
    await toolbox("todo_write", todos=[{"content": "stay"}])
    wrongs: list[Any] = [[{"content": "x", "status": "soon"}], [{"content": ""}], [{}], "x", [{"content": "x"}] * 201]
    for wrong in wrongs:
        assert "do not fit" in await toolbox.refused("todo_write", todos=wrong)
    assert toolbox.changes["todos"] == [{"content": "stay", "status": "pending"}]
    assert await toolbox("todo_read") == "[ ] stay"


async def test_todos_are_those_of_the_last_turn_until_this_one_writes(make_toolbox: Callable[..., Any]) -> None:
    async def state() -> dict[str, Any]:
        return {"todos": [{"content": "from before", "status": "in_progress"}]}

    toolbox = await make_toolbox(state_changes=StateChanges(state))
    assert await toolbox("todo_read") == "[~] from before"
    await toolbox("todo_write", todos=[{"content": "new"}])
    assert await toolbox("todo_read") == "[ ] new"

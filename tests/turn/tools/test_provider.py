"""Tools and skills inside of a turn: what is offered, what is called, what the next turn finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread import Conversation, Everthread
from everthread.core.tools import unregister
from everthread.settings import Settings
from everthread.testing import Reply, ScriptedModel
from everthread.turn import Agent, result_metadata, run_turn


@pytest.fixture(autouse=True)
def deploy() -> Iterator[None]:
    """A tool that must be named."""

    @everthread.tool(offered="when_named")
    def deploy() -> str:
        """Put it online."""
        return "online"

    yield
    unregister("deploy")


@pytest.fixture
async def agent(memory_et: Everthread, tmp_path: Path) -> Agent:
    return everthread.agent(memory_et, settings=Settings.load(skills_dir=tmp_path / "skills"))


async def asked(agent: Agent, conv: Conversation, text: str, *script: Any, **options: Any) -> ScriptedModel:
    """One turn to its end; the model with the requests it got."""
    model = ScriptedModel([*script, "Done."])
    events = [event async for event in run_turn(conv, text, agent=agent, model=model, **options)]
    assert events[-1].kind == "done", events[-1]
    return model


async def test_a_tool_that_must_be_named_is_offered_when_it_is(agent: Agent, memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    assert "deploy" not in (await asked(agent, conv, "please deploy it")).requests[0].tools
    assert "deploy" in (await asked(agent, conv, "@deploy please")).requests[0].tools
    assert "deploy" in (await asked(agent, conv, "please", allowed_tools=["dep*"])).requests[0].tools
    assert "deploy" in (await asked(agent, conv, "please", persistent_tools=["deploy"])).requests[0].tools
    assert "deploy" in (await asked(agent, conv, "and again")).requests[0].tools
    offered = (await asked(agent, conv, "@run_command ls")).requests[0].tools
    assert {"read_file", "now", "use_skill", "history_search", "plot", "call_subagent"} <= set(offered)
    assert "run_command" not in offered


async def test_todos_stay_with_the_conversation(agent: Agent, memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    todos = [{"content": "book a flight", "status": "in_progress"}]
    await asked(agent, conv, "plan it", Reply(calls=[("todo_write", {"todos": todos})]))
    model = await asked(agent, conv, "what was to be done?", Reply(calls=[("todo_read", {})]))
    assert "[~] book a flight" in str(model.requests[1].messages[-1].content)


async def test_files_stay_with_the_conversation(agent: Agent, memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    await asked(agent, conv, "write", Reply(calls=[("write_file", {"path": "a.md", "text": "hello"})]))
    model = await asked(agent, conv, "read", Reply(calls=[("read_file", {"path": "a.md"})]))
    assert "hello" in str(model.requests[1].messages[-1].content)


async def test_a_plot_is_in_the_metadata_of_the_answer(agent: Agent, memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    call = ("plot", {"kind": "line", "title": "Sales", "series": {"a": [1, 2]}})
    await asked(agent, conv, "draw", Reply(calls=[call]))
    (answer,) = await conv.tail(1)
    picture = result_metadata(answer.payload)["visualization"]
    assert (picture["success"], picture["image_path"]) == (True, "plots/sales.png")
    assert picture["image_url"] == f"/api/v1/conversations/{conv.id}/files/plots/sales.png"


async def test_a_skill_is_in_the_request_when_it_is_named_and_stays_when_it_is_chosen(
    agent: Agent, memory_et: Everthread
) -> None:
    def system(model: ScriptedModel) -> str:
        return str(model.requests[0].messages[0].content)

    conv = await memory_et.conversations.create()
    plain = system(await asked(agent, conv, "hello"))
    assert "@data-report" in plain
    assert "From a table to a report" not in plain
    assert "From a table to a report" in system(await asked(agent, conv, "use @data-report on this"))
    assert "From a table to a report" not in system(await asked(agent, conv, "thank you"))
    await asked(agent, conv, "a digest please", Reply(calls=[("use_skill", {"name": "document-digest"})]))
    assert "A digest that sends the reader" in system(await asked(agent, conv, "go on"))


async def test_a_skill_brings_the_tools_that_it_needs(agent: Agent, memory_et: Everthread, tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\ndescription: Release it.\ntools: deploy\n---\nDeploy, then tell.\n")
    own = everthread.agent(memory_et, settings=Settings.load(skills_dir=tmp_path / "skills"))
    conv = await memory_et.conversations.create()
    assert "deploy" in (await asked(own, conv, "@release now")).requests[0].tools


async def test_arguments_that_do_not_fit_and_tools_that_raise_do_not_end_a_turn(
    agent: Agent, memory_et: Everthread
) -> None:
    conv = await memory_et.conversations.create()
    model = await asked(
        agent,
        conv,
        "try",
        Reply(calls=[("write_file", {"pth": "a"}), ("read_file", {"path": "../x"}), ("fly", {})]),
    )
    results = "\n".join(str(message.content) for message in model.requests[1].messages[-3:])
    assert "It takes: path, text, append (optional)" in results
    assert "leave the workspace" in results
    assert "unknown tool 'fly'" in results

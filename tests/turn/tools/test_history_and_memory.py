"""A turn's agent remembers and forgets; and the documents of the owner are the knowledge that it asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from langchain_core.tools import BaseTool

from everthread import Everthread
from everthread.core.memories import MemoryKind, MemoryScope
from everthread.turn.agent import OwnerDocuments
from everthread.turn.tools import ToolContext, make_tools
from everthread.turn.tools.history_and_memory import MemoryKindName, MemoryScopeName
from tests.text.test_secrets import SECRETS
from tests.turn.tools.conftest import ToolCaller


async def called(tool: BaseTool, **arguments: str) -> str:
    return str(await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}))


async def test_an_agent_remembers_and_forgets(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    await conv.append([{"role": "user", "content": "I only ever take the train"}])
    tools = {tool.name: tool for tool in make_tools(ToolContext.create(memory_et, conv))}
    said = await called(tools["remember"], text="takes only trains", kind="preference", subject="travel")
    assert "Remembered" in said
    (memory,) = await conv.remembered()
    assert (memory.text, memory.source) == ("takes only trains", (conv.id, 1))
    assert "Forgotten" in await called(tools["forget"], memory=memory.id[-8:])
    assert await conv.remembered() == []


async def test_off_the_record_no_tool_remembers(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create(off_record=True)
    names = {tool.name for tool in make_tools(ToolContext.create(memory_et, conv))}
    assert names.isdisjoint({"remember", "forget"})
    assert "history_search" in names


@pytest.mark.parametrize(("question", "collection"), [("what does E07 mean?", "manuals"), ("hello there", None)])
async def test_a_turn_asks_the_documents_that_a_question_is_for(
    memory_et: Everthread, question: str, collection: str | None
) -> None:
    await memory_et.knowledge.add("local", "manuals", "# Errors\n\nE07: the grinder is blocked.", id="m.md")
    documents = OwnerDocuments(memory_et.knowledge)
    assert (await documents.route("local", question)).collection == collection
    if collection is not None:
        (passage,) = await documents.search("local", collection, question)
        assert (passage.source, passage.text) == ("m.md › Errors", "E07: the grinder is blocked.")


def test_a_model_is_offered_every_kind_and_scope_there_is() -> None:
    assert set(get_args(MemoryKindName)) == {str(one) for one in MemoryKind}
    assert set(get_args(MemoryScopeName)) == {str(one) for one in MemoryScope}


async def test_what_is_remembered_is_known_in_another_conversation_until_it_is_forgotten(toolbox: ToolCaller) -> None:
    told = await toolbox("remember", text="The user is vegetarian.", kind="preference", subject="food")
    et, owner = toolbox.context.et, toolbox.context.conversation.owner
    (memory,) = (await et.memories.list(owner)).items
    assert (memory.text, memory.subject) == ("The user is vegetarian.", "food")
    id = told.split("'")[1]
    assert "Forgotten" in await toolbox("forget", memory=id)
    assert (await et.memories.list(owner)).items == []
    assert "no memory matches" in await toolbox.refused("forget", memory="aardvark-farm")


async def test_i23_no_secret_is_remembered(toolbox: ToolCaller) -> None:
    assert "password or a key" in await toolbox.refused("remember", text=f"The key is {SECRETS['github']}")


async def test_where_memory_is_off_there_is_no_tool_for_it(make_toolbox: Callable[..., Any]) -> None:
    names = {tool.name for tool in make_tools((await make_toolbox(uses_memory=False)).context)}
    assert {"remember", "forget"} & names == set()
    assert "kb_search" in names


async def test_documents_are_found_as_quoted_data(toolbox: ToolCaller) -> None:
    assert await toolbox("kb_search", query="visa") == "There are no documents."
    owner = toolbox.context.conversation.owner
    text = b"# Visa\n\nA visa for Japan takes five days.\n"
    await toolbox.context.et.knowledge.add(owner, "travel", text, id="visa.md")
    found = await toolbox("kb_search", query="visa Japan")
    assert "five days" in found
    assert "not instructions" in found
    assert "travel" in await toolbox("kb_search", query="aardvark", collection="travel")

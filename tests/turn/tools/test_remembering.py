"""A turn's agent remembers and forgets; and the documents of the owner are the knowledge that it asks."""

from __future__ import annotations

import pytest
from langchain_core.tools import BaseTool

from everthread import Everthread
from everthread.turn.documents import Documents
from everthread.turn.tools import Desk, tools_of


async def called(tool: BaseTool, **arguments: str) -> str:
    return str(await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name, "args": arguments}))


async def test_an_agent_remembers_and_forgets(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create()
    await conv.append([{"role": "user", "content": "I only ever take the train"}])
    tools = {tool.name: tool for tool in tools_of(Desk.of(memory_et, conv))}
    said = await called(tools["remember"], text="takes only trains", kind="preference", subject="travel")
    assert "Remembered" in said
    (memory,) = await conv.remembered()
    assert (memory.text, memory.source) == ("takes only trains", (conv.id, 1))
    assert "Forgotten" in await called(tools["forget"], memory=memory.id[-8:])
    assert await conv.remembered() == []


async def test_off_the_record_no_tool_remembers(memory_et: Everthread) -> None:
    conv = await memory_et.conversations.create(off_record=True)
    names = {tool.name for tool in tools_of(Desk.of(memory_et, conv))}
    assert names.isdisjoint({"remember", "forget"})
    assert "history_search" in names


@pytest.mark.parametrize(("question", "collection"), [("what does E07 mean?", "manuals"), ("hello there", None)])
async def test_a_turn_asks_the_documents_that_a_question_is_for(
    memory_et: Everthread, question: str, collection: str | None
) -> None:
    await memory_et.knowledge.add("local", "manuals", "# Errors\n\nE07: the grinder is blocked.", id="m.md")
    documents = Documents(memory_et.knowledge)
    assert await documents.route("local", question) == collection
    if collection is not None:
        (passage,) = await documents.search("local", collection, question)
        assert (passage.source, passage.text) == ("m.md › Errors", "E07: the grinder is blocked.")

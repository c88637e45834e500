"""What exports have beside plain messages: edited first prompts, results of tools, ids that only one file knows."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread import Everthread
from tests.imports.test_importer import (
    CHATGPT,
    CLAUDE_AI,
    LIBRECHAT,
    OPEN_WEBUI,
    chatgpt_message,
    chatgpt_node,
    everything,
    imported,
    messages,
    written,
)

ZEROS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    async with everthread.open("memory://", worker=False) as et:
        yield et


async def texts(et: Everthread, id: str) -> list[str]:
    return [message.text for message in await messages(et, id)]


def _edited_chatgpt() -> dict[str, Any]:
    other = chatgpt_node("u0", "hidden", ["a0"], chatgpt_message("user", "Old prompt", 1))
    answer = chatgpt_node("a0", "u0", [], chatgpt_message("assistant", "Old answer", 2))
    return {**CHATGPT, "mapping": {"u0": other, "a0": answer, **CHATGPT["mapping"]}}


def _edited_claude_ai() -> dict[str, Any]:
    first, answer = CLAUDE_AI["chat_messages"]
    old = {"uuid": "h0", "sender": "human", "text": "Old prompt", "parent_message_uuid": ZEROS}
    old_answer = {"uuid": "a0", "sender": "assistant", "text": "Old answer", "parent_message_uuid": "h0"}
    listed = [old, old_answer, {**first, "parent_message_uuid": ZEROS}, {**answer, "parent_message_uuid": "h"}]
    return {**CLAUDE_AI, "chat_messages": listed}


def _edited_open_webui() -> dict[str, Any]:
    chat = OPEN_WEBUI["chat"]
    assert isinstance(chat, dict)
    old = {"id": "o", "parentId": None, "role": "user", "content": "Old prompt"}
    answer = {"id": "p", "parentId": "o", "role": "assistant", "content": "Old answer"}
    tree = {"o": old, "p": answer, **chat["history"]["messages"]}
    return {**OPEN_WEBUI, "chat": {"history": {"currentId": "b", "messages": tree}}}


def _edited_librechat() -> dict[str, Any]:
    listed = [("o", ZEROS, "Old prompt"), ("p", "o", "Old answer"), ("1", ZEROS, "Tea?"), ("2", "1", "Green.")]
    return {**LIBRECHAT, "messages": [
        {"messageId": id, "parentMessageId": parent, "text": text, "isCreatedByUser": parent == ZEROS}
        for id, parent, text in listed
    ]}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "id", "shown"),
    [
        (_edited_chatgpt(), "chatgpt:gpt-1", ["Where to?", "去昆明。"]),
        (_edited_claude_ai(), "claude-ai:cl-1", ["Peanuts?", "No."]),
        (_edited_open_webui(), "open-webui:ow-1", ["1+1?", "2"]),
        (_edited_librechat(), "librechat:lc-1", ["Tea?", "Green."]),
    ],
    ids=["chatgpt", "claude-ai", "open-webui", "librechat"],
)
async def test_a_first_prompt_that_was_edited_is_another_branch(
    value: dict[str, Any], id: str, shown: list[str], et: Everthread, tmp_path: Path
) -> None:
    path = written(tmp_path / "export.json", [value] if "librechat" not in id else value)
    counts = await imported(et, path)
    assert counts.problems == []
    assert await texts(et, id) == shown
    assert {"Old prompt", "Old answer", *shown} <= await everything(await et.conversations.get(id))
    again = written(tmp_path / "again.json", [value] if "librechat" not in id else value)
    assert (await imported(et, again)).messages == 0
    assert await texts(et, id) == shown


async def test_messages_of_librechat_without_parents_follow_each_other(et: Everthread, tmp_path: Path) -> None:
    listed = [{"messageId": str(number), "text": f"line {number}", "isCreatedByUser": True} for number in range(3)]
    await imported(et, written(tmp_path / "chat.json", {**LIBRECHAT, "messages": listed}))
    assert await texts(et, "librechat:lc-1") == ["line 0", "line 1", "line 2"]


async def test_what_tools_gave_in_a_chat_is_found(et: Everthread, tmp_path: Path) -> None:
    librechat = {**LIBRECHAT, "messages": [{"messageId": "1", "text": "", "isCreatedByUser": False, "content": [
        {"type": "tool_call", "tool_call": {"id": "c", "name": "search", "args": "{}", "output": "a cinnamon shop"}},
        {"type": "text", "text": {"value": "There."}}]}]}  # fmt: skip
    details = (
        '<details type="tool_calls" done="true" id="c" name="look" arguments="{&quot;q&quot;: 1}" '
        'result="&quot;a cardamom shop&quot;"><summary>Tool</summary></details>There.'
    )
    open_webui = {"id": "ow-2", "chat": {"messages": [{"role": "user", "content": "Where?"},
                                                      {"role": "assistant", "content": details}]}}  # fmt: skip
    await imported(et, written(tmp_path / "librechat.json", librechat))
    await imported(et, written(tmp_path / "open-webui.json", [open_webui]))
    for word, id in (("cinnamon", "librechat:lc-1"), ("cardamom", "open-webui:ow-2")):
        assert [hit.conversation_id for hit in await et.search(word)] == [id]
        assert (await messages(et, id))[-1].payload["tool_calls"][0]["id"] == "c"


@pytest.mark.parametrize("content", ["", "There."])
async def test_items_of_an_answer_of_open_webui_are_read(content: str, et: Everthread, tmp_path: Path) -> None:
    items = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "found"}]},
        {"type": "open_webui:code_interpreter", "id": "ci", "code": "1+1", "output": {"stdout": "2"}},
        {"type": "message", "content": [{"type": "output_text", "text": "There."}]},
    ]
    said = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": content, "output": items}]
    await imported(et, written(tmp_path / "chat.json", [{"id": "ow-3", "chat": {"messages": said}}]))
    _, answer = await messages(et, "open-webui:ow-3")
    assert answer.text == 'found\n{"stdout": "2"}\nThere.'
    assert answer.payload["content"][0] == {"type": "thinking", "thinking": "hm"}
    assert [call["name"] for call in answer.payload["tool_calls"]] == ["look", "code_interpreter"]


async def test_citations_voice_pictures_and_recaps_of_chatgpt_are_what_they_are(et: Everthread, tmp_path: Path) -> None:
    def node(id: str, parent: str, content: dict[str, Any], role: str = "assistant", **metadata: Any) -> dict[str, Any]:
        message = chatgpt_message(role, "", 5, content=content, metadata=metadata)
        return {id: chatgpt_node(id, parent, [], message)}

    cited = [{"matched_text": "【1】", "type": "webpage", "url": "https://example.org"}]
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "metadata": {
        "dalle": {"prompt": "a lighthouse"}}}  # fmt: skip
    mapping = {
        **CHATGPT["mapping"],
        **node("b1", "a2", {"content_type": "multimodal_text", "parts": [
            {"content_type": "audio_transcription", "text": "spoken aloud", "direction": "in"},
            {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_2"}]}, "user"),
        **node("b2", "b1", {"content_type": "reasoning_recap", "content": "Thought for 4 seconds"}),
        **node("b3", "b2", {"content_type": "tether_quote", "url": "https://example.org", "title": "T", "text": "Q"}),
        **node("b4", "b3", {"content_type": "multimodal_text", "parts": [picture]}, "tool"),
        **node("b5", "b4", {"content_type": "text", "parts": ["So it is."]}, content_references=cited),
    }  # fmt: skip
    value = {**CHATGPT, "mapping": mapping, "current_node": "b5"}
    assert (await imported(et, written(tmp_path / "conversations.json", [value]))).problems == []
    _, _, voice, recap, quote, drawn, last = await messages(et, "chatgpt:gpt-1")
    assert voice.text == "spoken aloud"
    assert (recap.text, recap.payload["content"][0]["type"]) == ("", "thinking")
    assert quote.payload["content"] == [{"type": "text", "text": "Q", "title": "T", "url": "https://example.org"}]
    assert drawn.payload["content"] == [picture]
    assert last.payload["citations"] == cited


async def test_the_same_numbers_in_two_files_are_two_conversations(et: Everthread, tmp_path: Path) -> None:
    for name in ("one", "two"):
        said = [{"from": "human", "value": f"from {name}"}, {"from": "function_call", "value": "{broken"}]
        value = [{"id": 7, "conversations": said}]
        counts = await imported(et, written(tmp_path / f"{name}.json", value))
        assert (counts.messages, len(counts.imported), counts.problems) == (2, 1, [])


def letta(name: str, *said: dict[str, Any]) -> dict[str, Any]:
    return {
        "agents": [{"id": "agent-0", "name": name, "block_ids": ["block-1"], "messages": [
            {"id": f"message-{number}", **one} for number, one in enumerate(said)]}],
        "blocks": [{"id": "block-0", "label": "other", "value": "x"},
                   {"id": "block-1", "label": "human", "value": "Likes tea."}],
        "created_at": "2026-03-01T10:00:00Z",
    }  # fmt: skip


def letta_message(role: str, text: str, second: int) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}], "created_at": f"2026-03-01T10:00:{second:02}Z"}


async def test_agents_of_two_letta_files_with_the_same_ids_are_two(et: Everthread, tmp_path: Path) -> None:
    system = letta_message("system", "You are an agent.", 0)
    heartbeat = letta_message("user", json.dumps({"type": "heartbeat", "reason": "timer"}), 2)
    typed = letta_message("user", json.dumps({"type": "user_message", "message": "Hi Ann", "time": "x"}), 1)
    ann = letta("ann", system, typed, heartbeat)
    path = written(tmp_path / "ann.af", ann)
    await imported(et, path)
    await imported(et, written(tmp_path / "bob.af", json.dumps(letta("bob", system, letta_message("user", "Hi", 1)))))
    listed = {one.title: one for one in await et.conversations.list(limit=10)}
    assert set(listed) == {"ann", "bob"}
    assert listed["ann"].info.metadata["memory"] == {"human": "Likes tea."}
    said = await messages(et, listed["ann"].id)
    assert [(one.role, one.text, one.payload.get("is_meta")) for one in said[1:]] == [
        ("user", "Hi Ann", None), ("user", "timer", True),
    ]  # fmt: skip
    changed = letta_message("system", "You are an agent. Memory: tea.", 0)
    later = letta("ann", changed, typed, heartbeat, letta_message("assistant", "Hi", 3))
    counts = await imported(et, written(tmp_path / "later.af", later))
    assert (counts.imported, counts.messages) == ([], 2)


# -- traces ----------------------------------------------------------------------------------------------------


def said_by(role: str, text: str) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def span(number: int, **attributes: Any) -> dict[str, Any]:
    return {
        "name": "chat", "context": {"trace_id": "0xabc", "span_id": f"0x{number}"}, "parent_id": None,
        "start_time": f"2026-03-01T10:00:{number:02}.000000Z", "attributes": attributes, "events": [],
    }  # fmt: skip


async def test_spans_as_a_console_shows_them_one_after_the_other_are_read(et: Everthread, tmp_path: Path) -> None:
    instructions = json.dumps([{"type": "text", "content": "Be brief."}])
    first = span(1, **{
        "gen_ai.conversation.id": "c", "gen_ai.system_instructions": instructions,
        "gen_ai.input.messages": json.dumps(said_by("user", "Hi")),
        "gen_ai.output.messages": json.dumps(said_by("assistant", "Hello")),
    })  # fmt: skip
    in_event = span(2, **{"gen_ai.conversation.id": "c"}) | {"events": [
        {"name": "gen_ai.client.inference.operation.details", "attributes": {
            "gen_ai.input.messages": json.dumps(said_by("user", "Bye")),
            "gen_ai.output.messages": json.dumps(said_by("assistant", "Ciao"))}}]}  # fmt: skip
    older = span(3, **{
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Older?", "gen_ai.completion.0.content": "Yes.",
    })  # fmt: skip
    path = tmp_path / "spans.json"
    path.write_text("\n".join(json.dumps(one, indent=4) for one in (first, in_event, older)) + "\n")
    assert (await imported(et, path)).problems == []
    assert await texts(et, "otel:c") == ["Be brief.", "Hi", "Hello", "Bye", "Ciao"]
    assert await texts(et, "otel:0xabc") == ["Older?", "Yes."]
    whole = path.read_text()
    path.write_text(whole[: whole.rindex("{")])
    again = await imported(et, path)
    assert (again.messages, again.problem_count) == (0, 1)


def typed_value(value: object) -> dict[str, Any]:
    """As OTLP writes it."""
    if isinstance(value, dict):
        pairs = [{"key": key, "value": typed_value(inner)} for key, inner in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed_value(inner) for inner in value]}}
    return {"stringValue": value}


async def test_events_with_structured_messages_are_read(et: Everthread, tmp_path: Path) -> None:
    attributes = {
        "gen_ai.conversation.id": "c", "gen_ai.input.messages": said_by("user", "Hi"),
        "gen_ai.output.messages": said_by("assistant", "Hello"),
    }  # fmt: skip
    typed = [{"key": key, "value": typed_value(value)} for key, value in attributes.items()]
    name = "gen_ai.client.inference.operation.details"
    record = {"timeUnixNano": "1772359200000000000", "eventName": name, "attributes": typed}
    value = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    assert (await imported(et, written(tmp_path / "logs.json", value))).problems == []
    assert await texts(et, "otel:c") == ["Hi", "Hello"]


# -- OpenAI Agents SDK -----------------------------------------------------------------------------------------


def agents_sdk(path: Path, items: list[dict[str, Any]], branches: dict[str, list[int]]) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP);
            CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TEXT);
            INSERT INTO agent_sessions VALUES ('s', '2026-03-01 10:00:00');
        """)
        for one in items:
            connection.execute("INSERT INTO agent_messages VALUES (NULL, 's', ?, NULL)", (json.dumps(one),))
        if branches:
            connection.execute(
                "CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, "
                "branch_id TEXT, sequence_number INTEGER)"
            )
        placed = [(item, branch) for branch, listed in branches.items() for item in listed]
        for number, (item, branch) in enumerate(placed):
            connection.execute("INSERT INTO message_structure VALUES (NULL, 's', ?, ?, ?)", (item, branch, number))
        connection.commit()
    return path


async def test_branches_of_the_agents_sdk_are_branches(et: Everthread, tmp_path: Path) -> None:
    items = [{"role": "user", "content": text} for text in ("Q1", "A1", "Q2", "A2", "Q2b", "A2b")]
    await imported(et, agents_sdk(tmp_path / "s.db", items, {"main": [1, 2, 3, 4], "other": [1, 2, 5, 6]}))
    assert await texts(et, "openai-agents:s") == ["Q1", "A1", "Q2b", "A2b"]
    assert await everything(await et.conversations.get("openai-agents:s")) == {"Q1", "A1", "Q2", "A2", "Q2b", "A2b"}


async def test_every_call_of_the_agents_sdk_is_a_call(et: Everthread, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [
        {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "tea"}},
        {"type": "mcp_call", "id": "mc", "name": "lookup", "arguments": "{}", "output": "a teapot"},
        {"type": "computer_call_output", "call_id": "cc", "output": {"type": "computer_screenshot"}},
    ]
    await imported(et, agents_sdk(tmp_path / "s.db", items, {}))
    search, lookup, screen = await messages(et, "openai-agents:s")
    assert [one.role for one in (search, lookup, screen)] == ["assistant", "assistant", "tool"]
    assert search.payload["tool_calls"][0]["args"]["query"] == "tea"
    assert (lookup.payload["tool_calls"][0]["name"], lookup.text) == ("lookup", "a teapot")


async def test_what_claude_ai_exports_beside_conversations_is_no_error(et: Everthread, tmp_path: Path) -> None:
    user = {"uuid": "u", "full_name": "Ada", "email_address": "ada@example.com"}
    project = {"uuid": "p", "name": "House", "docs": [{"uuid": "d", "filename": "n.md", "content": "Notes."}]}
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name, value in (("conversations", CLAUDE_AI), ("users", user), ("projects", project)):
            packed.writestr(f"{name}.json", json.dumps([value]))
    counts = await imported(et, path)
    assert (counts.problems, counts.imported) == ([], ["claude-ai:cl-1"])
    assert counts.passed_over == [f"{path}: users.json", f"{path}: projects.json"]


async def test_a_call_of_claude_ai_without_an_id_gets_one_that_its_result_names(et: Everthread, tmp_path: Path) -> None:
    content: list[dict[str, Any]] = [
        {"type": "tool_use", "name": "search", "input": {"query": "rent"}},
        {"type": "tool_result", "name": "search", "content": [{"type": "text", "text": "Found."}]},
        {"type": "tool_use", "id": "own", "name": "search", "input": {}},
        {"type": "tool_result", "tool_use_id": "own", "content": "More."},
    ]
    answer = {"uuid": "a", "sender": "assistant", "content": content}
    value = {**CLAUDE_AI, "chat_messages": [CLAUDE_AI["chat_messages"][0], answer]}
    await imported(et, written(tmp_path / "export.json", [value]))
    conversation = await et.conversations.get("claude-ai:cl-1")
    payload = [message async for message in conversation.messages()][-1].payload
    assert [call["id"] for call in payload["tool_calls"]] == ["a:call:1", "own"]
    assert [block["tool_use_id"] for block in payload["content"]] == ["a:call:1", "own"]


async def test_a_call_of_claude_ai_that_stands_after_its_result_is_answered_by_it(
    et: Everthread, tmp_path: Path
) -> None:
    content: list[dict[str, Any]] = [
        {"type": "tool_result", "name": "search", "content": "Found."},
        {"type": "tool_result", "name": "fetch", "content": "Read."},
        {"type": "tool_use", "name": "fetch", "input": {}},
        {"type": "tool_result", "tool_use_id": "own", "name": "search", "content": "More."},
        {"type": "tool_use", "id": "own", "name": "search", "input": {}},
        {"type": "tool_use", "name": "search", "input": {"query": "rent"}},
        {"type": "tool_result", "name": "shell", "content": "Of no call."},
    ]
    answer = {"uuid": "a", "sender": "assistant", "content": content}
    value = {**CLAUDE_AI, "chat_messages": [CLAUDE_AI["chat_messages"][0], answer]}
    await imported(et, written(tmp_path / "export.json", [value]))
    payload = (await messages(et, "claude-ai:cl-1"))[-1].payload
    assert [call["id"] for call in payload["tool_calls"]] == ["a:call:1", "own", "a:call:3"]
    assert [block.get("tool_use_id") for block in payload["content"]] == ["a:call:3", "a:call:1", "own", None]

"""`everthread import`: the format is found out, branches and dates are kept, and a second import adds nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everthread import Conversation, Everthread, Message
from everthread.core.errors import Invalid
from everthread.imports.importer import Importer
from everthread.imports.write import ImportCounts
from tests.imports.agent_files import claude_file, claude_subagent_file, codex_file
from tests.shared_data import shared_folder


def chatgpt_node(id: str, parent: str | None, children: list[str], message: dict[str, Any] | None) -> dict[str, Any]:
    return {"id": id, "parent": parent, "children": children, "message": message}


def chatgpt_message(role: str, text: str, second: int, **more: Any) -> dict[str, Any]:
    return {
        "author": {"role": role}, "create_time": 1772359200 + second,
        "content": {"content_type": "text", "parts": [text]}, "metadata": {}, **more,
    }  # fmt: skip


CHATGPT: dict[str, Any] = {
    "title": "Trip to Kunming", "create_time": 1772359200.5, "conversation_id": "gpt-1", "current_node": "a2",
    "mapping": {
        "root": chatgpt_node("root", None, ["hidden"], None),
        "hidden": chatgpt_node("hidden", "root", ["u1"], chatgpt_message(
            "system", "", 0, metadata={"is_visually_hidden_from_conversation": True})),
        "u1": chatgpt_node("u1", "hidden", ["a1", "a2"], chatgpt_message("user", "Where to?", 1)),
        "a1": chatgpt_node("a1", "u1", [], chatgpt_message("assistant", "To Dali.", 2)),
        "a2": chatgpt_node("a2", "u1", [], chatgpt_message(
            "assistant", "去昆明。", 3, metadata={"model_slug": "gpt-test", "attachments": [{"name": "map.png"}]})),
    },
}  # fmt: skip
CLAUDE_AI: dict[str, Any] = {
    "uuid": "cl-1", "name": "Allergies", "created_at": "2026-03-01T10:00:00Z", "chat_messages": [
        {"uuid": "h", "sender": "human", "text": "Peanuts?", "created_at": "2026-03-01T10:00:01Z", "content": [],
         "attachments": [{"file_name": "list.txt", "extracted_content": "nuts"}]},
        {"uuid": "a", "sender": "assistant", "text": "No.", "created_at": "2026-03-01T10:00:02Z",
         "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "No."}]},
    ],
}  # fmt: skip
OPEN_WEBUI = {
    "id": "ow-1", "title": "Maths", "created_at": 1772359200, "chat": {"history": {"currentId": "b", "messages": {
        "a": {"id": "a", "parentId": None, "role": "user", "content": "1+1?", "timestamp": 1772359201, "models": ["m"]},
        "b": {"id": "b", "parentId": "a", "role": "assistant", "model": "m", "timestamp": 1772359202,
              "content": '<details type="reasoning" done="true"><summary>Thought</summary>\n&gt; add\n</details>\n2'},
    }}},
}  # fmt: skip
LIBRECHAT = {
    "conversationId": "lc-1", "title": "Tea", "options": {"model": "m"}, "messages": [
        {"messageId": "1", "parentMessageId": "00000000", "isCreatedByUser": True, "text": "Tea?",
         "createdAt": "2026-03-01T10:00:00Z", "children": [
             {"messageId": "2", "isCreatedByUser": False, "model": "m", "content": [
                 {"type": "think", "think": "hm"}, {"type": "text", "text": "Green."}]}]},
    ],
}  # fmt: skip
SHAREGPT = {"id": "sg-1", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
OPENAI = {
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]
}
LETTA = {
    "agents": [{"id": "agent-1", "name": "Sam", "messages": [
        {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Hi Sam"}]},
        {"id": "m2", "role": "assistant", "content": [
            {"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Hi"}]},
    ]}],
}  # fmt: skip
LANGSMITH = [
    {"id": f"r{number}", "trace_id": "t", "run_type": "llm", "start_time": f"2026-03-01T10:00:0{number}Z",
     "inputs": {"messages": [[{"kwargs": {"type": kind, "content": text}} for kind, text in said]]},
     "outputs": {"generations": [[{"message": {"kwargs": {"type": "ai", "content": answer}}}]]}}
    for number, said, answer in (
        (1, [("human", "Hi")], "Hello"), (2, [("human", "Hi"), ("ai", "Hello"), ("human", "Bye")], "Ciao"))
]  # fmt: skip
OTEL = {"resourceSpans": [{"scopeSpans": [{"spans": [{
    "traceId": "tr", "startTimeUnixNano": "1772359200000000000", "attributes": [
        {"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}])}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}])}},
    ]}]}]}]}  # fmt: skip


async def imported(et: Everthread, path: Path) -> ImportCounts:
    return await Importer(et, "local").import_path(path)


async def messages(et: Everthread, id: str) -> list[Message]:
    return [message async for message in (await et.conversations.get(id)).messages()]


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False))
    return path


async def test_chatgpt_keeps_branches_dates_models_and_attachments(et: Everthread, tmp_path: Path) -> None:
    path = written(tmp_path / "conversations.json", [CHATGPT])
    counts = await imported(et, path)
    assert (counts.messages, counts.problems) == (3, [])
    conversation = await et.conversations.get("chatgpt:gpt-1")
    assert (conversation.title, conversation.created_at.year) == ("Trip to Kunming", 2026)
    shown = await messages(et, "chatgpt:gpt-1")
    assert [message.text for message in shown] == ["Where to?", "去昆明。"]
    assert shown[1].payload["model"] == "gpt-test"
    assert shown[1].payload["attachments"] == [{"name": "map.png"}]
    assert str(shown[0].said_at) == "2026-03-01 10:00:01+00:00"
    assert len([branch async for branch in conversation.branches()]) == 2
    assert await everything(conversation) == {"Where to?", "To Dali.", "去昆明。"}


async def everything(conversation: Conversation) -> set[str]:
    return {
        message.text
        async for branch in conversation.branches()
        async for message in conversation.messages(branch=branch)
    }


@pytest.mark.parametrize(
    ("value", "id", "texts"),
    [
        ([CLAUDE_AI], "claude-ai:cl-1", ["Peanuts?", "No."]),
        ([OPEN_WEBUI], "open-webui:ow-1", ["1+1?", "2"]),
        (LIBRECHAT, "librechat:lc-1", ["Tea?", "Green."]),
        ([SHAREGPT], "sharegpt:sg-1", ["Hi", "Hello"]),
        (LETTA, "letta:agent-1", ["Hi Sam", "Hi"]),
        (LANGSMITH, "langsmith:t", ["Hi", "Hello", "Bye", "Ciao"]),
        (OTEL, "otel:tr", ["Hi", "Hello"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_export_comes_in_once(
    et: Everthread, tmp_path: Path, value: object, id: str, texts: list[str]
) -> None:
    path = written(tmp_path / "export.json", value)
    counts = await imported(et, path)
    assert counts.problems == []
    assert [message.text for message in await messages(et, id)] == texts
    again = await imported(et, path)
    assert again.messages == 0
    os.utime(path, (1, 1))
    again = await imported(et, path)
    assert (again.messages, again.known) == (0, len(texts))


async def test_thinking_is_kept_apart_from_what_was_said(et: Everthread, tmp_path: Path) -> None:
    await imported(et, written(tmp_path / "a.json", [OPEN_WEBUI]))
    await imported(et, written(tmp_path / "b.json", LIBRECHAT))
    for id, thought in (("open-webui:ow-1", "add"), ("librechat:lc-1", "hm")):
        assert (await messages(et, id))[1].payload["content"][0] == {"type": "thinking", "thinking": thought}


async def test_chat_jsonl_has_a_conversation_on_each_line(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    other = {"messages": [{"role": "user", "content": "Another"}]}
    path.write_text(f"{json.dumps(OPENAI)}\n{{broken\n{json.dumps(other)}\n")
    counts = await imported(et, path)
    assert (counts.messages, len(counts.imported), counts.problem_count) == (4, 2, 1)
    assert "entry 2" in counts.problems[0]


async def test_a_folder_of_agents_comes_in_with_its_subagents(et: Everthread, tmp_path: Path) -> None:
    claude_file(tmp_path)
    claude_subagent_file(tmp_path)
    codex_file(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing for us")
    counts = await imported(et, tmp_path)
    assert (counts.messages, len(counts.imported), counts.problems) == (19, 3, [])
    assert (await imported(et, tmp_path)).messages == 0


async def test_opencode_is_read_from_its_database_and_only_what_changed(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
                time_created INTEGER, time_updated INTEGER);
            CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
            INSERT INTO session VALUES ('s', NULL, '/p', 'Title', 1772359200000, 1772359202000);
            INSERT INTO message VALUES ('m1', 's', 1772359201000, '{"role":"user"}');
            INSERT INTO message VALUES ('m2', 's', 1772359202000, '{"role":"assistant","modelID":"m"}');
            INSERT INTO part VALUES ('p1', 'm1', '{"type":"text","text":"List"}');
            INSERT INTO part VALUES ('p2', 'm2', '{"type":"reasoning","text":"hm"}');
            INSERT INTO part VALUES ('p3', 'm2', '{"type":"tool","callID":"c","tool":"bash",
                "state":{"status":"completed","input":{"command":"ls"},"output":"a.py"}}');
            INSERT INTO part VALUES ('p4', 'm2', '{"type":"text","text":"One file"}');
        """)
    assert (await imported(et, path)).messages == 3
    shown = await messages(et, "opencode:s")
    assert [message.role for message in shown] == ["user", "assistant", "tool"]
    assert shown[1].payload["tool_calls"][0]["args"] == {"command": "ls"}
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            UPDATE session SET time_updated = 1772359300000;
            INSERT INTO message VALUES ('m3', 's', 1772359300000, '{"role":"user"}');
            INSERT INTO part VALUES ('p5', 'm3', '{"type":"text","text":"Thanks"}');
        """)
    os.utime(path)
    assert (await imported(et, path)).messages == 1
    assert (await et.conversations.get("opencode:s")).info.metadata["cwd"] == "/p"


async def test_sessions_of_the_agents_sdk_are_read(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
            CREATE TABLE agent_messages
                (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TIMESTAMP);
            INSERT INTO agent_sessions VALUES ('s', '2026-03-01 10:00:00', '2026-03-01 10:00:00');
            INSERT INTO agent_messages VALUES (1, 's', '{"role":"user","content":"Hi"}', '2026-03-01 10:00:01');
            INSERT INTO agent_messages VALUES (2, 's', 'broken', '2026-03-01 10:00:02');
            INSERT INTO agent_messages VALUES
                (3, 's', '{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}', '2026-03-01 10:00:02');
        """)
    counts = await imported(et, path)
    assert (counts.messages, counts.problem_count) == (2, 1)


async def test_a_zip_is_read_in_place_whatever_its_paths_claim(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("../../conversations.json", json.dumps([CHATGPT]))
        packed.writestr("chat.html", "<html>")
        packed.writestr(f"home/{claude_file(tmp_path).name}", claude_file(tmp_path).read_bytes())
    counts = await imported(et, path)
    assert (counts.messages, counts.problems) == (14, [])
    assert not (tmp_path.parent.parent / "conversations.json").exists()
    os.utime(path, (1, 1))
    assert (await imported(et, path)).messages == 0


async def test_a_zip_bomb_is_left_out_and_the_rest_comes_in(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.json", b"[" + b" " * (70 << 20))
        packed.writestr("good.json", json.dumps([SHAREGPT]))
    counts = await imported(et, path)
    assert (counts.messages, counts.problem_count) == (2, 1)
    assert "bomb.json" in counts.problems[0]


async def test_an_array_that_breaks_off_gives_what_came_before(et: Everthread, tmp_path: Path) -> None:
    whole = json.dumps([SHAREGPT, CHATGPT, CLAUDE_AI])
    path = tmp_path / "cut.json"
    path.write_text(whole[:-40])
    counts = await imported(et, path)
    assert (counts.messages, counts.problem_count) == (5, 1)
    assert "entry 3" in counts.problems[0]
    path.write_text(whole)
    assert (await imported(et, path)).messages == 2


async def test_an_array_that_is_not_all_utf_8_is_read_and_named(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    said = {"conversations": [{"from": "human", "value": "Un caf\xe9, 10 \x80."}], "id": "latin"}
    path.write_bytes(json.dumps([SHAREGPT, said], ensure_ascii=False).encode("latin-1"))
    counts = await imported(et, path)
    assert (counts.messages, counts.problem_count) == (3, 1)
    assert "not UTF-8" in counts.problems[0]
    assert [message.text for message in await messages(et, "sharegpt:latin")] == ["Un caf\ufffd, 10 \ufffd."]
    path.write_bytes(json.dumps([SHAREGPT, said], ensure_ascii=False).encode())
    assert (await imported(et, path)).problem_count == 0


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
async def test_an_export_in_utf_16_is_named(encoding: str, et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "windows.json"
    path.write_bytes(("\ufeff" + json.dumps([SHAREGPT])).encode(encoding))
    counts = await imported(et, path)
    assert counts.problems == [f"{path}: is not text in UTF-8"]


async def test_circles_doubled_ids_and_nonsense_hurt_nobody(et: Everthread, tmp_path: Path) -> None:
    circle = {
        **CHATGPT, "conversation_id": "circle", "mapping": {
            "x": chatgpt_node("x", "y", ["y"], chatgpt_message("user", "one", 1)),
            "y": chatgpt_node("y", "x", ["x"], chatgpt_message("assistant", "two", 2)),
        },
    }  # fmt: skip
    doubled = {
        "id": "d",
        "messages": [{"id": "m", "role": "user", "content": "a"}, {"id": "m", "role": "user", "content": "b"}],
    }
    nonsense: list[object] = [
        circle, doubled, {"mapping": {}}, {"mapping": []}, {"chat_messages": [1, None]}, 5, None, "x", [],
        {"uuid": "n", "chat_messages": [{"uuid": "q", "sender": "human", "text": "\ud800 half"}]},
        {"conversations": [{"from": "human"}]}, SHAREGPT,
    ]  # fmt: skip
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(nonsense))
    counts = await imported(et, path)
    assert counts.problem_count >= 5
    assert {message.text for message in await messages(et, "chatgpt:circle")} == {"one", "two"}
    assert [message.text for message in await messages(et, "sharegpt:sg-1")] == ["Hi", "Hello"]
    assert [message.text for message in await messages(et, "openai-chat:d")] == ["b"]
    assert (await et.verify()).ok


async def test_what_nobody_knows_is_refused_with_the_formats_there_are(et: Everthread, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x7f" + os.urandom(1000))
    with pytest.raises(Invalid, match="chatgpt"):
        await imported(et, tmp_path / "x.bin")
    with pytest.raises(Invalid, match="there is no"):
        await imported(et, tmp_path / "absent")


async def test_an_archive_of_ours_comes_in_too(et: Everthread, tmp_path: Path) -> None:
    conversation = await et.conversations.create(id="c")
    await conversation.append({"role": "user", "content": "hello"})
    path = tmp_path / "archive"
    path.write_bytes(b"".join([piece async for piece in et.export_archive()]))
    counts = await Importer(et, "other").import_path(path)
    assert (counts.imported, counts.messages) == (["c"], 1)


@pytest.mark.parametrize(
    ("inside", "id"),
    [
        ("claude-code/session.jsonl", "claude-code:registry-claude"),
        ("codex", "codex:registry-codex"),
        ("gemini/session.jsonl", "gemini-cli:registry-gemini"),
        ("gemini/session-set-snapshot.jsonl", "gemini-cli:reg-gem-set-001"),
        ("pi/session.jsonl", "pi:reg-pi-001"),
        ("omp/session.jsonl", "omp:reg-omp-001"),
        ("openclaw/agents/main/sessions", "openclaw:a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d"),
        ("qwen", "qwen-code:registry-qwen"),
        ("cursor", "cursor-cli:registry-cursor"),
    ],
)
async def test_recorded_sessions_come_in(et: Everthread, inside: str, id: str) -> None:
    counts = await imported(et, shared_folder("data/agents") / inside)
    assert (counts.messages, counts.problems) == (2, [])
    assert len(await messages(et, id)) == 2


async def test_a_recorded_opencode_database_comes_in(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((shared_folder("data/agents") / "opencode" / "opencode.sql").read_text())
    assert (await imported(et, path)).messages == 2


def indented(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2))
    return path


@pytest.mark.parametrize("value", [CHATGPT, OPEN_WEBUI, CLAUDE_AI, LIBRECHAT, OPENAI, OTEL, LETTA])
async def test_an_indented_document_is_read_as_one_on_a_single_line(
    et: Everthread, tmp_path: Path, value: dict[str, Any]
) -> None:
    once = await imported(et, written(tmp_path / "one-line.json", value))
    again = await imported(et, indented(tmp_path / "indented.json", value))
    assert once.messages > 0
    assert (again.messages, again.known, again.problems) == (0, once.messages, [])


async def test_an_indented_document_with_a_record_on_each_line_is_read(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    records = ",\n    ".join(map(json.dumps, OPENAI["messages"]))
    path.write_text(f'{{\n  "messages": [\n    {records}\n  ]\n}}\n')
    assert (await imported(et, path)).messages == 3


async def test_a_large_indented_document_is_read(et: Everthread, tmp_path: Path) -> None:
    long = {"messages": [{"role": "user", "content": "word " * 100} for _ in range(5000)]}
    path = indented(tmp_path / "long.json", long)
    assert path.stat().st_size > 2 << 20
    assert (await imported(et, path)).messages == 5000


@pytest.mark.parametrize("first", ['{"messages": ' + "[" * 1_200_000, "[" * 1_200_000, '{"messages": [{"role": "us'])
async def test_good_lines_after_a_broken_first_one_are_read(et: Everthread, tmp_path: Path, first: str) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(f"{first}\n{json.dumps(OPENAI)}\n")
    counts = await imported(et, path)
    assert (counts.messages, counts.problem_count) == (3, 1)


async def test_a_first_line_longer_than_what_is_looked_at_is_read(et: Everthread, tmp_path: Path) -> None:
    long = {"messages": [{"role": "user", "content": "narwhal " * 200_000}]}
    path = tmp_path / "list.jsonl"
    path.write_text(f"{json.dumps(long)}\n{json.dumps(OPENAI)}\n")
    counts = await imported(et, path)
    assert (counts.messages, counts.problems) == (4, [])


async def test_a_conversation_of_which_no_message_can_be_stored_is_not_made(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "Hi", "x": NaN}]}\n')
    counts = await imported(et, path)
    assert (counts.imported, counts.problem_count) == ([], 1)
    assert len(await et.conversations.list()) == 0


async def test_the_text_of_an_attached_file_is_found(et: Everthread, tmp_path: Path) -> None:
    attached = {"file_name": "list.txt", "extracted_content": "almonds and hazelnuts"}
    message = {**CLAUDE_AI["chat_messages"][0], "attachments": [attached]}
    await imported(et, written(tmp_path / "conversations.json", [{**CLAUDE_AI, "chat_messages": [message]}]))
    (hit,) = await et.search("hazelnuts")
    assert "list.txt" in hit.snippet
    (shown,) = await messages(et, "claude-ai:cl-1")
    assert shown.text == "Peanuts?"


async def test_hidden_context_of_chatgpt_is_not_said_by_the_user(et: Everthread, tmp_path: Path) -> None:
    hidden = chatgpt_message("user", "About the user: …", 0, metadata={"is_visually_hidden_from_conversation": True})
    mapping = {**CHATGPT["mapping"], "hidden": chatgpt_node("hidden", "root", ["u1"], hidden)}
    await imported(et, written(tmp_path / "conversations.json", [{**CHATGPT, "mapping": mapping}]))
    assert [one.role for one in await messages(et, "chatgpt:gpt-1")] == ["system", "user", "assistant"]


async def test_a_message_without_a_time_has_that_of_the_one_before_it(et: Everthread, tmp_path: Path) -> None:
    timeless = chatgpt_message("assistant", "To Dali.", 2)
    del timeless["create_time"]
    mapping = {**CHATGPT["mapping"], "a1": chatgpt_node("a1", "u1", [], timeless)}
    path = written(tmp_path / "conversations.json", [{**CHATGPT, "mapping": mapping, "current_node": "a1"}])
    await imported(et, path)
    asked, answered = await messages(et, "chatgpt:gpt-1")
    assert answered.said_at == asked.said_at


async def test_who_asks_in_open_webui_is_no_model(et: Everthread, tmp_path: Path) -> None:
    await imported(et, written(tmp_path / "chats.json", [OPEN_WEBUI]))
    assert [one.payload.get("model") for one in await messages(et, "open-webui:ow-1")] == [None, "m"]


async def test_numbered_conversations_of_two_files_with_one_system_prompt_are_two(
    et: Everthread, tmp_path: Path
) -> None:
    said = ("What is a fugue?", "What is a canon?")
    for number, text in enumerate(said):
        body = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]}
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps({"custom_id": "1", "body": body}) + "\n")
        assert (await Importer(et, "local").import_path(path)).revised == 0
    found = [[message.text for message in await messages(et, one.id)] for one in await et.conversations.list()]
    assert sorted(found) == [["Be brief.", text] for text in sorted(said)]

"""What newer versions of coding agents write: undone prompts, queued ones, packed files, other tables."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path, PurePath
from typing import Any

import pytest
import zstandard

from everthread import Everthread
from everthread.imports.claude_code import ClaudeCodeReader
from everthread.imports.codex import CodexReader
from everthread.imports.gemini_cli import GeminiReader
from everthread.imports.importer import Importer
from everthread.imports.session import START, NativeMessage
from everthread.imports.watch import Watcher, agent_folders
from tests.imports.agent_files import (
    CWD,
    SESSION,
    as_lines,
    claude_file,
    claude_line,
    claude_session,
    codex_event,
    codex_file,
    codex_item,
    codex_session,
)
from tests.imports.test_readers import CLAUDE, CODEX, read


async def sweep(et: Everthread, home: Path, environment: dict[str, str] | None = None) -> Watcher:
    watcher = Watcher(et, "local", agent_folders(home, environment or {}))
    async for _ in watcher.sweep():
        pass
    return watcher


async def shown(et: Everthread, id: str) -> list[tuple[str, str]]:
    conversation = await et.conversations.get(id)
    return [(one.role, one.text) async for one in conversation.messages() if not one.payload.get("is_meta")]


async def said(et: Everthread, id: str) -> set[str]:
    """Everything on every branch."""
    conversation = await et.conversations.get(id)
    return {one.text async for branch in conversation.branches() async for one in conversation.messages(branch=branch)}


def asked(second: int, text: str) -> dict[str, Any]:
    return codex_item(second, type="message", role="user", content=[{"type": "input_text", "text": text}])


def answered(second: int, text: str) -> dict[str, Any]:
    return codex_item(second, type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def after(messages: list[NativeMessage], text: str) -> str | None:
    (found,) = [one for one in messages if text in json.dumps(one.payload["content"])]
    return found.after


def test_prompts_that_codex_rolled_back_are_a_branch() -> None:
    lines = [
        *codex_session(),
        asked(10, "Delete a.py."),
        answered(11, "Gone."),
        asked(12, "And b.py."),
        answered(13, "Gone too."),
        codex_event(14, type="thread_rolled_back", num_turns=2),
        asked(15, "Rename a.py."),
    ]
    messages = read(CodexReader(CODEX), lines)
    assert after(messages, "Rename a.py.") == after(messages, "Delete a.py.")
    assert after(messages, "And b.py.") not in (None, START, after(messages, "Delete a.py."))


@pytest.mark.parametrize("turns", [1, 99])
async def test_a_first_prompt_that_is_undone_is_shown_no_more_and_kept(
    turns: int, et: Everthread, tmp_path: Path
) -> None:
    head = codex_session()[:1]
    codex_file(tmp_path, [
        *head, asked(1, "First try."), answered(2, "One."), codex_event(3, type="thread_rolled_back", num_turns=turns),
        asked(4, "Second try."), answered(5, "Two."),
    ])  # fmt: skip
    watcher = await sweep(et, tmp_path)
    assert await shown(et, "codex:codex-1") == [("user", "Second try."), ("assistant", "Two.")]
    assert await said(et, "codex:codex-1") == {"First try.", "One.", "Second try.", "Two."}
    os.utime(next(iter(watcher.files())))
    assert (await sweep(et, tmp_path)).counts.messages == 0


def test_what_codex_adds_in_a_users_name_is_no_prompt() -> None:
    lines = [
        *codex_session(),
        asked(9, "<user_shell_command>ls</user_shell_command>"),
        codex_item(9, type="agent_message", author="reviewer", recipient="main", content=[
            {"type": "input_text", "text": "I have finished."}]),
        codex_event(14, type="thread_rolled_back", num_turns=2),  # another agent's message is a turn too
        asked(15, "List them again."),
    ]  # fmt: skip
    reader = CodexReader(CODEX)
    messages = read(reader, lines)
    assert after(messages, "List them again.") == after(messages, "List the files.")
    typed = [one for one in messages if one.payload["role"] == "user" and not one.payload.get("is_meta")]
    assert len(typed) == 2


async def test_a_rollout_whose_lines_codex_writes_anew_says_nothing_new(et: Everthread, tmp_path: Path) -> None:
    lines = codex_session()
    path = codex_file(tmp_path, lines)
    watcher = await sweep(et, tmp_path)
    path.write_text("".join(json.dumps({"ordinal": n, **line}, indent=None) + "\n" for n, line in enumerate(lines)))
    before = await shown(et, "codex:codex-1")
    counts = (await sweep(et, tmp_path)).counts
    assert (counts.files, counts.messages, counts.removed) == (1, 0, 0)
    assert await shown(et, "codex:codex-1") == before
    assert watcher.counts.messages == 6


def test_a_plan_of_codex_that_no_item_has_is_kept() -> None:
    plan = {"type": "Plan", "id": "plan-1", "text": "First the tests, then the code."}
    messages = read(CodexReader(CODEX), [*codex_session(), codex_event(9, type="item_completed", item=plan)])
    assert (messages[-1].payload["role"], messages[-1].payload["content"]) == ("assistant", plan["text"])


def packed(path: Path) -> Path:
    """As Codex packs a rollout that was long not used: the plain file is gone afterwards, the times stay."""
    target = path.with_name(f"{path.name}.zst")
    target.write_bytes(zstandard.compress(path.read_bytes()))
    status = path.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()
    return target


def unpacked(path: Path) -> Path:
    target = path.with_suffix("")
    target.write_bytes(zstandard.decompress(path.read_bytes()))
    path.unlink()
    return target


async def test_a_rollout_that_codex_packs_and_unpacks_is_the_same_session(et: Everthread, tmp_path: Path) -> None:
    path = codex_file(tmp_path)
    watcher = await sweep(et, tmp_path)
    before = watcher.counts.messages
    path = packed(path)
    assert [change async for change in watcher.sweep()] == []
    assert (await sweep(et, tmp_path)).counts.messages == 0
    with unpacked(path).open("ab") as file:
        file.write(as_lines([asked(20, "One more.")]))
    changes = [change async for change in watcher.sweep()]
    assert [(change.messages, change.removed, change.is_gone) for change in changes] == [(1, 0, False)]
    assert before + 1 == watcher.counts.messages
    (source,) = await et.store.imports.sources("local")
    assert source.path.endswith(".jsonl")


async def test_of_a_plain_file_and_a_packed_one_the_plain_one_counts(et: Everthread, tmp_path: Path) -> None:
    path = codex_file(tmp_path)
    older = packed(path)
    whole = [*codex_session(), asked(20, "One more.")]
    codex_file(tmp_path, whole)
    watcher = await sweep(et, tmp_path)
    assert watcher.counts.messages == 7
    for file in (path, older, path):
        os.utime(file)
        await watcher.catch_up(file, next(iter(watcher.files().values())))
    assert (watcher.counts.messages, watcher.counts.removed) == (7, 0)
    os.utime(older, (0, 0))
    assert (await sweep(et, tmp_path)).counts.files == 0


async def test_a_folder_with_a_plain_file_and_its_packed_one_has_one_session(et: Everthread, tmp_path: Path) -> None:
    path = codex_file(tmp_path)
    packed(path)
    codex_file(tmp_path, [*codex_session(), asked(20, "One more.")])
    for _ in range(2):
        counts = await Importer(et, "local").import_path(tmp_path)
        assert (counts.removed, counts.revised) == (0, 0)
    assert (await shown(et, "codex:codex-1"))[-1] == ("user", "One more.")


async def test_a_packed_rollout_is_read_where_it_was_never_seen_plain(et: Everthread, tmp_path: Path) -> None:
    path = packed(codex_file(tmp_path))
    assert (await Importer(et, "local").import_path(path)).messages == 6
    assert (await sweep(et, tmp_path)).counts.messages == 0


GEMINI: list[dict[str, Any]] = [
    {"sessionId": "g1", "projectHash": "p", "startTime": "2026-03-01T10:00:00Z", "kind": "main"},
    {"id": "m1", "type": "user", "content": [{"text": "First"}]},
    {"id": "m2", "type": "gemini", "content": "One", "toolCalls": [{"id": "c", "name": "ls", "result": "a"}]},
    {"id": "m3", "type": "user", "content": [{"text": "Second"}]},
    {"id": "m4", "type": "gemini", "content": "Two"},
]


@pytest.mark.parametrize(
    ("target", "role", "expected"),
    [
        ("m3", "user", "m2:c"),  # another prompt in the place of the second
        ("m3", "gemini", "m3"),  # another answer to it
        ("m1", "user", START),
        ("unknown", "user", START),
        ("m2", "user", "m2:c"),
    ],
)
def test_a_rewind_of_gemini_takes_the_message_with_it(target: str, role: str, expected: str) -> None:
    lines = [*GEMINI, {"$rewindTo": target}, {"id": "m5", "type": role, "content": "Anew"}]
    assert read(GeminiReader(PurePath("session.jsonl")), lines)[-1].after == expected


def test_what_gemini_makes_of_a_compressed_conversation_nobody_said() -> None:
    listed = [
        {"id": "s1", "type": "user", "content": [{"text": "<state_snapshot>names</state_snapshot>"}]},
        {"id": "f1", "type": "user", "content": [{"functionResponse": {"id": "c", "response": {"output": "a"}}}]},
        GEMINI[-1],
    ]
    reader = GeminiReader(PurePath("session.jsonl"))
    messages = read(reader, [*GEMINI, {"$set": {"messages": listed, "summary": "Names of files"}}])
    assert messages[-2].payload["additional_kwargs"] == {"lc_source": "summarization"}
    assert [one.payload["id"] for one in messages] == ["m1", "m2", "m2:c", "m3", "m4", "s1", "m4"]
    assert reader.sessions["gemini-cli:g1"].title == "Names of files"


def test_what_gemini_s_model_got_from_a_tool_is_kept_with_what_was_shown_of_it() -> None:
    result = [{"functionResponse": {"id": "c", "response": {"output": "line 1\nline 2"}}}]
    calls = [
        {"id": "c", "name": "read", "result": result, "resultDisplay": "Read 2 lines"},
        {"id": "d", "name": "edit", "result": result, "resultDisplay": {"fileDiff": "+ line 2"}},
        {"id": "e", "name": "ls", "resultDisplay": "Nothing there"},
    ]
    lines = [GEMINI[0], {"id": "m2", "type": "gemini", "content": "One", "toolCalls": calls}]
    results = [one.payload for one in read(GeminiReader(PurePath("session.jsonl")), lines)[1:]]
    assert [one["content"] for one in results] == ["line 1\nline 2", "line 1\nline 2", "Nothing there"]
    assert [one.get("display") for one in results] == ["Read 2 lines", {"fileDiff": "+ line 2"}, None]


async def test_a_subagent_of_gemini_is_a_child_of_its_session(et: Everthread, tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "project" / "chats"
    (chats / "g1").mkdir(parents=True)
    (chats / "session-2026-03-01T10-00-g1.jsonl").write_bytes(as_lines(GEMINI))
    child = [{**GEMINI[0], "sessionId": "sub-1", "kind": "subagent"}, {"id": "x", "type": "user", "content": "Look."}]
    (chats / "g1" / "sub-1.jsonl").write_bytes(as_lines(child))
    await sweep(et, tmp_path)
    conversation = await et.conversations.get("gemini-cli:g1")
    assert [one.id async for one in conversation.children()] == ["gemini-cli:g1:sub-1"]


def test_what_was_typed_while_claude_worked_is_said_by_the_user_and_no_branch() -> None:
    queued = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "Also the tests.",
              "commandMode": "prompt"}, "uuid": "q", "parentUuid": claude_session()[-2]["uuid"], "sessionId": SESSION,
              "timestamp": "2026-03-01T10:00:12Z", "isSidechain": False}  # fmt: skip
    task = {**queued, "uuid": "t", "parentUuid": "q", "attachment": {
        "type": "queued_command", "prompt": "<task-notification>x", "commandMode": "task-notification"}}  # fmt: skip
    other = {**queued, "uuid": "o", "parentUuid": "t", "attachment": {"type": "todo_reminder", "content": []}}
    more = claude_line("a9", "o", "assistant", [{"type": "text", "text": "Those too."}], 13) | {"parentUuid": "o"}
    messages = read(ClaudeCodeReader(CLAUDE), [*claude_session(), queued, task, other, more])
    assert [one.payload["content"] for one in messages[-3:-1]] == ["Also the tests.", "<task-notification>x"]
    assert [one.payload.get("is_meta") for one in messages[-3:-1]] == [None, True]
    assert [one.after for one in messages[-3:]] == [messages[-4].payload["id"], "q", "t"]


async def test_a_rewind_of_claude_to_its_beginning_is_a_branch(et: Everthread, tmp_path: Path) -> None:
    again = claude_line("n1", None, "user", "Begin with the tests.", 30)
    claude_file(tmp_path, [*claude_session(), again])
    await sweep(et, tmp_path)
    assert await shown(et, f"claude-code:{SESSION}") == [("user", "Begin with the tests.")]
    assert len(await said(et, f"claude-code:{SESSION}")) > 5


def test_the_tokens_of_an_answer_in_several_lines_are_counted_once_and_to_their_end() -> None:
    def line(name: str, **usage: int) -> dict[str, Any]:
        value = claude_line(name, None, "assistant", [{"type": "text", "text": name}], 1)
        value["message"] |= {"id": "msg_1", "usage": usage}
        return value

    counts = {"input_tokens": 9, "cache_read_input_tokens": 100}
    lines = [line("x1", **counts, output_tokens=1), line("x2", **counts, output_tokens=1),
             line("x3", **counts, output_tokens=40)]  # fmt: skip
    messages = read(ClaudeCodeReader(CLAUDE), lines)
    assert [one.payload.get("usage") for one in messages] == [
        {**counts, "output_tokens": 1}, None, {"output_tokens": 39},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "first", ["<task-notification>x", "[Request interrupted by user]", "<bash-input>ls</bash-input>"]
)
def test_a_session_is_named_after_what_was_typed(first: str) -> None:
    reader = ClaudeCodeReader(CLAUDE)
    read(reader, [claude_line("u0", None, "user", first, 0), claude_line("u1", "u0", "user", "Fix the login.", 1)])
    assert reader.sessions[f"claude-code:{SESSION}"].title == "Fix the login."


# -- opencode --------------------------------------------------------------------------------------------------

MILLIS = 1772359200000
OPENCODE = """
    CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER,
        time_updated INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_updated INTEGER, data TEXT);
    CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER,
        time_updated INTEGER, data TEXT);
"""


def opencode(path: Path, fill: Callable[[sqlite3.Connection], object]) -> Path:
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        if is_new:
            connection.executescript(OPENCODE)
            connection.execute("INSERT INTO session VALUES ('s', NULL, ?, 'Names', ?, ?)", (CWD, MILLIS, MILLIS))
        fill(connection)
        connection.commit()
    return path


def whole(connection: sqlite3.Connection, seq: int, type_: str, changed_at: int = MILLIS, **data: Any) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO session_message VALUES (?, 's', ?, ?, ?, ?, ?)",
        (f"msg_{seq}", type_, seq, MILLIS, changed_at, json.dumps({"time": {"created": MILLIS + seq}, **data})),
    )


def in_parts(connection: sqlite3.Connection, number: int, head: dict[str, Any], *parts: dict[str, Any]) -> None:
    connection.execute("INSERT INTO message VALUES (?, 's', ?, ?)", (f"m{number}", MILLIS + number, json.dumps(head)))
    for index, part in enumerate(parts):
        values = (f"p{number}-{index}", f"m{number}", "s", MILLIS, json.dumps(part))
        connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", values)


async def test_a_session_of_opencode_with_whole_messages_is_read_and_followed(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    tool = {"type": "tool", "id": "c1", "name": "bash", "state": {
        "status": "completed", "input": {"command": "ls"}, "content": [{"type": "text", "text": "a.py"}]}}  # fmt: skip

    def fill(connection: sqlite3.Connection) -> None:
        whole(connection, 1, "user", text="List the files.")
        whole(connection, 2, "synthetic", text="You are in plan mode.")
        whole(connection, 3, "model-switched", model={"id": "m"})
        whole(connection, 4, "assistant", model={"id": "m"}, content=[{"type": "reasoning", "text": "ls"}, tool])
        whole(connection, 5, "compaction", summary="Files were listed.", reason="auto", recent="")
        whole(connection, 6, "shell", callID="sh", command="pwd", output="/srv")
        whole(connection, 7, "assistant", model={"id": "m"}, content=[{"type": "text", "text": "One"}])

    assert (await Importer(et, "local").import_path(opencode(path, fill))).problems == []
    assert await shown(et, "opencode:s") == [
        ("user", "List the files."), ("assistant", ""), ("tool", "a.py"), ("assistant", ""), ("tool", "/srv"),
        ("assistant", "One"),
    ]  # fmt: skip
    opencode(path, lambda connection: whole(
        connection, 7, "assistant", MILLIS + 1, model={"id": "m"}, content=[{"type": "text", "text": "One file."}]
    ))  # fmt: skip
    os.utime(path)
    counts = await Importer(et, "local").import_path(path)
    assert (counts.messages, counts.revised) == (0, 1)
    assert (await shown(et, "opencode:s"))[-1] == ("assistant", "One file.")


async def test_a_compaction_of_opencode_is_a_summary_and_what_it_adds_is_no_prompt(
    et: Everthread, tmp_path: Path
) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        in_parts(connection, 1, {"role": "user"}, {"type": "text", "text": "Hi"})
        in_parts(connection, 2, {"role": "user"}, {"type": "compaction", "auto": True})
        in_parts(connection, 3, {"role": "assistant", "summary": True}, {"type": "text", "text": "They greeted."})
        in_parts(connection, 4, {"role": "user"}, {"type": "text", "text": "Continue.", "synthetic": True})
        in_parts(connection, 5, {"role": "user"}, {"type": "subtask", "prompt": "Review it.", "agent": "a"})

    await Importer(et, "local").import_path(opencode(tmp_path / "opencode.db", fill))
    assert await shown(et, "opencode:s") == [("user", "Hi"), ("user", "Review it.")]
    assert "They greeted." not in await said(et, "opencode:s")


@pytest.mark.parametrize(("name", "environment"), [
    ("opencode-dev.db", {}), ("mine.db", {"OPENCODE_DB": "mine.db"}), ("opencode.db", {}),
])  # fmt: skip
async def test_opencodes_database_is_found_under_each_of_its_names(
    name: str, environment: dict[str, str], et: Everthread, tmp_path: Path
) -> None:
    path = tmp_path / ".local" / "share" / "opencode" / name
    opencode(path, lambda connection: in_parts(connection, 1, {"role": "user"}, {"type": "text", "text": "Hi"}))
    assert (await sweep(et, tmp_path, environment)).counts.messages == 1

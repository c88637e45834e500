"""The readers of coding agents: what each line says, and after which message."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import pytest

from everthread.imports.claude_code import ClaudeCodeReader
from everthread.imports.codex import CodexReader
from everthread.imports.gemini_cli import GeminiReader
from everthread.imports.line_agents import CopilotReader, CursorReader, PiReader, QwenReader
from everthread.imports.session import BrokenEntry, LineReader, NativeMessage, time_of
from tests.imports.agent_files import (
    CWD,
    SESSION,
    as_lines,
    claude_compacted,
    claude_line,
    claude_session,
    codex_event,
    codex_item,
    codex_session,
    named,
)

CLAUDE = PurePath(f"{SESSION}.jsonl")
CODEX = PurePath("rollout-2026-03-01T10-00-00-codex-1.jsonl")


def read(reader: LineReader, values: list[dict[str, Any]]) -> list[NativeMessage]:
    return [message for line in as_lines(values).splitlines(keepends=True) for message in reader.read(line)]


def texts(messages: list[NativeMessage]) -> list[str]:
    return [json.dumps(message.payload["content"], ensure_ascii=False) for message in messages]


def test_claude_messages_have_their_ids_times_models_thinking_and_calls() -> None:
    reader = ClaudeCodeReader(CLAUDE)
    said = read(reader, claude_session())
    assert [one.payload["role"] for one in said] == [
        "user", "assistant", "assistant", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool",
        "assistant",
    ]  # fmt: skip
    assert said[0].payload["id"] == named("u1")
    assert said[0].payload["created_at"] == "2026-03-01T10:00:01Z"
    assert said[1].payload["content"] == [{"type": "thinking", "thinking": "Look at it.", "signature": "x"}]
    assert said[1].payload["model"] == "claude-test-1"
    assert said[2].payload["tool_calls"] == [
        {"id": "t1", "name": "Read", "args": {"file_path": f"{CWD}/login.py"}, "type": "tool_call"}
    ]
    assert said[4].payload["tool_call_id"] == "t1"
    (session,) = reader.sessions.values()
    assert (session.id, session.title) == (f"claude-code:{SESSION}", "Why does the login test fail?")
    assert session.metadata["cwd"] == CWD


def test_parallel_tool_calls_of_claude_are_no_branches() -> None:
    said = read(ClaudeCodeReader(CLAUDE), claude_session())
    assert [one.after for one in said] == [None, *(one.payload["id"] for one in said[:-1])]


def test_a_claude_prompt_after_a_rewind_follows_the_message_it_was_typed_after() -> None:
    rewound = claude_line("u9", "a4", "user", "Do not fix it, explain.", 30)
    answer = claude_line("a9", "u9", "assistant", "Because.", 31)
    said = read(ClaudeCodeReader(CLAUDE), [*claude_session(), rewound, answer])
    assert [one.after for one in said[-2:]] == [named("a4"), named("u9")]


def test_a_compaction_of_claude_is_a_summary_that_nobody_said_and_the_talk_goes_on_behind_it() -> None:
    said = read(ClaudeCodeReader(CLAUDE), claude_compacted())
    summary, prompt, _ = said[-3:]
    assert summary.payload["additional_kwargs"] == {"lc_source": "summarization"}
    assert prompt.after == named("a6")


def test_lines_of_a_claude_subagent_are_a_session_below_the_one_they_name() -> None:
    side = {"isSidechain": True, "agentId": "abc"}
    reader = ClaudeCodeReader(PurePath(f"{SESSION}/subagents/agent-abc.jsonl"))
    (said,) = read(reader, [claude_line("x1", None, "user", "Search.", 3, **side)])
    assert said.session.id == f"claude-code:{SESSION}:agent-abc"
    assert said.session.parent_id == f"claude-code:{SESSION}"


def test_a_sidechain_between_the_lines_of_a_session_is_one_of_its_own() -> None:
    side = [
        claude_line("x1", None, "user", "Search.", 3, isSidechain=True),
        claude_line("x2", "x1", "assistant", "Found.", 4, isSidechain=True),
    ]
    lines = claude_session()
    said = read(ClaudeCodeReader(CLAUDE), [*lines[:4], *side, *lines[4:]])
    aside = [one for one in said if one.session.parent_id is not None]
    assert [(one.session.id, one.after) for one in aside] == [
        (f"claude-code:{SESSION}:agent-{named('x1')}", None),
        (f"claude-code:{SESSION}:agent-{named('x1')}", named("x1")),
    ]
    rest = [one for one in said if one.session.parent_id is None]
    assert [one.after for one in rest] == [None, *(one.payload["id"] for one in rest[:-1])]


def test_lines_without_ids_are_told_apart_by_their_count() -> None:
    line = {
        "type": "user",
        "sessionId": "s",
        "timestamp": "2026-07-17T09:00:00Z",
        "message": {"role": "user", "content": "ok"},
    }
    said = read(ClaudeCodeReader(PurePath("session.jsonl")), [line, line])
    assert len({one.payload["id"] for one in said}) == 2
    again = read(ClaudeCodeReader(PurePath("session.jsonl")), [line, line])
    assert [one.payload["id"] for one in again] == [one.payload["id"] for one in said]


def test_each_turn_of_codex_is_written_twice_and_read_once() -> None:
    reader = CodexReader(CODEX)
    said = read(reader, codex_session())
    assert [one.payload["role"] for one in said] == ["user", "user", "assistant", "assistant", "tool", "assistant"]
    assert said[0].payload["is_meta"] is True
    assert said[2].payload["content"] == [{"type": "thinking", "thinking": "Use ls."}]
    assert said[3].payload["tool_calls"][0]["args"] == {"command": ["ls"]}
    assert said[5].payload["content"] == [{"type": "text", "text": "There is a.py."}]
    assert said[5].payload["model"] == "gpt-test"
    (session,) = reader.sessions.values()
    assert (session.id, session.title, session.metadata["cwd"]) == ("codex:codex-1", "List the files.", CWD)


def test_what_only_the_terminal_of_codex_showed_is_kept_once_its_turn_ends() -> None:
    lines = [
        *codex_session(),
        codex_event(9, type="agent_message", message="Cut short."),
        codex_event(9, type="turn_aborted"),
    ]
    assert texts(read(CodexReader(CODEX), lines))[-1] == '"Cut short."'


def test_events_of_codex_before_their_items_are_no_messages() -> None:
    lines = [
        codex_event(1, type="user_message", message="Hello"),
        codex_item(1, type="message", role="user", content=[{"type": "input_text", "text": "Hello"}]),
        codex_event(2, type="task_complete"),
    ]
    assert len(read(CodexReader(CODEX), lines)) == 1


def test_a_compaction_of_codex_is_a_summary() -> None:
    compacted = {"timestamp": "2026-03-01T10:00:30Z", "type": "compacted", "payload": {"message": "We listed files."}}
    said = read(CodexReader(CODEX), [*codex_session(), compacted])
    assert said[-1].payload["additional_kwargs"] == {"lc_source": "summarization"}


def test_rollouts_without_envelopes_are_read() -> None:
    lines: list[dict[str, Any]] = [
        {"id": "old-1", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c", "id": "fc"},
    ]
    reader = CodexReader(PurePath("rollout.jsonl"))
    assert [one.payload["role"] for one in read(reader, lines)] == ["user", "assistant"]
    assert list(reader.sessions) == ["codex:old-1"]


def test_gemini_lines_are_replayed() -> None:
    lines: list[dict[str, Any]] = [
        {"sessionId": "g1", "projectHash": "p", "startTime": "2026-03-01T10:00:00Z"},
        {"id": "m1", "type": "user", "content": "First"},
        {"id": "m2", "type": "gemini", "content": "One", "model": "gemini-test", "thoughts": [{"subject": "S"}]},
        {"$rewindTo": "m1"},
        {
            "id": "m3",
            "type": "gemini",
            "content": "Two",
            "toolCalls": [{"id": "c", "name": "ls", "args": {}, "result": "a"}],
        },
    ]
    said = read(GeminiReader(PurePath("session.jsonl")), lines)
    assert [(one.payload["id"], one.after) for one in said] == [
        ("m1", None), ("m2", "m1"), ("m3", "m1"), ("m3:c", "m3"),
    ]  # fmt: skip
    assert said[1].payload["content"] == [{"type": "thinking", "thinking": "S"}, {"type": "text", "text": "One"}]


def test_a_session_of_pi_is_a_tree_and_its_other_lines_are_no_messages() -> None:
    lines: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-03-01T10:00:00Z", "cwd": CWD},
        {"type": "model_change", "id": "mc", "parentId": None, "modelId": "m"},
        {"type": "message", "id": "u1", "parentId": "mc", "message": {"role": "user", "content": "Hi"}},
        {"type": "message", "id": "a1", "parentId": "u1", "message": {"role": "assistant", "content": [
            {"type": "toolCall", "id": "c", "name": "ls", "arguments": {"path": "."}}]}},
        {"type": "message", "id": "r1", "parentId": "a1", "message": {
            "role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "a.py"}]}},
        {"type": "message", "id": "u2", "parentId": "u1", "message": {"role": "user", "content": "Or this"}},
        {"type": "compaction", "id": "k", "parentId": "u2", "summary": "They said hi."},
        {"type": "message", "id": "u3", "parentId": "k", "message": {"role": "user", "content": "On"}},
    ]  # fmt: skip
    said = read(PiReader(PurePath("/srv/ada/.pi/agent/sessions/x.jsonl")), lines)
    assert [(one.payload["id"], one.after) for one in said] == [
        ("u1", None), ("a1", "u1"), ("r1", "a1"), ("u2", "u1"), ("k", None), ("u3", "u2"),
    ]  # fmt: skip
    assert said[1].payload["tool_calls"][0]["args"] == {"path": "."}
    assert said[1].payload["model"] == "m"
    assert said[2].payload["role"] == "tool"
    assert said[4].payload["additional_kwargs"] == {"lc_source": "summarization"}


def test_events_of_copilot_that_are_messages_are_read_in_order() -> None:
    lines: list[dict[str, Any]] = [
        {"type": "session.start", "id": "0", "data": {"sessionId": "c1", "context": {"cwd": CWD}}},
        {"type": "user.message", "id": "1", "data": {"content": "Hi"}, "timestamp": "2026-03-01T10:00:00Z"},
        {"type": "assistant.message", "id": "2", "data": {
            "content": "", "toolRequests": [{"toolCallId": "t", "name": "ls", "arguments": {}}]}},
        {"type": "tool.execution_complete", "id": "3", "data": {"toolCallId": "t", "result": {"content": "a.py"}}},
        {"type": "session.shutdown", "id": "4", "data": {}},
    ]  # fmt: skip
    reader = CopilotReader(PurePath("c1/events.jsonl"))
    said = read(reader, lines)
    assert [one.payload["role"] for one in said] == ["user", "assistant", "tool"]
    assert [one.after for one in said] == [None, "1", "2"]
    assert said[2].payload["content"] == "a.py"
    assert reader.sessions["copilot-cli:c1"].metadata["cwd"] == CWD


def test_parts_of_qwen_are_thoughts_calls_and_answers() -> None:
    lines: list[dict[str, Any]] = [
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "q", "message": {"parts": [{"text": "Hi"}]}},
        {"type": "assistant", "uuid": "a", "parentUuid": "u", "model": "m", "message": {"parts": [
            {"text": "hm", "thought": True}, {"functionCall": {"id": "c", "name": "ls", "args": {}}}]}},
        {"type": "tool_result", "uuid": "t", "parentUuid": "a", "message": {"parts": [
            {"functionResponse": {"id": "c", "response": {"output": "a.py"}}}]}},
    ]  # fmt: skip
    said = read(QwenReader(PurePath("q.jsonl")), lines)
    assert [(one.payload["id"], one.payload["role"], one.after) for one in said] == [
        ("u", "user", None), ("a", "assistant", "u"), ("t", "tool", "a"),
    ]  # fmt: skip
    assert said[1].payload["content"] == [{"type": "thinking", "thinking": "hm"}]
    assert said[2].payload["content"] == "a.py"


@pytest.mark.parametrize("line", [b"{", b"[1]", b'"x"', b"\xff\xfe{}", b"null"])
@pytest.mark.parametrize(
    "reader", [ClaudeCodeReader, CodexReader, GeminiReader, PiReader, QwenReader, CopilotReader, CursorReader]
)
def test_a_broken_line_is_named(reader: Any, line: bytes) -> None:
    with pytest.raises(BrokenEntry):
        reader(CLAUDE).read(line)


@pytest.mark.parametrize(
    "value",
    [1772359200, 1772359200.0, 1772359200000, 1772359200000000, 1772359200000000000, "1772359200",
     "2026-03-01T10:00:00Z", "2026-03-01T11:00:00+01:00", "2026-03-01 10:00:00"],
)  # fmt: skip
def test_times_in_every_unit_are_the_same_moment(value: object) -> None:
    assert time_of(value) == "2026-03-01T10:00:00Z"


@pytest.mark.parametrize("value", [None, True, "soon", float("nan"), 1e300, -1e300, 10**400, "9" * 400, {}])
def test_what_is_no_time_is_none(value: object) -> None:
    assert time_of(value) is None

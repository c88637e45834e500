"""Small sessions in the formats of coding agents, written from their descriptions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"
CWD = "/srv/ada/project"


def named(text: str) -> str:
    """A uuid that is the same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


def as_lines(values: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def at(second: int) -> str:
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}.000Z"


def claude_line(name: str, parent: str | None, role: str, content: object, second: int, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": f"msg_{name}", "model": "claude-test-1", "usage": {"input_tokens": 3, "output_tokens": 4}}
    return {
        "parentUuid": None if parent is None else named(parent), "isSidechain": False, "userType": "external",
        "cwd": CWD, "sessionId": SESSION, "version": "2.0.1", "gitBranch": "main", "type": role, "message": message,
        "uuid": named(name), "timestamp": at(second), **more,
    }  # fmt: skip


def tool_use(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def tool_result(id: str, content: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def claude_answer(name: str, native: str, second: int, output: int, **more: Any) -> dict[str, Any]:
    """A line of an answer, with the tokens it took so far."""
    line = claude_line(name, None, "assistant", [{"type": "text", "text": name}], second, **more)
    usage = {"input_tokens": 9, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
             "cache_creation": {"ephemeral_5m_input_tokens": 7}, "output_tokens": output}  # fmt: skip
    line["message"] |= {"id": native, "usage": usage}
    return line


def claude_session() -> list[dict[str, Any]]:
    """Two prompts with parallel tool calls, thinking, and lines that are no messages."""
    return [
        {"type": "file-history-snapshot", "messageId": named("u1"), "snapshot": {}},
        claude_line("u1", None, "user", "Why does the login test fail?", 1),
        claude_line("a1", "u1", "assistant", [{"type": "thinking", "thinking": "Look at it.", "signature": "x"}], 2),
        claude_line("a2", "a1", "assistant", [tool_use("t1", "Read", file_path=f"{CWD}/login.py")], 3),
        claude_line("a3", "a2", "assistant", [tool_use("t2", "Bash", command="pytest -q")], 4),
        claude_line("r1", "a2", "user", [tool_result("t1", "def login(): ...")], 5),
        claude_line("r2", "a3", "user", [tool_result("t2", "1 failed")], 6),
        claude_line("a4", "r2", "assistant", [{"type": "text", "text": "The cookie name is wrong. 密码"}], 7),
        {"type": "system", "subtype": "turn_duration", "uuid": named("s1"), "parentUuid": named("a4")},
        claude_line("u2", "s1", "user", "Then fix it.", 8),
        claude_line("a5", "u2", "assistant", [tool_use("t3", "Edit", file_path=f"{CWD}/login.py", new_string="ok")], 9),
        claude_line("r3", "a5", "user", [tool_result("t3", "done")], 10),
        claude_line("a6", "r3", "assistant", [{"type": "text", "text": "Fixed."}], 11),
        {"type": "last-prompt", "lastPrompt": "Then fix it.", "sessionId": SESSION},
    ]


def claude_compacted() -> list[dict[str, Any]]:
    """The same, compacted, and gone on."""
    boundary = {
        "type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": named("a6"),
        "uuid": named("boundary"), "sessionId": SESSION, "content": "Conversation compacted", "timestamp": at(20),
    }  # fmt: skip
    return [
        *claude_session(),
        boundary,
        claude_line("sum", "boundary", "user", "This session is continued: cookies.", 21, isCompactSummary=True),
        claude_line("u3", "sum", "user", "What was it about?", 22),
        claude_line("a7", "u3", "assistant", [{"type": "text", "text": "A cookie."}], 23),
    ]


def claude_file(home: Path, lines: Iterable[Mapping[str, Any]] | None = None) -> Path:
    path = home / ".claude" / "projects" / "-srv-ada-project" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_lines(claude_session() if lines is None else lines))
    return path


def claude_subagent_file(home: Path) -> Path:
    path = home / ".claude" / "projects" / "-srv-ada-project" / SESSION / "subagents" / "agent-abc.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    side = {"isSidechain": True, "agentId": "abc"}
    path.write_bytes(as_lines([
        claude_line("x1", None, "user", "Search for cookies.", 3, **side),
        claude_line("x2", "x1", "assistant", [{"type": "text", "text": "Found two cookies."}], 4, **side),
    ]))  # fmt: skip
    return path


def codex_item(second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "response_item", "payload": payload}


def codex_event(second: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(second), "type": "event_msg", "payload": payload}


def codex_session() -> list[dict[str, Any]]:
    """One turn, as Codex writes it: twice."""
    asked = [{"type": "input_text", "text": "List the files."}]
    return [
        {"timestamp": at(0), "type": "session_meta", "payload": {"id": "codex-1", "cwd": CWD, "cli_version": "0.9"}},
        codex_item(0, type="message", role="user", content=[{"type": "input_text", "text": "<environment_context>x"}]),
        {"timestamp": at(1), "type": "turn_context", "payload": {"cwd": CWD, "model": "gpt-test"}},
        codex_item(1, type="message", role="user", content=asked),
        codex_event(1, type="user_message", message="List the files."),
        codex_event(2, type="agent_reasoning", text="Use ls."),
        codex_item(2, type="reasoning", summary=[{"type": "summary_text", "text": "Use ls."}], encrypted_content="zz"),
        codex_item(3, type="function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
        codex_item(4, type="function_call_output", call_id="c1", output="a.py"),
        codex_event(5, type="agent_message", message="There is a.py."),
        codex_item(5, type="message", role="assistant", content=[{"type": "output_text", "text": "There is a.py."}]),
        codex_event(6, type="token_count", info={"total": 3}),
        codex_event(6, type="task_complete"),
    ]


def codex_file(home: Path, lines: Iterable[Mapping[str, Any]] | None = None) -> Path:
    path = home / ".codex" / "sessions" / "2026" / "03" / "01" / "rollout-2026-03-01T10-00-00-codex-1.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_lines(codex_session() if lines is None else lines))
    return path

"""Readers of more coding agents with a message in each line: pi and its relatives, Qwen Code, Copilot CLI, Cursor CLI,
Antigravity, DeepSeek, Goose.

pi       `~/.pi/agent/sessions`, `~/.omp/agent/sessions`, `~/.openclaw/agents/*/sessions`: a tree by `parentId`
Qwen     `~/.qwen/projects/*/chats`: lines like Claude Code's, with Google's parts as content
Copilot  `~/.copilot/session-state/*/events.jsonl`: events, of which some are messages
Cursor   `~/.cursor/projects/*/agent-transcripts`: messages without ids and times
Antigravity  `~/.gemini/antigravity*/brain/*/.system_generated/logs/transcript.jsonl`: steps, of which some are messages
DeepSeek `~/.dsh/sessions/*/*/session.jsonl.zstd`: events; an answer is streamed first, and then written whole
Goose    `~/.local/share/goose/sessions/*.jsonl`: a head, and messages; newer ones have a database
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from everthread.core.payloads import block_type
from everthread.imports.blocks import message_payloads
from everthread.imports.session import (
    BrokenEntry,
    NativeMessage,
    Session,
    dict_at,
    line_digest,
    moment_of,
    one_line_title,
    parse_line,
    safe_id,
    summary_payload,
    text_in,
    time_of,
    tool_call,
    without_none,
)
from everthread.imports.session_lines import SessionLines

_PI_FAMILY = ("openclaw", "omp", "pi")


class PiReader:
    """Reads one session of pi, omp or OpenClaw."""

    def __init__(self, path: PurePath) -> None:
        agent = next((name for name in _PI_FAMILY if f".{name}" in path.parts or name in path.parts), "pi")
        self._lines = SessionLines(agent, path.stem)
        self._model: object = None

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        lines = self._lines
        match value.get("type"):
            case "session":
                session = lines.begin(value.get("id"), cwd=value.get("cwd"))
                session.created_at = session.created_at or moment_of(value.get("timestamp"))
                if isinstance(value.get("title"), str):
                    session.title = one_line_title(value["title"])
            case "message" if isinstance(value.get("message"), dict):
                payload = _pi_message(value["message"], self._model)
                at = value.get("timestamp")
                return [lines.said(payload, line, id=value.get("id"), at=at, parent=value.get("parentId"))]
            case "compaction" | "branch_summary" if isinstance(value.get("summary"), str):
                lines.pass_on(value, "parentId")
                common = without_none({"created_at": time_of(value.get("timestamp"))})
                summary = summary_payload(safe_id(value.get("id") or line_digest(line)), value["summary"], common)
                return [NativeMessage(session=lines.begin(None), payload=summary)]
            case "model_change":
                self._model = value.get("modelId") or value.get("model")
        lines.pass_on(value, "parentId")
        return []


def _pi_message(message: Mapping[str, Any], model: object) -> dict[str, Any]:
    role = str(message.get("role") or "user")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    calls = [one for one in blocks if isinstance(one, dict) and one.get("type") == "toolCall"]
    if role == "toolResult":
        status = "error" if message.get("isError") is True else None
        fields = {"role": "tool", "tool_call_id": message.get("toolCallId"), "content": content, "status": status}
        return without_none(fields)
    return without_none({
        "role": role, "content": [one for one in blocks if one not in calls] if blocks else content or "",
        "tool_calls": [tool_call(one.get("id"), one.get("name"), one.get("arguments")) for one in calls] or None,
        "model": (message.get("model") or model) if role == "assistant" else None, "usage": message.get("usage"),
    })  # fmt: skip


class QwenReader:
    """Reads one session of Qwen Code."""

    def __init__(self, path: PurePath) -> None:
        self._lines = SessionLines("qwen-code", path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        lines = self._lines
        lines.begin(value.get("sessionId"), cwd=value.get("cwd"), git_branch=value.get("gitBranch"))
        parts = dict_at(value, "message").get("parts")
        if value.get("type") not in ("user", "assistant", "tool_result") or not isinstance(parts, list):
            lines.pass_on({**value, "id": value.get("uuid")}, "parentUuid")
            return []
        said: list[NativeMessage] = []
        for index, payload in enumerate(_from_parts(parts, str(value["type"]), value.get("model"))):
            uuid = value.get("uuid")
            id = uuid if not index or uuid is None else safe_id(uuid, index)
            parent = None if index else value.get("parentUuid")
            said.append(lines.said(payload, line, id=id, at=value.get("timestamp"), parent=parent))
        return said


def _from_parts(parts: list[Any], kind: str, model: object) -> list[dict[str, Any]]:
    """Google's parts: texts, thoughts, calls and their answers."""
    given = [part for part in parts if isinstance(part, dict)]
    answers = [part["functionResponse"] for part in given if isinstance(part.get("functionResponse"), dict)]
    calls = [part["functionCall"] for part in given if isinstance(part.get("functionCall"), dict)]
    blocks: list[Any] = []
    for part in given:
        if isinstance(part.get("text"), str):
            is_thought = part.get("thought") is True
            blocks.append({"type": "thinking", "thinking": part["text"]} if is_thought else {"type": "text", **part})
        elif "functionCall" not in part and "functionResponse" not in part:
            blocks.append(part)
    payloads: list[dict[str, Any]] = []
    for answer in answers:
        body = answer.get("response")
        output = body.get("output", body) if isinstance(body, dict) else body
        payloads.append({"role": "tool", "tool_call_id": answer.get("id"), "content": str(output)})
    if blocks or calls or not payloads:
        made = [tool_call(call.get("id"), call.get("name"), call.get("args")) for call in calls]
        role = "assistant" if kind == "assistant" else "user"
        answered = {"tool_calls": made or None, "model": model if role == "assistant" else None}
        payloads.append(without_none({"role": role, "content": blocks, **answered}))
    return payloads


class CopilotReader:
    """Reads the events of one session of Copilot CLI."""

    def __init__(self, path: PurePath) -> None:
        self._lines = SessionLines("copilot-cli", path.parent.name or path.stem)
        self._model: object = None

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        data = dict_at(value, "data")
        kind = value.get("type")
        payload: dict[str, Any] | None = None
        if kind == "session.start":
            session = self._lines.begin(data.get("sessionId"), cwd=dict_at(data, "context").get("cwd"))
            session.created_at = session.created_at or moment_of(data.get("startTime"))
        elif kind == "session.model_change":
            self._model = data.get("newModel")
        elif kind in ("user.message", "system.message"):
            payload = {"role": str(kind).partition(".")[0], "content": data.get("content") or ""}
        elif kind == "assistant.message":
            asked = [one for one in data.get("toolRequests") or () if isinstance(one, dict)]
            calls = [tool_call(one.get("toolCallId"), one.get("name"), one.get("arguments")) for one in asked]
            fields = {"content": data.get("content") or "", "tool_calls": calls or None, "model": self._model}
            payload = without_none({"role": "assistant", **fields})
        elif kind == "tool.execution_complete":
            result = data.get("result")
            said = text_in(result) or ("" if result is None else str(result))
            payload = {"role": "tool", "tool_call_id": data.get("toolCallId"), "content": said}
        if payload is None:
            return []
        return [self._lines.said(payload, line, id=value.get("id"), at=value.get("timestamp"))]


class CursorReader:
    """Reads one transcript of Cursor CLI, which has neither ids nor times: when a line is first read, it was said when
    its file was last written to."""

    def __init__(self, path: PurePath) -> None:
        self._path = Path(path)
        self._lines = SessionLines("cursor-cli", path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None or value.get("role") not in ("user", "assistant"):
            return []
        content = dict_at(value, "message").get("content")
        blocks = content if isinstance(content, list) else []
        uses = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_use"]
        calls = [tool_call(one.get("id"), one.get("name"), one.get("input")) for one in uses]
        kept = [one for one in blocks if one not in uses] if blocks else content or ""
        payload = without_none({"role": value["role"], "content": kept, "tool_calls": calls or None})
        at = value.get("timestamp")
        if at is not None:
            return [self._lines.said(payload, line, id=None, at=at)]
        return [replace(self._lines.said(payload, line, id=None, at=self._written_at()), replaces_nothing=True)]

    def _written_at(self) -> float | None:
        try:
            return self._path.stat().st_mtime
        except OSError:
            return None


_METADATA = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE)>(.*?)</\1>", re.DOTALL)
_SPOKEN_STEPS = (None, "", "PLANNER_RESPONSE")
_STEP_FILE = re.compile(
    r"^[^\S\n]*+(?:File Path|Created file|Edited file|Modified file):?\s++`?(?:file://)?(/[^`\n]*)", re.MULTILINE
)
_STEP_COMMAND = re.compile(r"^[^\S\n]*+Task Description:\s*(.+)$", re.MULTILINE)


class AntigravityReader:
    """Reads one transcript of Antigravity. Most of its steps are tools at work, told as text."""

    def __init__(self, path: PurePath) -> None:
        name = path.parents[2].name if len(path.parents) > 3 else path.stem
        self._lines = SessionLines("antigravity", name or path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        content = None if value is None else value.get("content")
        if value is None or not isinstance(content, str) or not content.strip():
            return []
        source, kind = value.get("source"), block_type(value)
        payload: dict[str, Any]
        if source == "USER_EXPLICIT":
            for name, told in _METADATA.findall(content):
                if name == "ADDITIONAL_METADATA":
                    self._note(told)
            said = _METADATA.sub("", content).strip().removeprefix("<USER_REQUEST>").removesuffix("</USER_REQUEST>")
            payload = {"role": "user", "content": said.strip()}
        elif source == "MODEL" and kind in _SPOKEN_STEPS:
            payload = {"role": "assistant", "content": content}
        elif source == "MODEL":
            return self._step(kind, content, line, value.get("created_at"))
        else:
            return []
        return [self._lines.said(payload, line, id=None, at=value.get("created_at"))]

    def _note(self, told: str) -> None:
        try:
            metadata = parse_line(told.encode("utf-8", "replace"))
        except BrokenEntry:
            return
        self._lines.begin(None, cwd=(metadata or {}).get("cwd"))

    def _step(self, kind: str, content: str, line: bytes, at: object) -> list[NativeMessage]:
        """A tool at work: the call, as far as the text names what it was about, and what came of it."""
        file, command = _STEP_FILE.search(content), _STEP_COMMAND.search(content)
        given = {"path": file[1].strip()} if file else {"command": command[1].strip()} if command else {}
        call = tool_call(f"step-{line_digest(line)[:12]}", kind.lower(), given)
        asked = self._lines.said({"role": "assistant", "content": "", "tool_calls": [call]}, line, id=None, at=at)
        result = {"role": "tool", "tool_call_id": call["id"], "content": content}
        return [asked, self._lines.said(result, line, id=None, at=at)]


class DeepSeekReader:
    """Reads the log of one session of DeepSeek's harness."""

    def __init__(self, path: PurePath) -> None:
        self._lines = SessionLines("deepseek", path.parent.name or path.stem)
        self._made: set[object] = set()
        """Calls that stood in a message."""

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        data, at = dict_at(value, "data"), value.get("time")
        payloads: list[dict[str, Any]] = []
        match value.get("type"):
            case "session":
                session = self._lines.begin(value.get("id"), cwd=value.get("cwd"))
                session.created_at = session.created_at or moment_of(value.get("createdAt"))
            case "session/title" if isinstance(data.get("title"), str):
                if dict_at(data, "source").get("kind") != "fallback":  # which is the beginning of the first prompt
                    self._lines.begin(None).title = one_line_title(data["title"])
            case "user/message":
                is_typed = dict_at(data, "source").get("kind") in (None, "user")
                payloads = message_payloads("user", data.get("content"))
                for payload in payloads if not is_typed else ():
                    payload["is_meta"] = True
            case "assistant/message":
                message = dict_at(data, "message")
                model = message.get("model") or dict_at(message, "source").get("model")
                usage = message.get("usage") or data.get("usage")
                payloads = message_payloads("assistant", message.get("content"), model=model, usage=usage)
                self._made |= {call["id"] for payload in payloads for call in payload.get("tool_calls") or ()}
            case "tool/call" if data.get("callId") not in self._made:
                call = tool_call(data.get("callId"), data.get("name"), data.get("arguments"))
                payloads = [{"role": "assistant", "content": "", "tool_calls": [call]}]
            case "tool/result":
                payloads = message_payloads("tool", dict_at(data, "message").get("content"))
        return self._lines.all_said(payloads, line, id=None, at=at)


class GooseReader:
    """Reads one session of Goose before 1.10."""

    def __init__(self, path: PurePath) -> None:
        self._lines = SessionLines("goose", path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        if "working_dir" in value and "role" not in value:
            session = self._lines.begin(value.get("id"), cwd=value.get("working_dir"))
            session.created_at = session.created_at or moment_of(value.get("created_at"))
            if isinstance(value.get("description"), str) and value["description"].strip():
                session.title = one_line_title(value["description"])
            return []
        if value.get("role") not in ("user", "assistant"):
            return []
        payloads = goose_payloads(value["role"], value.get("content"), dict_at(value, "metadata"))
        return self._lines.all_said(payloads, line, id=value.get("id"), at=value.get("created"))


def goose_payloads(role: str, content: object, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message of Goose. What only the model sees is a summary, or Goose's own words about one."""
    payloads = message_payloads(role, content)
    if metadata.get("userVisible") is False and role == "user":
        return [summary_payload("", payload["content"], {}) for payload in payloads if payload["role"] == "user"]
    return payloads

"""Readers of more coding agents with sessions in JSON lines: pi and its relatives, Qwen Code, Copilot CLI, Cursor CLI.

pi       `~/.pi/agent/sessions`, `~/.omp/agent/sessions`, `~/.openclaw/agents/*/sessions`: a tree by `parentId`
Qwen     `~/.qwen/projects/*/chats`: lines like Claude Code's, with Google's parts as content
Copilot  `~/.copilot/session-state/*/events.jsonl`: events, of which some are messages
Cursor   `~/.cursor/projects/*/agent-transcripts`: messages without ids and times
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from everthread.imports.session import (
    LineIds,
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

_PI_FAMILY = ("openclaw", "omp", "pi")


class _Lines:
    """What these readers share: one session, ids, and the message that each line follows."""

    def __init__(self, agent: str, name: str) -> None:
        self.agent = agent
        self.name = name
        self.session: Session | None = None
        self.last: str | None = None
        self._ids = LineIds()
        self._messages: dict[str, str | None] = {}
        """For the native id of each line the id of the last message up to it."""

    def begin(self, native: object, **known: object) -> Session:
        """The session; the first line that names it counts."""
        if self.session is None:
            named = native if isinstance(native, str) and native else self.name
            self.session = Session(id=safe_id(self.agent, named), agent=self.agent)
            self.session.note(agent=self.agent, session=named)
        self.session.note(**known)
        return self.session

    def pass_on(self, value: Mapping[str, Any], parent: str) -> None:
        """Let lines after one that is no message follow the message before it."""
        if isinstance(value.get(parent), str) and isinstance(value.get("id"), str):
            self._messages[value["id"]] = self._messages.get(value[parent], self.last)

    def said(
        self, payload: dict[str, Any], line: bytes, *, id: object, at: object, parent: object = None
    ) -> NativeMessage:
        """A message, after its parent or, without one, after the last."""
        session = self.begin(None)
        session.created_at = session.created_at or moment_of(at)
        own = safe_id(id) if isinstance(id, str) and id else self._ids.of(line)
        if payload["role"] == "user":
            session.name_after(text_in(payload["content"]))
        common = without_none({"created_at": time_of(at), "line": line_digest(line)[:16]})
        after = self._messages.get(parent, self.last) if isinstance(parent, str) else self.last
        self.last = own
        if isinstance(id, str):
            self._messages[id] = own
        return NativeMessage(session=session, payload={**common, **payload, "id": own}, after=after)


def _sessions(lines: _Lines) -> dict[str, Session]:
    return {} if lines.session is None else {lines.session.id: lines.session}


class PiReader:
    """Reads one session of pi, omp or OpenClaw."""

    def __init__(self, path: PurePath) -> None:
        agent = next((name for name in _PI_FAMILY if f".{name}" in path.parts or name in path.parts), "pi")
        self._lines = _Lines(agent, path.stem)
        self._model: object = None

    @property
    def sessions(self) -> dict[str, Session]:
        return _sessions(self._lines)

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
        self._lines = _Lines("qwen-code", path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return _sessions(self._lines)

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
        self._lines = _Lines("copilot-cli", path.parent.name or path.stem)
        self._model: object = None

    @property
    def sessions(self) -> dict[str, Session]:
        return _sessions(self._lines)

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
    """Reads one transcript of Cursor CLI, which has neither ids nor times."""

    def __init__(self, path: PurePath) -> None:
        self._lines = _Lines("cursor-cli", path.stem)

    @property
    def sessions(self) -> dict[str, Session]:
        return _sessions(self._lines)

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
        return [self._lines.said(payload, line, id=None, at=value.get("timestamp"))]

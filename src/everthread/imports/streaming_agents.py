"""Readers of agents whose messages grow line by line: Kimi Code, Grok, aider.

Kimi   `~/.kimi-code/sessions/*/*/agents/*/wire.jsonl`: events; a step of the model is one message, part by part
Grok   `~/.grok/sessions/*/*/updates.jsonl`: chunks of what is said, as the Agent Client Protocol has them
aider  `.aider.chat.history.md` in each project: Markdown, many sessions in a file, without ids and times
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

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
    small_document,
    summary_payload,
    text_in,
    tool_call,
    without_none,
)
from everthread.imports.session_lines import GrowingMessage, SessionLines

_COMPACTED = ("context.compaction", "context.apply_compaction", "compaction.end")


class KimiReader:
    """Reads the wire of one agent of a session of Kimi Code."""

    def __init__(self, path: PurePath) -> None:
        above = path.parents
        is_in_place = len(above) > 3 and above[1].name == "agents"
        folder = above[2] if is_in_place else above[0]
        state = small_document(folder / "state.json")
        named = folder.name or path.stem
        self._lines = SessionLines("kimi", named)
        session = self._lines.begin(named, cwd=state.get("workDir"))
        if is_in_place and above[0].name != "main":
            session.parent_id = session.id
            session.id = safe_id(session.id, above[0].name)
            session.note(subagent=above[0].name)
        elif isinstance(state.get("title"), str) and state["title"].strip():
            session.title = one_line_title(state["title"])
        session.created_at = moment_of(state.get("createdAt"))
        self._growing = GrowingMessage(self._lines)
        self._model: object = None

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        kind, at = value.get("type"), value.get("time")
        if kind == "config.update":
            self._model = value.get("model") or value.get("modelAlias") or self._model
        elif kind == "context.append_message":
            message = dict_at(value, "message")
            role = str(message.get("role") or "user")
            payloads = message_payloads(role, message.get("content"))
            calls = [_kimi_call(one) for one in message.get("toolCalls") or () if isinstance(one, dict)]
            if calls and payloads:
                payloads[-1]["tool_calls"] = calls
            if role == "user" and dict_at(message, "origin").get("kind") not in (None, "user"):
                payloads = [{**payload, "is_meta": True} for payload in payloads]
            return self._lines.all_said(payloads, line, id=None, at=at)
        elif kind == "context.append_loop_event":
            return self._event(dict_at(value, "event"), line, at)
        elif kind in _COMPACTED and isinstance(value.get("summary"), str):
            payload = summary_payload("", value["summary"], {})
            return [self._lines.said(payload, line, id=None, at=at)]
        return []

    def _event(self, event: Mapping[str, Any], line: bytes, at: object) -> list[NativeMessage]:
        kind, step = event.get("type"), event.get("stepUuid")
        so_far = self._growing.payload(step) or {"role": "assistant", "content": [], "model": self._model}
        if kind == "content.part" and isinstance(event.get("part"), dict):
            (part,) = message_payloads("assistant", [event["part"]])
            content = [*so_far["content"]]
            if content and (joined := _joined(content[-1], part["content"][0])) is not None:
                content[-1:] = [joined]
            else:
                content += part["content"]
            return self._growing.grown(step, without_none({**so_far, "content": content}), line, at=at)
        if kind == "tool.call":
            call = tool_call(event.get("toolCallId") or event.get("uuid"), event.get("name"), event.get("args"))
            calls = [*(so_far.get("tool_calls") or ()), call]
            return self._growing.grown(step, without_none({**so_far, "tool_calls": calls}), line, at=at)
        if kind == "tool.result":
            result = event.get("result")
            said = result.get("output") if isinstance(result, dict) else result
            is_error = isinstance(result, dict) and result.get("isError") is True
            payload = without_none({
                "role": "tool", "tool_call_id": event.get("toolCallId") or event.get("parentUuid"),
                "content": said if isinstance(said, str) else text_in(said), "status": "error" if is_error else None,
            })  # fmt: skip
            return [self._lines.said(payload, line, id=None, at=at)]
        if kind == "step.end" and isinstance(event.get("usage"), dict) and self._growing.payload(step) is not None:
            return self._growing.grown(step, {**so_far, "usage": event["usage"]}, line, at=at)
        return []


def _kimi_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict_at(call, "function")
    return tool_call(
        call.get("id"), call.get("name") or function.get("name"), call.get("arguments", function.get("arguments"))
    )


def _joined(before: object, part: object) -> dict[str, Any] | None:
    """Two parts of one text, or of one thought, as one; None for parts of different kinds."""
    if not isinstance(before, dict) or not isinstance(part, dict) or before.get("type") != part.get("type"):
        return None
    name = {"text": "text", "thinking": "thinking"}.get(str(part.get("type")), "")
    if not isinstance(before.get(name), str) or not isinstance(part.get(name), str):
        return None
    return {**before, **part, name: before[name] + part[name]}


class GrokReader:
    """Reads the updates of one session of Grok."""

    def __init__(self, path: PurePath) -> None:
        summary = small_document(path.with_name("summary.json"))
        info = dict_at(summary, "info")
        folder = unquote(path.parent.parent.name)
        cwd = info.get("cwd") or (folder if folder.startswith("/") else None)
        self._lines = SessionLines("grok", path.parent.name or path.stem)
        session = self._lines.begin(info.get("id"), cwd=cwd)
        session.created_at = moment_of(summary.get("created_at"))
        title = summary.get("generated_title") or summary.get("session_summary")
        session.title = one_line_title(title) if isinstance(title, str) and title.strip() else None
        if isinstance(summary.get("parent_session_id"), str):
            session.parent_id = safe_id("grok", summary["parent_session_id"])
            session.note(subagent=summary.get("agent_name"))
        session.note(model=summary.get("current_model_id"))
        self._growing = GrowingMessage(self._lines)

    @property
    def sessions(self) -> dict[str, Session]:
        return self._lines.sessions

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        params = dict_at(value, "params")
        update = dict_at(params, "update")
        at = value.get("timestamp") or dict_at(params, "_meta").get("agentTimestampMs")
        kind = update.get("sessionUpdate")
        if kind in ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk"):
            return self._chunk(str(kind), update, dict_at(params, "_meta"), line, at)
        if kind == "tool_call":
            given = update.get("rawInput") or {"title": update.get("title"), "locations": update.get("locations")}
            name = update.get("kind") or update.get("title")
            call = tool_call(update.get("toolCallId"), name, without_none(given) if isinstance(given, dict) else given)
            payload = {"role": "assistant", "content": "", "tool_calls": [call]}
            return [self._lines.said(payload, line, id=None, at=at)]
        if kind == "tool_call_update" and update.get("status") in ("completed", "failed"):
            said = text_in(update.get("content")) or str(update.get("rawOutput") or "")
            status = "error" if update["status"] == "failed" else None
            result = {"role": "tool", "tool_call_id": update.get("toolCallId"), "content": said, "status": status}
            return [self._lines.said(without_none(result), line, id=None, at=at)]
        return []

    def _chunk(
        self, kind: str, update: Mapping[str, Any], meta: Mapping[str, Any], line: bytes, at: object
    ) -> list[NativeMessage]:
        role = "user" if kind == "user_message_chunk" else "assistant"
        key = (role, dict_at(update, "_meta").get("promptIndex") if role == "user" else meta.get("promptId"))
        so_far = self._growing.payload(key) or {"role": role, "content": []}
        said = text_in(update.get("content"))
        part = {"type": "text", "text": said}
        if kind == "agent_thought_chunk":
            part = {"type": "thinking", "thinking": said}
        content = [*so_far["content"]]
        joined = _joined(content[-1], part) if content else None
        content[len(content) - (joined is not None) :] = [part if joined is None else joined]
        return self._growing.grown(key, {**so_far, "content": content}, line, at=at)


_STARTED = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_EDITED = re.compile(r"> (?:Applied edit to|Creating empty file|Added) (\S.*?)(?: to the chat\.?)?\s*$")
_TOKENS = re.compile(r"> Tokens: ([\d.,]+[kM]?) sent.*?([\d.,]+[kM]?) received")
_MODEL = re.compile(r"> (?:Main model|Model): (\S+)")


class AiderReader:
    """Reads the history of one project. A session is known by when it began and by its first prompt, so that it stays
    the same in a folder with another name."""

    def __init__(self, path: PurePath) -> None:
        self.sessions: dict[str, Session] = {}
        self._cwd = str(path.parent) if path.is_absolute() else None
        self._started: str | None = None
        self._model: str | None = None
        self._lines: SessionLines | None = None
        self._growing: GrowingMessage | None = None
        self._role: str | None = None
        """Who says the lines that come: the user, the model (assistant), or aider itself (tool)."""
        self._said: list[str] = []
        self._first = b""
        self._is_fenced = False
        self._messages = 0

    def read(self, line: bytes) -> list[NativeMessage]:
        try:
            text = line.decode()
        except UnicodeDecodeError as problem:
            raise BrokenEntry(f"is not UTF-8: {problem.reason}") from problem
        text = text.rstrip("\r\n")
        if (begun := _STARTED.fullmatch(text)) is not None:
            self._started, self._lines, self._growing, self._role = begun[1], None, None, None
            self._model, self._is_fenced = None, False
            return []
        if self._started is None:
            return []
        role, said = self._role_of(text)
        if role is None:
            return []
        if self._lines is None:
            if role != "user":
                self._note_model(text)
                return []
            self._begin(line)
        return self._grow(role, said, line)

    def _role_of(self, text: str) -> tuple[str | None, str]:
        """Who says a line, and what. Prefixes count outside of fences only."""
        if text.lstrip().startswith("```"):
            self._is_fenced = not self._is_fenced
            return ("assistant" if self._role != "user" else None), text
        if self._is_fenced:
            return "assistant", text
        if text == "####" or text.startswith("#### "):
            return "user", text.removeprefix("####").strip().removeprefix("<blank>")
        if text == ">" or text.startswith("> "):
            return "tool", text
        if not text.strip():
            if self._role != "assistant":
                self._role = None  # a blank line ends what a person typed
                return None, ""
            return "assistant", ""
        return "assistant", text

    def _begin(self, line: bytes) -> None:
        """The first prompt: with the time, it says which session this is."""
        assert self._started is not None
        name = f"{self._started.replace(' ', 'T')}-{line_digest(line)[:8]}"
        number = 2
        while safe_id("aider", name) in self.sessions:
            name, number = f"{name.partition('#')[0]}#{number}", number + 1
        self._lines = SessionLines("aider", name)
        session = self._lines.begin(name, cwd=self._cwd, model=self._model)
        session.created_at = datetime.fromisoformat(self._started).astimezone()  # aider writes the machine's own time
        self.sessions[session.id] = session
        self._growing, self._role, self._messages = GrowingMessage(self._lines), None, 0

    def _grow(self, role: str, said: str, line: bytes) -> list[NativeMessage]:
        assert self._lines is not None
        assert self._growing is not None
        if role != self._role:
            if role == "assistant" and not said.strip():
                return []
            self._role, self._said, self._messages = role, [], self._messages + 1
        self._said.append(said)
        text = "\n".join(self._said).rstrip()
        payload: dict[str, Any] = {"role": "user" if role == "user" else "assistant", "content": text}
        if role == "assistant":
            payload |= without_none({"model": self._model})
        if role == "tool":
            self._note_model(said)
            payload |= self._work(line) | {"name": "aider"}
        session = self._lines.begin(None)
        at = None if session.created_at is None else session.created_at.isoformat()
        grown = self._growing.grown(self._messages, payload, line, at=at)
        if session.title is not None and session.title.startswith("/"):
            session.title = None  # a command of aider says nothing of what it is about
        return grown

    def _note_model(self, text: str) -> None:
        if (named := _MODEL.match(text)) is not None:
            self._model = named[1]

    def _work(self, line: bytes) -> dict[str, Any]:
        """What aider did to files, and what the request cost, as far as it tells."""
        assert self._lines is not None
        edits = [found[1] for said in self._said if (found := _EDITED.match(said)) is not None]
        tokens = next((found for said in self._said if (found := _TOKENS.match(said)) is not None), None)
        calls = [
            tool_call(f"{self._messages}-{index}", "edit", {"path": path}) for index, path in enumerate(edits, start=1)
        ]
        usage = None if tokens is None else {"input_tokens": _count(tokens[1]), "output_tokens": _count(tokens[2])}
        return without_none({"tool_calls": calls or None, "usage": usage})


def _count(text: str) -> int:
    """`2.3k` as 2300."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    try:
        return round(float(text.rstrip("kM").replace(",", "")) * factor)
    except (ValueError, OverflowError):
        return 0

"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, a whole document, or `.jsonl`, which is replayed.

In JSON lines a message that comes again with its id is a newer state of it, `$set` replaces fields of the document
(`messages` too), and `$rewindTo` goes back to a message: what follows is a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from everthread.imports.session import (
    BrokenEntry,
    LineIds,
    NativeMessage,
    Session,
    dict_at,
    moment_of,
    parse_line,
    safe_id,
    small_document,
    text_in,
    time_of,
    tool_call,
    without_none,
)

AGENT = "gemini-cli"
_ROLES = {"user": "user", "gemini": "assistant", "model": "assistant"}


class GeminiReader:
    """Reads one session in JSON lines."""

    def __init__(self, path: PurePath) -> None:
        self.sessions: dict[str, Session] = {}
        self._path = path
        self._session: Session | None = None
        self._ids = LineIds()
        self._last: str | None = None
        self._follows: dict[str, str | None] = {}
        """What each message was first said after: a newer state of it stays there."""

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        if "sessionId" in value and "type" not in value:
            self._begin(value)
        if isinstance(value.get("$rewindTo"), str):
            target = safe_id(value["$rewindTo"])
            self._last = target if target in self._follows else self._last
            return []
        changes = value.get("$set")
        if isinstance(changes, dict):
            listed = changes.get("messages")
            return self.messages(listed, line) if isinstance(listed, list) else []
        if isinstance(value.get("messages"), list):
            return self.messages(value["messages"], line)
        return list(self._message(value, line)) if "type" in value else []

    def messages(self, listed: list[Any], line: bytes) -> list[NativeMessage]:
        """The messages of a whole list, which begins at the beginning."""
        self._last = None
        return [one for value in listed if isinstance(value, dict) for one in self._message(value, line)]

    def _begin(self, head: Mapping[str, Any]) -> Session:
        if self._session is None:
            native = head.get("sessionId") or self._path.stem
            id = safe_id(AGENT, native)
            self._session = Session(id=id, agent=AGENT, created_at=moment_of(head.get("startTime")))
            self._session.note(agent=AGENT, session=native, project_hash=head.get("projectHash"))
            directories = head.get("directories")
            self._session.note(cwd=directories[0] if isinstance(directories, list) and directories else None)
            self._session.note(cwd=_project_folder(self._path))
            self.sessions[id] = self._session
        return self._session

    def _message(self, value: Mapping[str, Any], line: bytes) -> Iterator[NativeMessage]:
        role = _ROLES.get(str(value.get("type")))
        if role is None:
            return
        session = self._begin(value)
        session.created_at = session.created_at or moment_of(value.get("timestamp"))
        id = safe_id(value["id"]) if value.get("id") else self._ids.of(line)
        if role == "user":
            session.name_after(text_in(value.get("content")))
        for payload in _payloads(value, role, id):
            after = self._follows.setdefault(payload["id"], self._last)
            self._last = payload["id"]
            yield NativeMessage(session=session, payload=payload, after=after)


def read_document(document: object, path: PurePath) -> tuple[dict[str, Session], list[NativeMessage]]:
    """A session that is one JSON document."""
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        raise BrokenEntry("has no list of messages")
    reader = GeminiReader(path)
    reader._begin(document)
    return reader.sessions, reader.messages(document["messages"], b"")


def _project_folder(path: PurePath) -> str | None:
    """The folder that a session of `tmp/<project>/chats` ran in, where Gemini CLI says so: in the project's own folder,
    or in a list of all projects. Its files have a hash of it at most."""
    if path.parent.name != "chats":
        return None
    project = path.parent.parent
    with suppress(OSError, UnicodeDecodeError):
        root = Path(project, ".project_root")
        if root.is_file() and (folder := root.read_text().strip()):
            return folder
    listed = dict_at(small_document(project.parent.parent / "projects.json"), "projects")
    return next((folder for folder, name in listed.items() if name == project.name), None)


def _payloads(value: Mapping[str, Any], role: str, id: str) -> Iterator[dict[str, Any]]:
    common = without_none({"created_at": time_of(value.get("timestamp"))})
    calls = [call for call in value.get("toolCalls") or () if isinstance(call, dict)]
    content = _content(value.get("content"))
    thoughts = [
        {"type": "thinking", "thinking": "\n".join(str(one[key]) for key in ("subject", "description") if one.get(key))}
        for one in value.get("thoughts") or ()
        if isinstance(one, dict)
    ]
    if thoughts:
        content = [
            *thoughts,
            *([{"type": "text", "text": content}] if isinstance(content, str) and content else content),
        ]
    made = [tool_call(call.get("id"), call.get("name"), call.get("args")) for call in calls]
    yield without_none({
        **common, "id": id, "role": role, "content": content, "tool_calls": made or None,
        "model": value.get("model"), "usage": value.get("tokens"),
    })  # fmt: skip
    for call in calls:
        if call.get("result") is not None or call.get("resultDisplay") is not None:
            shown = text_in(call.get("resultDisplay")) or _result_text(call.get("result"))
            yield {
                **common, "id": safe_id(id, call.get("id")), "role": "tool", "tool_call_id": call.get("id"),
                "content": shown, **({"status": "error"} if call.get("status") == "error" else {}),
            }  # fmt: skip


def _content(content: object) -> Any:
    if isinstance(content, list):
        return [{"type": "text", **one} if isinstance(one, dict) and "text" in one else one for one in content]
    return "" if content is None else content


def _result_text(result: object) -> str:
    """The output in Google's parts: `functionResponse.response.output`."""
    if isinstance(result, str):
        return result
    found = []
    for part in result if isinstance(result, list) else [result]:
        response = part.get("functionResponse") if isinstance(part, dict) else None
        body = response.get("response") if isinstance(response, dict) else part
        found.append(str(body.get("output", body)) if isinstance(body, dict) else str(body))
    return "\n".join(found)

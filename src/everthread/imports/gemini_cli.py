"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json`, a whole document, or `.jsonl`, which is replayed.

In JSON lines a message that comes again with its id is a newer state of it, `$set` replaces fields of the document
(`messages` too), and `$rewindTo` takes away a message and all after it: what follows is a branch. A
subagent's file is in a folder named after the session above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from everthread.imports.session import (
    START,
    BrokenEntry,
    LineIds,
    NativeMessage,
    Session,
    dict_at,
    moment_of,
    one_line_title,
    parse_line,
    safe_id,
    small_document,
    summary_payload,
    text_in,
    time_of,
    tool_call,
    without_none,
)

AGENT = "gemini-cli"
_SNAPSHOT = "<state_snapshot>"
"""How what Gemini CLI makes of a conversation that it compresses begins."""
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
        self._said: dict[str, tuple[str, str]] = {}
        """The role of each message, and the id of the last of ours that it became."""
        self._rewound_to: str | None = None

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        if "sessionId" in value and "type" not in value:
            self._begin(value)
        if isinstance(value.get("$rewindTo"), str):
            self._rewound_to = safe_id(value["$rewindTo"])
            return []
        changes = value.get("$set")
        if isinstance(changes, dict):
            if isinstance(changes.get("summary"), str) and changes["summary"].strip() and self._session is not None:
                self._session.title = one_line_title(changes["summary"])
            listed = changes.get("messages")
            return self.messages(listed, line) if isinstance(listed, list) else []
        if isinstance(value.get("messages"), list):
            return self.messages(value["messages"], line)
        return list(self._message(value, line)) if "type" in value else []

    def messages(self, listed: list[Any], line: bytes) -> list[NativeMessage]:
        """The messages of a whole list, which begins at the beginning."""
        self._last = self._rewound_to = None
        return [one for value in listed if isinstance(value, dict) for one in self._message(value, line)]

    def _begin(self, head: Mapping[str, Any]) -> Session:
        if self._session is None:
            native = head.get("sessionId") or self._path.stem
            above = self._path.parent.name if head.get("kind") == "subagent" else ""
            parent = safe_id(AGENT, above) if above not in ("", "chats") else None
            id = safe_id(AGENT, native) if parent is None else safe_id(AGENT, above, native)
            self._session = Session(id=id, agent=AGENT, parent_id=parent, created_at=moment_of(head.get("startTime")))
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
        said = text_in(value.get("content"))
        if role == "user" and said.lstrip().startswith(_SNAPSHOT):
            yield NativeMessage(session=session, payload=summary_payload(id, said, _common(value)))
            return
        if role == "user" and _is_context(value.get("content")):
            return
        if role == "user":
            session.name_after(said)
        self._go_back(role)
        for payload in _payloads(value, role, id):
            self._said[id] = (role, payload["id"])
            after = self._follows.setdefault(payload["id"], self._last)
            self._last = payload["id"]
            yield NativeMessage(session=session, payload=payload, after=after)

    def _go_back(self, role: str) -> None:
        """After a rewind, find what the next message follows. Gemini CLI takes away the message it goes back to as
        well, for another prompt in its place; an answer after it can only be one to that prompt."""
        if self._rewound_to is not None:
            before, last = self._said.get(self._rewound_to, (role, ""))
            self._last = last if before != role else self._follows.get(self._rewound_to) or START
            self._rewound_to = None


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
    chats = next((folder for folder in list(path.parents)[:2] if folder.name == "chats"), None)
    if chats is None:
        return None
    project = chats.parent
    with suppress(OSError, UnicodeDecodeError):
        root = Path(project, ".project_root")
        if root.is_file() and (folder := root.read_text().strip()):
            return folder
    listed = dict_at(small_document(project.parent.parent / "projects.json"), "projects")
    return next((folder for folder, name in listed.items() if name == project.name), None)


def _is_context(content: object) -> bool:
    """Whether a user's message is only the answers of tools, which stand with their calls."""
    parts = content if isinstance(content, list) else []
    return bool(parts) and all(isinstance(part, dict) and "functionResponse" in part for part in parts)


def _common(value: Mapping[str, Any]) -> dict[str, Any]:
    return without_none({"created_at": time_of(value.get("timestamp"))})


def _payloads(value: Mapping[str, Any], role: str, id: str) -> Iterator[dict[str, Any]]:
    common = _common(value)
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
            shown = call.get("resultDisplay")
            content = text_in(shown) if call.get("result") is None else _result_text(call["result"])
            yield without_none({
                **common, "id": safe_id(id, call.get("id")), "role": "tool", "tool_call_id": call.get("id"),
                "content": content, "display": None if shown == content else shown,
                "status": "error" if call.get("status") == "error" else None,
            })  # fmt: skip


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

"""opencode: the SQLite file `~/.local/share/opencode/opencode.db`, with its sessions, messages, and parts of messages.

Newer versions have one table instead of the last two, with a whole message in each row.

It is opened for reading only and never created. A file of several gigabytes is read session by session, and of a known
one only the sessions that changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from everthread.imports.foreign_database import ForeignDatabase, open_read_only
from everthread.imports.session import (
    BrokenEntry,
    NativeMessage,
    Session,
    StoredSession,
    dict_at,
    moment_of,
    one_line_title,
    parse_line,
    safe_id,
    state_of,
    summary_payload,
    text_in,
    time_of,
    tool_call,
    without_none,
)

AGENT = "opencode"
TABLES = {"session", "message", "part"}


def read_sessions(path: Path, known: Mapping[str, int]) -> Iterator[StoredSession]:
    """Each session whose state is not the known one, the oldest change first."""
    with closing(open_read_only(path, *sorted(TABLES))) as connection:
        by_id = {str(row["id"]): dict(row) for row in connection.execute("SELECT * FROM session")}
        states = _states(connection, by_id)
        for id, row in sorted(by_id.items(), key=lambda one: (_micros(one[1].get("time_updated")), one[0])):
            if known.get(id) != states[id]:
                connection.begin_session()
                session = _session(row, by_id)
                yield StoredSession(id, states[id], session, list(_all_messages(connection, id, session)))


def _states(connection: ForeignDatabase, sessions: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """By the id of each session what tells its state. opencode changes the row of a session when a prompt comes, not
    while the answer is written: that shows in the newest message and in its parts."""
    columns = {row["name"] for row in connection.execute("PRAGMA table_info(part)")}
    changed = "time_updated" if "time_updated" in columns else "data"
    newest = {
        str(id): (count, row)
        for id, count, row in connection.execute("SELECT session_id, count(*), max(rowid) FROM message GROUP BY 1")
    }
    states = {}
    whole: dict[str, tuple[Any, ...]] = {}
    if _has_whole_messages(connection):
        listed = connection.execute(
            "SELECT session_id, count(*), max(seq), max(time_updated) FROM session_message GROUP BY 1"
        )
        whole = {str(id): tuple(facts) for id, *facts in listed}
    for id, session in sessions.items():
        connection.begin_session()
        count, row = newest.get(id, (0, None))
        message = connection.execute("SELECT * FROM message WHERE rowid = ?", (row,)).fetchone()
        facts: list[Any] = [dict(session), count, None if message is None else tuple(message), whole.get(id)]
        if message is not None:
            parts = connection.execute(
                f"SELECT id, {changed} FROM part WHERE message_id = ? ORDER BY id", (message["id"],)
            )
            facts += map(tuple, parts)
        states[id] = state_of(*facts)
    return states


def _session(row: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> Session:
    above = row.get("parent_id")
    has_parent = isinstance(above, str) and above in by_id
    session = Session(
        id=safe_id(AGENT, row["id"]),
        agent=AGENT,
        parent_id=safe_id(AGENT, above) if has_parent else None,
        created_at=moment_of(row.get("time_created")),
        title=one_line_title(row["title"]) if isinstance(row.get("title"), str) else None,
    )
    session.note(agent=AGENT, session=row["id"], cwd=row.get("directory"), agent_version=row.get("version"))
    return session


def _has_whole_messages(connection: sqlite3.Connection) -> bool:
    columns = {row["name"] for row in connection.execute("PRAGMA table_info(session_message)")}
    return columns >= {"id", "session_id", "type", "seq", "data", "time_updated"}


def _all_messages(connection: sqlite3.Connection, id: str, session: Session) -> Iterator[NativeMessage | BrokenEntry]:
    """Those in parts, and after them those in one row that are not among these."""
    last: str | None = None
    seen: set[str] = set()
    for found in _messages(connection, id, session):
        if isinstance(found, NativeMessage):
            last = found.payload["id"]
            seen.add(last)
        yield found
    if not _has_whole_messages(connection):
        return
    rows = connection.execute("SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq", (id,))
    for row in rows.fetchall():
        if safe_id(row["id"]) in seen:
            continue
        try:
            payloads = list(_whole_payloads(str(row["id"]), str(row["type"]), _json(row["data"])))
        except BrokenEntry as problem:
            yield BrokenEntry(f"message {row['id']} {problem}")
            continue
        for payload in payloads:
            yield _placed(payload, session, last)
            last = last if "additional_kwargs" in payload else payload["id"]


def _placed(payload: dict[str, Any], session: Session, last: str | None) -> NativeMessage:
    if payload["role"] == "user" and not payload.get("is_meta") and "additional_kwargs" not in payload:
        session.name_after(text_in(payload["content"]))
    return NativeMessage(session=session, payload=payload, after=last)


def _messages(connection: sqlite3.Connection, id: str, session: Session) -> Iterator[NativeMessage | BrokenEntry]:
    last: str | None = None
    listed = connection.execute("SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY id", (id,))
    rows = sorted(listed, key=lambda row: (_micros(row["time_created"]), row["id"]))
    for row in rows:
        try:
            head = _json(row["data"])
            held = connection.execute("SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (row["id"],))
            parts = [_json(part["data"]) for part in held]
        except BrokenEntry as problem:
            yield BrokenEntry(f"message {row['id']} {problem}")
            continue
        for payload in _payloads(str(row["id"]), head, parts, row["time_created"]):
            yield _placed(payload, session, last)
            last = last if "additional_kwargs" in payload else payload["id"]


def _micros(value: object) -> float:
    moment = moment_of(value)
    return 0.0 if moment is None else moment.timestamp()


def _json(data: object) -> dict[str, Any]:
    value = parse_line(data.encode() if isinstance(data, str) else bytes(data) if isinstance(data, bytes) else b"")
    if value is None:
        raise BrokenEntry("is empty")
    return value


def _payloads(
    id: str, head: Mapping[str, Any], parts: list[dict[str, Any]], created: object
) -> Iterator[dict[str, Any]]:
    times = dict_at(head, "time")
    common = without_none({"created_at": time_of(created) or time_of(times.get("created"))})
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            blocks.append({"type": "text", "text": part.get("text") or ""})
        elif kind == "reasoning":
            blocks.append({"type": "thinking", "thinking": part.get("text") or ""})
        elif kind == "tool":
            _take_tool(part, part.get("tool"), part.get("callID") or part.get("id"), id, common, calls, results)
        elif kind == "subtask":
            blocks.append({"type": "text", "text": part.get("prompt") or part.get("description") or ""})
        elif kind in ("file", "patch", "snapshot"):
            blocks.append(part)
    role = str(head.get("role") or "user")
    if role == "assistant" and head.get("summary") is True:
        yield summary_payload(safe_id(id), text_in(blocks), common)
        return
    if role == "user" and not blocks and any(part.get("type") == "compaction" for part in parts):
        return  # where a compaction was asked for
    texts = [part for part in parts if part.get("type") == "text"]
    is_meta = role == "user" and bool(texts) and all(part.get("synthetic") is True for part in texts)
    named = head.get("model")
    model = head.get("modelID") or (named.get("modelID") if isinstance(named, dict) else named)
    yield without_none({
        **common, "id": safe_id(id), "role": role, "content": blocks, "tool_calls": calls or None, "model": model,
        "usage": head.get("tokens"), "cost": head.get("cost") or None, "is_meta": is_meta or None,
    })  # fmt: skip
    yield from results


def _take_tool(
    part: Mapping[str, Any], name: object, call: object, id: str, common: Mapping[str, Any],
    calls: list[dict[str, Any]], results: list[dict[str, Any]],
) -> None:  # fmt: skip
    """A call and, where it has ended, its result."""
    state = dict_at(part, "state")
    calls.append(tool_call(call, name, state.get("input")))
    if state.get("status") in ("completed", "error"):
        is_error = state["status"] == "error"
        error = state.get("error")
        said = (error.get("message") if isinstance(error, dict) else error) if is_error else state.get("output")
        results.append({
            **common, "id": safe_id(id, call), "role": "tool", "tool_call_id": call,
            "content": said or text_in(state.get("content")) or "", **({"status": "error"} if is_error else {}),
        })  # fmt: skip


def _whole_payloads(id: str, kind: str, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages that one row of `session_message` is."""
    common = without_none({"created_at": time_of(dict_at(data, "time").get("created"))})
    if kind == "compaction":
        yield summary_payload(safe_id(id), data.get("summary"), common)
    elif kind in ("user", "synthetic", "system"):
        content = [{"type": "text", "text": data.get("text") or ""}]
        content += [{"type": "file", **one} for one in data.get("files") or () if isinstance(one, dict)]
        role = "system" if kind == "system" else "user"
        is_meta = True if kind == "synthetic" else None
        yield without_none({**common, "id": safe_id(id), "role": role, "content": content, "is_meta": is_meta})
    elif kind == "shell":  # what the user ran
        call = str(data.get("callID") or id)
        made = [tool_call(call, "shell", {"command": data.get("command")})]
        yield {**common, "id": safe_id(id), "role": "assistant", "content": "", "tool_calls": made}
        result = {"role": "tool", "tool_call_id": call, "content": data.get("output") or ""}
        yield {**common, "id": safe_id(id, call), **result}
    elif kind == "assistant":
        yield from _whole_answer(id, data, common)


def _whole_answer(id: str, data: Mapping[str, Any], common: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for one in data.get("content") or ():
        match one.get("type") if isinstance(one, dict) else None:
            case "text":
                blocks.append({"type": "text", "text": one.get("text") or ""})
            case "reasoning":
                blocks.append({"type": "thinking", "thinking": one.get("text") or ""})
            case "tool":
                _take_tool(one, one.get("name"), one.get("id"), id, common, calls, results)
    model = dict_at(data, "model")
    yield without_none({
        **common, "id": safe_id(id), "role": "assistant", "content": blocks, "tool_calls": calls or None,
        "model": model.get("id") or model.get("modelID"), "usage": data.get("tokens"),
        "cost": data.get("cost") or None,
    })  # fmt: skip
    yield from results

"""opencode: the SQLite file `~/.local/share/opencode/opencode.db`, with its sessions, messages, and parts of messages.

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
                yield StoredSession(id, states[id], session, list(_messages(connection, id, session)))


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
    for id, session in sessions.items():
        connection.begin_session()
        count, row = newest.get(id, (0, None))
        message = connection.execute("SELECT * FROM message WHERE rowid = ?", (row,)).fetchone()
        facts: list[Any] = [dict(session), count, None if message is None else tuple(message)]
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
            if payload["role"] == "user":
                session.name_after(text_in(payload["content"]))
            yield NativeMessage(session=session, payload=payload, after=last)
            last = payload["id"]


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
            state = dict_at(part, "state")
            call = part.get("callID") or part.get("id")
            calls.append(tool_call(call, part.get("tool"), state.get("input")))
            if state.get("status") in ("completed", "error"):
                said = state.get("output") if state["status"] == "completed" else state.get("error")
                results.append({
                    **common, "id": safe_id(id, call), "role": "tool", "tool_call_id": call, "content": said or "",
                    **({"status": "error"} if state["status"] == "error" else {}),
                })  # fmt: skip
        elif kind in ("file", "patch", "snapshot"):
            blocks.append(part)
    named = head.get("model")
    model = head.get("modelID") or (named.get("modelID") if isinstance(named, dict) else named)
    yield without_none({
        **common, "id": safe_id(id), "role": str(head.get("role") or "user"), "content": blocks,
        "tool_calls": calls or None, "model": model, "usage": head.get("tokens"),
    })  # fmt: skip
    yield from results

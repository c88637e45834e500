"""Agents that keep their sessions in a SQLite database of their own: Goose, Hermes, Zed (opencode has its own module).

A database is opened for reading only, and nothing is left beside it. It is read session by session, and of a known one
only the sessions whose state is another than the last one that was read: newer, or older again as in a restored backup.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import zstandard

from everthread.core.plain_words import not_json
from everthread.imports import opencode
from everthread.imports.foreign_database import open_read_only
from everthread.imports.line_agents import goose_payloads
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

_MAX_THREAD_BYTES = 256 << 20
_SMALL_THREAD_BYTES = 1 << 20
_MAX_RATIO = 500
"""What unpacks to so many times its size, and is large, is a bomb."""


def read_goose(path: Path, known: Mapping[str, int]) -> Iterator[StoredSession]:
    """Goose from 1.10: `sessions.db`, with content as JSON blocks."""
    with closing(open_read_only(path, "sessions", "messages")) as connection:
        counted = {
            str(id): facts
            for id, *facts in connection.execute(
                "SELECT session_id, count(*), max(id) FROM messages GROUP BY session_id"
            )
        }
        rows = [{**row, "facts": counted.get(str(row["id"]))} for row in _rows(connection, "sessions")]
        for state, row in _due(rows, known, "updated_at", "created_at"):
            connection.begin_session()
            session = _session("goose", row, row.get("working_dir"), row.get("created_at"))
            title = row.get("description") or row.get("name")
            session.title = one_line_title(title) if isinstance(title, str) and title.strip() else None
            held = connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (row["id"],))
            said = _chained(session, (_goose(dict(one)) for one in held))
            yield StoredSession(str(row["id"]), state, session, list(said))


def _goose(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    metadata = _json(row["metadata_json"]) if isinstance(row.get("metadata_json"), str) else {}
    at = time_of(row.get("created_timestamp")) or time_of(row.get("timestamp"))
    content = _json(row.get("content_json"))
    payloads = goose_payloads(str(row.get("role")), content, metadata if isinstance(metadata, dict) else {})
    yield from _named(payloads, row.get("message_id") or f"row-{row['id']}", at)


def read_hermes(path: Path, known: Mapping[str, int]) -> Iterator[StoredSession]:
    """Hermes: `state.db`, where a session may have no row of its own."""
    with closing(open_read_only(path, "sessions", "messages")) as connection:
        described = {str(row["id"]): row for row in _rows(connection, "sessions") if "id" in row}
        counted = connection.execute(
            "SELECT session_id, min(timestamp), max(timestamp), count(*), max(id) FROM messages GROUP BY session_id"
        )
        rows: list[dict[str, Any]] = [
            {**described.get(str(id), {}), "id": str(id), "first": first, "last": last, "facts": facts}
            for id, first, last, *facts in counted
        ]
        profile = path.parent.name if path.parent.parent.name == "profiles" else None
        for state, row in _due(rows, known, "last"):
            connection.begin_session()
            session = _session("hermes", row, row.get("cwd"), row.get("started_at") or row["first"])
            session.note(profile=profile, channel=row.get("source"), model=row.get("model"))
            session.title = one_line_title(row["title"]) if isinstance(row.get("title"), str) else None
            held = connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (row["id"],))
            said = _chained(session, (_hermes(dict(one), session) for one in held))
            yield StoredSession(str(row["id"]), state, session, list(said))


def _hermes(row: Mapping[str, Any], session: Session) -> Iterator[dict[str, Any]]:
    role = str(row.get("role") or "user")
    content = row.get("content")
    if role == "tool":
        payload = {"role": "tool", "tool_call_id": row.get("tool_call_id"), "content": content or ""}
    else:
        given = _json(row["tool_calls"]) if isinstance(row.get("tool_calls"), str) else None
        calls = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        made = [_openai_call(one) for one in calls]
        thought = row.get("reasoning") or row.get("reasoning_content")
        said: Any = content or ""
        if isinstance(thought, str) and thought:
            said = [
                {"type": "thinking", "thinking": thought},
                *([{"type": "text", "text": content}] if content else []),
            ]
        model = session.metadata.get("model") if role == "assistant" else None
        payload = {"role": role, "content": said, "tool_calls": made or None, "model": model}
    yield from _named([without_none(payload)], f"row-{row['id']}", time_of(row.get("timestamp")))


def _openai_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict_at(call, "function")
    given = call.get("arguments", function.get("arguments"))
    return tool_call(call.get("id"), call.get("name") or function.get("name"), given)


def read_zed(path: Path, known: Mapping[str, int]) -> Iterator[StoredSession]:
    """Zed: `threads.db`; a thread is one document, packed with zstd or not, of the present form or the one before."""
    with closing(open_read_only(path, "threads")) as connection:
        rows = [dict(row) for row in connection.execute("SELECT id, updated_at, length(data) AS facts FROM threads")]
        for state, row in _due(rows, known, "updated_at"):
            connection.begin_session()
            thread = dict(connection.execute("SELECT * FROM threads WHERE id = ?", (row["id"],)).fetchone() or row)
            folders = str(thread.get("folder_paths") or "").splitlines()
            started = thread.get("created_at") or thread.get("updated_at")
            session = _session("zed", thread, folders[0] if folders else None, started)
            if isinstance(thread.get("parent_id"), str):
                session.parent_id = safe_id("zed", thread["parent_id"])
            try:
                document = _thread(thread)
            except BrokenEntry as problem:
                yield StoredSession(str(row["id"]), state, session, [BrokenEntry(f"thread {row['id']} {problem}")])
                continue
            title = document.get("title") or document.get("summary") or thread.get("summary")
            session.title = one_line_title(title) if isinstance(title, str) and title.strip() else None
            said = _chained(session, _zed(document, time_of(started)))
            yield StoredSession(str(row["id"]), state, session, list(said))


def _thread(row: Mapping[str, Any]) -> dict[str, Any]:
    data = row.get("data")
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data if isinstance(data, bytes) else b""
    if row.get("data_type") == "zstd":
        most_bytes = min(_MAX_THREAD_BYTES, _SMALL_THREAD_BYTES + _MAX_RATIO * len(raw))
        try:
            with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw) as unpacking:
                raw = unpacking.read(most_bytes + 1)
        except zstandard.ZstdError as problem:
            raise BrokenEntry(f"cannot be unpacked: {problem}") from problem
        if len(raw) > most_bytes:
            raise BrokenEntry(f"would unpack to more than {most_bytes >> 20} MB")
    document = parse_line(raw)
    if document is None or not isinstance(document.get("messages"), list):
        raise BrokenEntry("has no list of messages")
    return document


def _zed(document: Mapping[str, Any], at: str | None) -> Iterator[Iterator[dict[str, Any]]]:
    named = document.get("model")
    model = named.get("model") if isinstance(named, dict) else named
    spent = dict_at(document, "request_token_usage")
    asked, behind = "thread", 0
    for message in document["messages"]:
        if not isinstance(message, dict):
            continue  # `Resume` says only that it went on
        user, agent = message.get("User"), message.get("Agent")
        if isinstance(user, dict):
            asked, behind = str(user.get("id")), 0
            content = [_zed_block(one) for one in user.get("content") or ()]
            yield _named([{"role": "user", "content": content}], asked, at)
        elif isinstance(agent, dict):
            behind += 1
            usage = spent.get(asked) if behind == 1 else None
            yield _named(_zed_answer(agent, model, usage), f"{asked}-{behind}", at)
        elif message.get("role") in ("user", "assistant"):
            content = [_zed_block(one) for one in message.get("segments") or ()]
            role = message["role"]
            payload = {"role": role, "content": content, "model": model if role == "assistant" else None}
            yield _named([without_none(payload)], f"message-{message.get('id')}", at)


def _zed_block(block: object) -> object:
    """Rust writes a block as an object with the name of its kind as the only key."""
    if not isinstance(block, dict):
        return block
    if isinstance(block.get("Text"), str):
        return {"type": "text", "text": block["Text"]}
    if isinstance(block.get("Mention"), dict):
        return {
            "type": "text",
            "text": str(block["Mention"].get("content") or ""),
            "mention": block["Mention"].get("uri"),
        }
    if isinstance(block.get("Thinking"), dict):
        return {"type": "thinking", "thinking": str(block["Thinking"].get("text") or "")}
    if block.get("type") == "thinking":
        return {"type": "thinking", "thinking": str(block.get("text") or "")}
    return block


def _zed_answer(agent: Mapping[str, Any], model: object, usage: object) -> list[dict[str, Any]]:
    content = [one for one in agent.get("content") or () if isinstance(one, dict)]
    uses = [one["ToolUse"] for one in content if isinstance(one.get("ToolUse"), dict)]
    calls = [tool_call(use.get("id"), use.get("name"), use.get("input", use.get("raw_input"))) for use in uses]
    blocks = [_zed_block(one) for one in content if "ToolUse" not in one]
    said = {"role": "assistant", "content": blocks, "tool_calls": calls or None, "model": model, "usage": usage}
    payloads = [without_none(said)]
    for id, result in dict_at(agent, "tool_results").items():
        if isinstance(result, dict):
            given = result.get("content")
            text = given.get("Text") if isinstance(given, dict) else given
            status = "error" if result.get("is_error") is True else None
            answer = text if isinstance(text, str) else text_in(result.get("output")) or json.dumps(given)
            payloads.append(without_none({"role": "tool", "tool_call_id": id, "content": answer, "status": status}))
    return payloads


DATABASES: dict[str, Callable[[Path, Mapping[str, int]], Iterator[StoredSession]]] = {
    "opencode": opencode.read_sessions, "goose": read_goose, "hermes": read_hermes, "zed": read_zed,
}  # fmt: skip


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    """All rows of a table; none where an older version has no such table."""
    with suppress(sqlite3.OperationalError):
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
    return []


def _due(
    rows: Iterable[Mapping[str, Any]], known: Mapping[str, int], *names: str
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The sessions whose state is not the known one, with their state, the oldest change first. `names` are the columns
    of their time; a column `facts` has what else tells one state from another: a time can be a second long."""
    timed = []
    for row in rows:
        moment = next((found for name in names if (found := moment_of(row.get(name))) is not None), None)
        state = 0 if moment is None else state_of([row.get(name) for name in names], row.get("facts"))
        timed.append(("" if moment is None else moment.isoformat(), str(row["id"]), state, row))
    timed.sort(key=lambda one: one[:2])
    return ((state, row) for _, id, state, row in timed if state == 0 or known.get(id) != state)


def _session(agent: str, row: Mapping[str, Any], cwd: object, created: object) -> Session:
    session = Session(id=safe_id(agent, row["id"]), agent=agent, created_at=moment_of(created))
    session.note(agent=agent, session=str(row["id"]), cwd=cwd)
    return session


def _named(payloads: Iterable[dict[str, Any]], id: str, at: str | None) -> Iterator[dict[str, Any]]:
    """With their ids and times: the first has the id of the row, others that with their number."""
    for index, payload in enumerate(payloads):
        own = safe_id(id) if not index else safe_id(id, index)
        yield {**without_none({"created_at": at}), **payload, "id": own}


def _chained(session: Session, messages: Iterable[Iterator[dict[str, Any]]]) -> Iterator[NativeMessage | BrokenEntry]:
    """Each message after the one before it. One that cannot be read is named, and the others go on."""
    last: str | None = None
    for payloads in messages:
        try:
            said = list(payloads)
        except BrokenEntry as problem:
            yield problem
            continue
        except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as problem:
            yield BrokenEntry(f"a message of {session.id} is not a valid message of {session.agent} ({problem!r})")
            continue
        for payload in said:
            is_summary = "additional_kwargs" in payload
            if payload["role"] == "user" and not is_summary:
                session.name_after(text_in(payload["content"]))
            yield NativeMessage(session=session, payload=payload, after=None if is_summary else last)
            last = last if is_summary else payload["id"]


def _json(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError) as problem:
        raise BrokenEntry(f"has content that is {not_json(problem)}") from problem

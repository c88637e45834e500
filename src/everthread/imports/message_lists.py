"""Formats that are plain lists of messages: OpenAI's chat JSONL, ShareGPT, Letta's agent files, LangSmith runs, OTel
GenAI spans, and the sessions that the OpenAI Agents SDK keeps in SQLite.

They have few ids of their own. A conversation without one is named after a hash of its content, its messages after
their position in it, so that a second import finds them again.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from everthread.imports.chat_exports import Draft, result_block
from everthread.imports.foreign_database import open_read_only
from everthread.imports.session import (
    START,
    BrokenEntry,
    NativeMessage,
    Session,
    StoredSession,
    dict_at,
    moment_of,
    one_line_title,
    safe_id,
    text_in,
    time_of,
    tool_call,
    without_none,
)

_SHAREGPT_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "function_call": "assistant",
    "tool_call": "assistant",
    "observation": "tool",
    "tool_response": "tool",
    "function_response": "tool",
}
_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant"}


def read_openai_chat(value: Mapping[str, Any]) -> Draft:
    """A line of OpenAI's chat format: `{"messages": [...]}`, as for fine-tuning and batches."""
    body = value.get("body")
    listed = value.get("messages") or (body.get("messages") if isinstance(body, dict) else None)
    if not isinstance(listed, list):
        raise BrokenEntry("has no list of messages")
    session = _session("openai-chat", _named(value.get("id") or value.get("custom_id"), listed), value.get("title"))
    session.note(tools=[_tool_name(tool) for tool in value.get("tools") or () if isinstance(tool, dict)])
    return session, list(_in_order(session, (_openai_message(one) for one in listed if isinstance(one, dict))))


def _named(id: object, listed: list[Any]) -> object:
    """What a conversation is known by: its id, unless that is a number, as the next file has it too."""
    if id and not str(id).isdecimal():
        return id
    return _digest(listed) if not id else f"{id}-{_digest(_opening(listed))}"


def _opening(listed: list[Any]) -> list[Any]:
    """What a conversation begins with: what a system says is said in all conversations of a file."""
    roles = [str(one.get("role") or one.get("from")) if isinstance(one, dict) else "" for one in listed]
    return listed[: next((at for at, role in enumerate(roles, 1) if role not in ("system", "developer")), len(listed))]


def _tool_name(tool: Mapping[str, Any]) -> object:
    function = tool.get("function")
    return function.get("name") if isinstance(function, dict) else tool.get("name")


def _openai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: given for name, given in message.items() if name not in ("id", "created_at", "timestamp")}
    if not isinstance(fields.get("role"), str):
        raise BrokenEntry("has a message without a role")
    at = message.get("created_at") or message.get("timestamp")
    return without_none({"content": "", **fields, "id": message.get("id"), "created_at": time_of(at)})


def read_sharegpt(value: Mapping[str, Any]) -> Draft:
    """ShareGPT: `conversations` of `from` and `value` (`items` in some copies)."""
    listed = value.get("conversations") or value.get("items") or value.get("conversation")
    if not isinstance(listed, list):
        raise BrokenEntry("has no list of conversations")
    session = _session("sharegpt", _named(value.get("id"), listed), value.get("title"))
    if isinstance(value.get("system"), str) and value["system"]:
        listed = [{"from": "system", "value": value["system"]}, *listed]
    return session, list(_in_order(session, (_sharegpt_message(one) for one in listed if isinstance(one, dict))))


def _sharegpt_message(message: Mapping[str, Any]) -> dict[str, Any]:
    speaker = message.get("from") or message.get("role")
    role = _SHAREGPT_ROLES.get(str(speaker), str(speaker or "user"))
    text = next((message[key] for key in ("value", "content", "text", "markdown") if message.get(key)), "")
    if speaker in ("function_call", "tool_call") and (call := _json_object(text)) is not None:
        return {"role": role, "content": "", "tool_calls": [tool_call(None, call.get("name"), call.get("arguments"))]}
    return without_none({"role": role, "content": text or "", "model": message.get("model")})


def _json_object(text: object) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_letta(value: Mapping[str, Any]) -> Iterator[Draft]:
    """Letta's `.af`: agents, each with its messages (older files: one agent at the top level). Newer files, which have
    a list of blocks, number what is in them: another file has other agents and messages under the same ids."""
    agents = value.get("agents")
    is_numbered = isinstance(value.get("blocks"), list)
    for agent in agents if isinstance(agents, list) else [value]:
        if not isinstance(agent, dict) or not isinstance(agent.get("messages"), list):
            raise BrokenEntry("has an agent without messages")
        said = [one for one in agent["messages"] if isinstance(one, dict)]
        native = agent.get("id") or agent.get("name") or _digest(agent["messages"])
        if is_numbered:
            first = next((one for one in said if one.get("role") != "system"), said[0] if said else {})
            native = f"{agent.get('name') or native}-{_letta_digest(first)}"
        session = _session("letta", native, agent.get("name"))
        session.created_at = moment_of(agent.get("created_at") or value.get("created_at"))
        blocks = _letta_memory(agent, value.get("blocks"))
        session.note(memory={str(one.get("label")): one.get("value") for one in blocks})
        payloads = [_letta_message(one) for one in said]
        if is_numbered:
            counts: Counter[str] = Counter()
            for one, payload in zip(said, payloads, strict=True):
                counts[digest := _letta_digest(one)] += 1
                payload["id"] = f"{digest}-{counts[digest]}"
        yield session, list(_in_order(session, payloads))


def _letta_digest(message: Mapping[str, Any]) -> str:
    return _digest([message.get(key) for key in ("role", "content", "created_at", "tool_calls", "tool_call_id")])


def _letta_memory(agent: Mapping[str, Any], shared: object) -> list[dict[str, Any]]:
    """An agent's blocks of memory: its own, or those of the file that it names."""
    listed = agent.get("core_memory") or agent.get("memory_blocks")
    if not listed and isinstance(shared, list):
        named = agent.get("block_ids") or ()
        listed = [one for one in shared if isinstance(one, dict) and one.get("id") in named]
    return [one for one in listed or () if isinstance(one, dict)]


def _letta_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content", message.get("text"))
    blocks = []
    for block in content if isinstance(content, list) else ():
        is_thought = isinstance(block, dict) and block.get("type") == "reasoning"
        blocks.append({"type": "thinking", "thinking": block.get("reasoning")} if is_thought else block)
    role = str(message.get("role") or "user")
    is_meta = None
    packed = _json_object(text_in(content)) if role == "user" else None
    if packed is not None and isinstance(packed.get("type"), str) and ("message" in packed or "reason" in packed):
        is_meta = None if packed["type"] == "user_message" else True
        blocks = [{"type": "text", "text": str(packed.get("message") or packed.get("reason"))}]
    return without_none({
        "id": message.get("id"), "role": role, "content": blocks or text_in(content), "is_meta": is_meta,
        "tool_calls": message.get("tool_calls") or None, "tool_call_id": message.get("tool_call_id"),
        "created_at": time_of(message.get("created_at")), "model": message.get("model"), "name": message.get("name"),
    })  # fmt: skip


def read_langsmith(runs: Iterable[Mapping[str, Any]]) -> Iterator[Draft]:
    """LangSmith runs of chat models: each trace (or session, where the metadata names one) is a conversation. A run has
    all of its input again, so a message is known by its content and how often that came before."""
    drafts: dict[str, tuple[Session, dict[str, dict[str, Any]]]] = {}
    for run in sorted(runs, key=lambda run: str(run.get("start_time"))):
        if run.get("run_type") not in ("llm", "chat_model"):
            continue
        extra = dict_at(run, "extra")
        metadata = dict_at(extra, "metadata")
        native = next(
            (metadata[key] for key in ("session_id", "thread_id", "conversation_id") if metadata.get(key)), None
        )
        native = native or run.get("trace_id") or run.get("id")
        session, kept = drafts.setdefault(str(native), (_session("langsmith", str(native), None), {}))
        session.created_at = session.created_at or moment_of(run.get("start_time"))
        model = metadata.get("ls_model_name")
        said = [*_langsmith_messages(run.get("inputs")), *_langsmith_messages(run.get("outputs"), model)]
        _keep_by_content(kept, said, run.get("start_time"))
    for session, kept in drafts.values():
        yield session, list(_in_order(session, kept.values()))


def _keep_by_content(kept: dict[str, dict[str, Any]], said: Iterable[dict[str, Any]], at: object) -> None:
    counts: dict[str, int] = {}
    for payload in said:
        digest = _digest([payload["role"], payload["content"], payload.get("tool_calls")])
        counts[digest] = counts.get(digest, 0) + 1
        id = f"{digest}-{counts[digest]}"
        kept.setdefault(id, without_none({**payload, "id": id, "created_at": time_of(at)}))


def _langsmith_messages(value: object, model: object = None) -> Iterator[dict[str, Any]]:
    """The messages in a run's inputs or outputs, however deep they are packed."""
    if isinstance(value, list):
        for one in value:
            yield from _langsmith_messages(one, model)
    elif isinstance(value, dict):
        kwargs = dict_at(value, "kwargs") or value
        role = kwargs.get("role") or _LANGCHAIN_ROLES.get(str(kwargs.get("type")), kwargs.get("type"))
        if "content" in kwargs and isinstance(role, str):
            fields = {key: kwargs[key] for key in ("tool_calls", "tool_call_id", "name") if kwargs.get(key)}
            is_answer = role == "assistant" and model is not None
            yield {
                "role": role,
                "content": kwargs["content"] or "",
                **fields,
                **({"model": model} if is_answer else {}),
            }
        else:
            for key in ("messages", "generations", "message", "choices", "output"):
                yield from _langsmith_messages(value.get(key), model)


def read_otel(spans: Iterable[Mapping[str, Any]]) -> Iterator[Draft]:
    """Spans of OpenTelemetry's GenAI conventions: `gen_ai.input.messages` and `gen_ai.output.messages`, by
    `gen_ai.conversation.id` or else by trace."""
    drafts: dict[str, tuple[Session, dict[str, dict[str, Any]]]] = {}
    for span in sorted(spans, key=lambda span: str(_otel_time(span))):
        attributes = _attributes(span.get("attributes"))
        for event in span.get("events") or ():
            attributes |= _attributes(event.get("attributes")) if isinstance(event, dict) else {}
        listed = [_instructions(attributes), *(_otel_list(attributes, name) for name in ("input", "output"))]
        if not any(listed[1:]):
            continue
        context = dict_at(span, "context")
        native = attributes.get("gen_ai.conversation.id") or span.get("traceId") or context.get("trace_id")
        session, kept = drafts.setdefault(str(native), (_session("otel", str(native), None), {}))
        at = _otel_time(span)
        session.created_at = session.created_at or moment_of(at)
        model = attributes.get("gen_ai.response.model") or attributes.get("gen_ai.request.model")
        said = [_otel_message(one, model) for part in listed for one in part if isinstance(one, dict)]
        _keep_by_content(kept, said, at)
    for session, kept in drafts.values():
        yield session, list(_in_order(session, kept.values()))


def _otel_time(span: Mapping[str, Any]) -> object:
    return span.get("startTimeUnixNano") or span.get("start_time") or span.get("timeUnixNano")


_NUMBERED = re.compile(r"(\d{1,9})\.(role|content)")


def _otel_list(attributes: Mapping[str, Any], name: str) -> list[Any]:
    """The messages that went in or came out: as one attribute or, from older instrumentations, one for each field."""
    if listed := _json_list(attributes.get(f"gen_ai.{name}.messages")):
        return listed
    prefix = {"input": "gen_ai.prompt.", "output": "gen_ai.completion."}[name]
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and (field := _NUMBERED.fullmatch(key.removeprefix(prefix))):
            found.setdefault(int(field[1]), {})[field[2]] = value
    other = "user" if name == "input" else "assistant"
    return [
        {"role": found[number].get("role") or other, "parts": [{"type": "text", "content": found[number]["content"]}]}
        for number in sorted(found)
        if found[number].get("content")
    ]


def _instructions(attributes: Mapping[str, Any]) -> list[Any]:
    parts = _json_list(attributes.get("gen_ai.system_instructions"))
    return [{"role": "system", "parts": parts}] if parts else []


def _otel_message(message: Mapping[str, Any], model: object) -> dict[str, Any]:
    blocks: list[Any] = []
    calls: list[dict[str, Any]] = []
    extra: dict[str, Any] = {}
    for part in message.get("parts") or ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call":
            calls.append(tool_call(part.get("id"), part.get("name"), part.get("arguments")))
        elif kind == "tool_call_response":
            extra["tool_call_id"] = part.get("id")
            answer = part.get("response", part.get("result"))
            blocks.append({"type": "text", "text": answer if isinstance(answer, str) else json.dumps(answer)})
        elif kind == "reasoning":
            blocks.append({"type": "thinking", "thinking": part.get("content")})
        elif kind == "text":
            blocks.append({"type": "text", "text": part.get("content") or ""})
        elif part:
            blocks.append(part)
    role = str(message.get("role") or "user")
    answered = {"model": model} if role == "assistant" and model else {}
    return {"role": role, "content": blocks, **({"tool_calls": calls} if calls else {}), **extra, **answered}


_OTLP_LISTS = ("resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords")


def spans_in(document: object) -> Iterator[Mapping[str, Any]]:
    """The spans and the events in OTLP JSON, in a list of spans, or in one span."""
    if isinstance(document, list):
        for one in document:
            yield from spans_in(one)
    elif isinstance(document, dict):
        inner = [document.get(key) for key in _OTLP_LISTS]
        if any(isinstance(one, list) for one in inner):
            for one in inner:
                yield from spans_in(one)
        elif "attributes" in document:
            yield document


def _attributes(given: object) -> dict[str, Any]:
    """Attributes as a dict, or as OTLP's list of keys and typed values."""
    if isinstance(given, dict):
        return dict(given)
    found = {}
    for one in given if isinstance(given, list) else ():
        if isinstance(one, dict) and isinstance(one.get("value"), dict):
            found[str(one.get("key"))] = _any_value(one["value"])
    return found


def _any_value(typed: Mapping[str, Any]) -> Any:
    """OTLP's value, which names its type."""
    kind, value = next(iter(typed.items()), ("", None))
    if kind == "arrayValue":
        return [_any_value(one) for one in dict_at(typed, kind).get("values") or () if isinstance(one, dict)]
    return _attributes(dict_at(typed, kind).get("values")) if kind == "kvlistValue" else value


def _json_list(value: object) -> list[Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return value if isinstance(value, list) else []


def read_agents_sdk(path: Path) -> Iterator[StoredSession]:
    """The OpenAI Agents SDK's `SQLiteSession`: items of the Responses API by session."""
    with closing(open_read_only(path, "agent_sessions", "agent_messages")) as connection:
        sessions = connection.execute(
            "SELECT session_id, created_at FROM agent_sessions ORDER BY created_at"
        ).fetchall()
        for native, created_at in sessions:
            connection.begin_session()
            session = _session("openai-agents", native, None)
            session.created_at = moment_of(created_at)
            rows = connection.execute(
                "SELECT id, message_data, created_at FROM agent_messages WHERE session_id = ? ORDER BY id", (native,)
            )
            before = _agents_sdk_branches(connection, native)
            yield StoredSession(str(native), 0, session, list(_agents_sdk_messages(session, rows, before)))


def _agents_sdk_branches(connection: sqlite3.Connection, native: object) -> dict[str, str]:
    """By the id of each item the one before it on the branch that it was said on, where a session has branches: an
    `AdvancedSQLiteSession`."""
    if not list(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_structure'")):
        return {}
    before: dict[str, str] = {}
    ends: dict[str, str] = {}
    for item, branch in connection.execute(
        "SELECT message_id, branch_id FROM message_structure WHERE session_id = ? ORDER BY sequence_number, id",
        (native,),
    ):
        before.setdefault(str(item), ends.get(str(branch), START))
        ends[str(branch)] = str(item)
    return before


def _agents_sdk_messages(
    session: Session, rows: Iterable[tuple[Any, ...]], before: Mapping[str, str]
) -> Iterator[NativeMessage | BrokenEntry]:
    last = None
    for number, data, at in rows:
        try:
            item = json.loads(data)
            payload = _agents_sdk_item(item)
        except (ValueError, TypeError, AttributeError, RecursionError):
            yield BrokenEntry(f"item {number} of session {session.metadata['session']} is not a JSON object")
            continue
        payload = without_none({**payload, "id": str(number), "created_at": time_of(at)})
        if payload["role"] == "user":
            session.name_after(text_in(payload["content"]))
        yield NativeMessage(session=session, payload=payload, after=before.get(payload["id"], last))
        last = payload["id"]


def _agents_sdk_item(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(item.get("type", "message"))
    if kind.endswith("_call_output"):
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _item_content(item.get("output"))}
    if kind.endswith("_call"):
        given = next((item[key] for key in ("arguments", "input", "action", "code", "queries") if key in item), None)
        call = tool_call(item.get("call_id") or item.get("id"), item.get("name") or kind.removesuffix("_call"), given)
        result = next((item[key] for key in ("output", "outputs", "results") if item.get(key)), None)
        said = "" if result is None else [result_block(call["id"], result)]  # of a tool that the provider runs
        return {"role": "assistant", "content": said, "tool_calls": [call]}
    if kind == "reasoning":
        thought = text_in(item.get("content")) or text_in(item.get("summary"))
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": thought}]}
    content = item.get("content")
    content = json.dumps(item) if content is None else _item_content(content)
    return {"role": str(item.get("role") or kind), "content": content}


def _item_content(content: object) -> object:
    if isinstance(content, list):
        texts = ("input_text", "output_text")
        return [
            {**one, "type": "text"} if isinstance(one, dict) and one.get("type") in texts else one for one in content
        ]
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def _in_order(session: Session, payloads: Iterable[dict[str, Any]]) -> Iterator[NativeMessage]:
    last = None
    for index, payload in enumerate(payloads):
        own = payload.get("id")
        id = safe_id(own) if isinstance(own, str) and own else str(index)
        session.created_at = session.created_at or moment_of(payload.get("created_at"))
        if payload["role"] == "user":
            session.name_after(text_in(payload["content"]))
        yield NativeMessage(session=session, payload={**payload, "id": id}, after=last)
        last = id


def _session(agent: str, native: object, title: object) -> Session:
    session = Session(id=safe_id(agent, native), agent=agent)
    session.title = one_line_title(title) if isinstance(title, str) and title.strip() else None
    session.note(agent=agent, session=native)
    return session


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:24]

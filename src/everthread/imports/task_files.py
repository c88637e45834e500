"""Cline and Roo Code: a task is one JSON document, which is replaced as a whole.

Inside of VS Code `…/globalStorage/<extension>/tasks/<id>/api_conversation_history.json`: what the model was sent. A
user's message in it has been wrapped by the program, with results of tools and with the state of the editor, and older
calls are XML in the text of the answer. The command line's `~/.cline/data/sessions/<id>/<id>.messages.json` has none of
that. Messages have no ids in the former: they are known by their content, and equal ones by their count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import orjson

from everthread.imports.blocks import message_payloads
from everthread.imports.session import (
    MAX_BESIDE_BYTES,
    BrokenEntry,
    LineIds,
    NativeMessage,
    Session,
    dict_at,
    line_digest,
    moment_of,
    one_line_title,
    safe_id,
    small_document,
    summary_payload,
    text_in,
    time_of,
    tool_call,
    without_none,
)

HISTORY = "api_conversation_history.json"
_TYPED = re.compile(r"<(task|feedback|answer|user_message)>\n?(.*?)\n?</\1>", re.DOTALL)
_SURROUNDINGS = re.compile(r"\s*<environment_details>")
_RESULT = re.compile(r"\s*+\[(\w++)[^\n]*?\] Result:\s*")
_TOOLS = (
    "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace",
    "execute_command", "search_files", "list_files", "list_code_definition_names", "browser_action", "use_mcp_tool",
    "access_mcp_resource", "ask_followup_question", "attempt_completion", "new_task", "switch_mode",
    "plan_mode_respond", "codebase_search", "update_todo_list", "fetch_instructions", "web_fetch",
)  # fmt: skip
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?</\1>", re.DOTALL)


def read_task(value: Mapping[str, Any], path: PurePath) -> tuple[Session, list[NativeMessage]]:
    """One task; `value` has its list of messages, however the file has it."""
    listed = value.get("messages")
    if not isinstance(listed, list):
        raise BrokenEntry("has no list of messages")
    session = _session(value, path, listed)
    said: list[NativeMessage] = []
    ids, last, open_call = LineIds(), None, None
    for one in listed:
        if not isinstance(one, dict) or one.get("role") not in ("user", "assistant"):
            continue
        native = one.get("id")
        id = safe_id(native) if isinstance(native, str) and native else ids.of(_canonical(one))
        at = time_of(one.get("ts")) or (None if session.created_at is None else time_of(session.created_at.isoformat()))
        payloads, open_call = _payloads(one, id, open_call)
        for index, payload in enumerate(payloads):
            whole = {**without_none({"created_at": at}), **payload, "id": id if not index else safe_id(id, index)}
            is_summary = "additional_kwargs" in whole
            said.append(NativeMessage(session=session, payload=whole, after=None if is_summary else last))
            last = last if is_summary else whole["id"]
            if whole["role"] == "user" and not is_summary and not whole.get("is_meta"):
                session.name_after(text_in(whole["content"]))
    return session, said


def _session(value: Mapping[str, Any], path: PurePath, listed: list[Any]) -> Session:
    if "sessionId" in value:
        head = small_document(path.with_name(f"{path.name.partition('.')[0]}.json"))
        named, cwd = str(value["sessionId"]), head.get("cwd") or head.get("workspace_root")
        created, title = head.get("created_at"), dict_at(head, "metadata").get("title")
        subagent = value.get("agent") if value.get("agent") not in (None, "lead") else None
        agent, model = "cline", head.get("model")
    else:
        head = small_document(path.with_name("history_item.json"))
        agent = "roo" if head or any("roo-cline" in part for part in path.parts) else "cline"
        named, subagent = path.parent.name, None
        head = head or _task_of(path, named)
        if not named.isdecimal() and not head:  # not in its place: known by its first message
            named = line_digest(_canonical(listed[0] if listed else None))[:16]
        cwd = head.get("workspace") or head.get("cwdOnTaskInitialization")
        created, title, model = (int(named) if named.isdecimal() else head.get("ts")), None, head.get("modelId")
    above = safe_id(agent, named)
    session = Session(
        id=above if subagent is None else safe_id(above, subagent),
        agent=agent,
        parent_id=None if subagent is None else above,
        title=one_line_title(title) if isinstance(title, str) and title.strip() else None,
        created_at=moment_of(created),
    )
    session.note(agent=agent, session=named, cwd=cwd, model=model, subagent=subagent, tokens_in=head.get("tokensIn"))
    session.note(tokens_out=head.get("tokensOut"), cost=head.get("totalCost"))
    return session


def _task_of(path: PurePath, task: str) -> dict[str, Any]:
    """What Cline's list of tasks says of one."""
    listed = path.parents[2] / "state" / "taskHistory.json" if len(path.parents) > 2 else path
    try:
        raw = Path(listed).read_bytes() if Path(listed).stat().st_size <= MAX_BESIDE_BYTES else b"[]"
        tasks = orjson.loads(raw)
    except (OSError, ValueError):
        return {}
    listed_tasks = tasks if isinstance(tasks, list) else []
    return next((one for one in listed_tasks if isinstance(one, dict) and str(one.get("id")) == task), {})


def _canonical(value: object) -> bytes:
    """The same bytes for the same message, however the file is laid out."""
    kept = {name: one for name, one in value.items() if name != "ts"} if isinstance(value, dict) else value
    return json.dumps(kept, sort_keys=True).encode()


def _payloads(
    message: Mapping[str, Any], id: str, open_call: dict[str, Any] | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """The messages that one of the document is, and the call that waits for its result behind it."""
    content = message.get("content")
    if message.get("isSummary") is True or message.get("kind") == "compaction":
        return [summary_payload("", text_in(content), {})], open_call
    if message["role"] == "assistant":
        usage = message.get("usage") or message.get("metrics")
        payloads = message_payloads("assistant", content, model=message.get("model"), usage=usage)
        if not payloads[-1].get("tool_calls") and (found := _CALL.search(text_in(content))) is not None:
            call = tool_call(f"{id}-call", found[1], dict(_ARGUMENT.findall(found[2])))
            payloads[-1]["tool_calls"] = [call]
            return payloads, call
        return payloads, None
    payloads = list(_user(content, open_call))
    return payloads or message_payloads("user", content), None


def _user(content: object, open_call: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """What the program sent as the user's: what tools gave, what a person typed, and what stood around it."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    results = [one for one in blocks if isinstance(one, dict) and one.get("type") == "tool_result"]
    if results:
        yield from message_payloads("tool", results)
    told: list[Any] = []
    typed: list[Any] = []
    meta: list[Any] = []
    for block in (one for one in blocks if one not in results):
        text = block.get("text") if isinstance(block, dict) else None
        if not isinstance(text, str):
            typed.append(block)
        elif _SURROUNDINGS.match(text):
            meta.append(block)
        else:
            said = [found[2].strip() for found in _TYPED.finditer(text)]
            is_result = _RESULT.match(text) is not None or bool(told)
            typed += [{"type": "text", "text": one} for one in said if one]
            if is_result:
                told.append(block)
            elif not said:
                typed.append(block)
    typed += [text for result in results for text in _typed_in(result)]
    if told:
        call = None if open_call is None else open_call["id"]
        yield without_none({"role": "tool", "tool_call_id": call, "content": text_in(told)})
    if typed:
        yield {"role": "user", "content": typed}
    if meta:
        yield {"role": "user", "content": meta, "is_meta": True}


def _typed_in(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a person typed as the answer to a tool."""
    for found in _TYPED.finditer(text_in(result.get("content"))):
        if found[2].strip():
            yield {"type": "text", "text": found[2].strip()}

"""Codex: `~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl`.

Each turn is written twice: as `response_item` (what the model was sent and sent back) and as `event_msg` (what the
terminal showed). The items are the messages; an event counts only where its turn ended and no item said the same.
Files before late 2025 have the items without the envelope. `compacted` is a summary over all before it.
`thread_rolled_back` takes the last prompts out of the context: what follows is a branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from everthread.core.payloads import block_type
from everthread.imports.session import (
    START,
    LineIds,
    NativeMessage,
    Session,
    dict_at,
    line_digest,
    moment_of,
    parse_line,
    safe_id,
    summary_payload,
    text_in,
    time_of,
    tool_call,
    without_none,
)

AGENT = "codex"
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(.+)")
_INJECTED = re.compile(
    r"\s*(<(environment_context|user_instructions|permissions|turn_aborted|skill|user_shell_command|hook_prompt"
    r"|subagent_notification|recommended_plugins|goal_context|codex_internal_context)\b|<external_"
    r"|# AGENTS\.md instructions)"
)
"""How what Codex itself adds as a user's message begins."""
_TURN_ENDS = {"task_complete", "turn_complete", "turn_aborted"}
_CALLS = {
    "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call",
}  # fmt: skip
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
_EVENT_ROLES = {"user_message": "user", "agent_message": "assistant"}


class CodexReader:
    """Reads one rollout."""

    def __init__(self, path: PurePath) -> None:
        self.sessions: dict[str, Session] = {}
        named = _ROLLOUT.fullmatch(path.stem)
        self._name = named[1] if named else path.stem
        self._session: Session | None = None
        self._ids = LineIds()
        self._model: str | None = None
        self._last: str | None = None
        self._before_prompts: list[str | None] = []
        """For each prompt that is in the context the id of the message before it."""
        self._is_rolled_back = False
        """Whether nothing is in the context since the last message."""
        self._item_texts: set[tuple[str, str]] = set()
        """Role and text of the messages of this turn."""
        self._events: dict[tuple[str, str], dict[str, Any]] = {}
        """What only the terminal was shown so far, in this turn."""

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        payload = value.get("payload")
        match value.get("type"):
            case "session_meta" if isinstance(payload, dict):
                self._begin(payload, value.get("timestamp"))
            case "turn_context" if isinstance(payload, dict):
                self._model = payload.get("model") or self._model
                self._begun().note(cwd=payload.get("cwd"), model=payload.get("model"))
            case "response_item" if isinstance(payload, dict):
                return self._item(payload, line, value.get("timestamp"))
            case "event_msg" if isinstance(payload, dict):
                return self._event(payload, line, value.get("timestamp"))
            case "compacted" if isinstance(payload, dict):
                common = self._common(line, value.get("timestamp"))
                summary = summary_payload(self._id_of(payload, value.get("timestamp")), payload.get("message"), common)
                return [NativeMessage(session=self._begun(), payload=summary)]
            case None if "id" in value and "timestamp" in value:
                self._begin(value, value["timestamp"])
            case str() if payload is None:
                return self._item(value, line, value.get("timestamp"))
        return []

    def _begin(self, meta: Mapping[str, Any], at: object) -> None:
        """A fork's file repeats the head of the one it came from after its own: the first counts."""
        if self._session is not None:
            return
        native = meta.get("id") or meta.get("session_id") or self._name
        source = meta.get("source")
        spawn = source.get("subagent") if isinstance(source, dict) else None
        named = [*_values_of(spawn, "parent_thread_id"), meta.get("parent_thread_id")]
        above = next((one for one in named if isinstance(one, str)), None)
        git = dict_at(meta, "git")
        id = safe_id(AGENT, native) if above is None else safe_id(AGENT, above, native)
        session = Session(
            id=id,
            agent=AGENT,
            parent_id=None if above is None else safe_id(AGENT, above),
            created_at=moment_of(meta.get("timestamp")) or moment_of(at),
        )
        session.note(agent=AGENT, session=native, cwd=meta.get("cwd"), agent_version=meta.get("cli_version"))
        session.note(git_branch=git.get("branch"), forked_from=meta.get("forked_from_id"))
        self._session = self.sessions[id] = session

    def _begun(self) -> Session:
        if self._session is None:
            self._begin({}, None)
        assert self._session is not None
        return self._session

    def _id_of(self, said: Mapping[str, Any], at: object) -> str:
        """An id for what has none: what it says and when, not how its line is written, since `codex migrate-rollouts`
        writes all lines anew."""
        return self._ids.of(json.dumps([at, said], sort_keys=True).encode("utf-8", "surrogatepass"))

    def _common(self, line: bytes, at: object) -> dict[str, Any]:
        session = self._begun()
        session.created_at = session.created_at or moment_of(at)
        return without_none({"created_at": time_of(at), "line": line_digest(line)[:16]})

    def _item(self, item: Mapping[str, Any], line: bytes, at: object) -> list[NativeMessage]:
        payload = self._payload(item)
        if payload is None:
            return []
        native = item.get("id")
        id = safe_id(native) if isinstance(native, str) and native else self._id_of(item, at)
        said = []
        if payload["role"] in ("user", "assistant") and (text := text_in(payload["content"])):
            self._events.pop((payload["role"], text.strip()), None)
            if payload["role"] == "user" and not _INJECTED.match(text):
                if not payload.get("is_meta"):
                    self._begun().name_after(text)
                said = self._end_turn()
                self._before_prompts.append(self._last)
            elif payload["role"] == "user":
                payload["is_meta"] = True
            self._item_texts.add((payload["role"], text.strip()))
        return [*said, self._placed({**self._common(line, at), **payload, "id": id})]

    def _payload(self, item: Mapping[str, Any]) -> dict[str, Any] | None:
        kind = block_type(item) or ("message" if "role" in item else "")
        if kind == "message" and isinstance(item.get("role"), str):
            model = self._model if item["role"] == "assistant" else None
            return without_none({"role": item["role"], "content": _blocks(item.get("content")), "model": model})
        if kind == "agent_message":  # from another agent, which nobody typed
            fields = {"role": "user", "name": item.get("author"), "content": _blocks(item.get("content"))}
            return without_none({**fields, "is_meta": True})
        if kind == "reasoning":
            thought = text_in(item.get("content")) or text_in(item.get("summary"))
            blocks = [{"type": "thinking", "thinking": thought}] if thought else []
            return {"role": "assistant", "content": blocks} if blocks else None
        if kind in _CALLS:
            name = item.get("name") or {"local_shell_call": "shell"}.get(str(kind), str(kind).removesuffix("_call"))
            given = item.get("arguments", item.get("input", item.get("action", item.get("revised_prompt"))))
            call = tool_call(item.get("call_id") or item.get("id"), name, given)
            return without_none({"role": "assistant", "content": "", "tool_calls": [call], "model": self._model})
        if kind in _OUTPUTS:
            return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _output(item.get("output"))}
        return None

    def _event(self, event: Mapping[str, Any], line: bytes, at: object) -> list[NativeMessage]:
        kind = block_type(event)
        if kind in _TURN_ENDS:
            return self._end_turn()
        plan = dict_at(event, "item")
        if kind == "item_completed" and plan.get("type") == "Plan" and isinstance(plan.get("text"), str):
            id = safe_id(plan["id"]) if isinstance(plan.get("id"), str) and plan["id"] else self._id_of(plan, at)
            return [self._placed({**self._common(line, at), "role": "assistant", "content": plan["text"], "id": id})]
        if kind == "thread_rolled_back":
            return self._roll_back(event.get("num_turns"))
        role, text = _EVENT_ROLES.get(str(kind)), event.get("message")
        if role is None or not isinstance(text, str) or not text.strip() or _INJECTED.match(text):
            return []
        said = self._end_turn() if role == "user" and (role, text.strip()) not in self._item_texts else []
        key = (role, text.strip())
        if key not in self._item_texts:
            self._events[key] = {**self._common(line, at), "role": role, "content": text, "id": self._id_of(event, at)}
        return said

    def _end_turn(self) -> list[NativeMessage]:
        """Take over what the terminal showed and no item said: a turn that was cut short has such."""
        left = [self._placed(payload) for payload in self._events.values()]
        self._events.clear()
        self._item_texts.clear()
        return left

    def _roll_back(self, turns: object) -> list[NativeMessage]:
        """Go back to before the last prompts."""
        left = self._end_turn()
        if isinstance(turns, int) and turns > 0 and self._before_prompts:
            self._last = self._before_prompts[-turns] if turns <= len(self._before_prompts) else self._before_prompts[0]
            del self._before_prompts[-turns:]
            self._is_rolled_back = self._last is None
        return left

    def _placed(self, payload: dict[str, Any]) -> NativeMessage:
        after = START if self._is_rolled_back else self._last
        message = NativeMessage(session=self._begun(), payload=payload, after=after)
        self._last, self._is_rolled_back = payload["id"], False
        return message


def _blocks(content: object) -> object:
    """Content as blocks that everybody reads: text, and whatever else as it is."""
    if not isinstance(content, list):
        return content or ""
    blocks = []
    for one in content:
        is_text = isinstance(one, dict) and one.get("type") in ("input_text", "output_text")
        blocks.append({**one, "type": "text"} if is_text else one)
    return blocks


def _output(output: object) -> object:
    if isinstance(output, Mapping):
        return _blocks(output.get("content")) if "content" in output else str(dict(output))
    return _blocks(output)


def _values_of(value: object, name: str) -> list[object]:
    """Every value under this name, however deep."""
    if not isinstance(value, dict):
        return []
    own = [value[name]] if name in value else []
    return own + [found for inner in value.values() for found in _values_of(inner, name)]

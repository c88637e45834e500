"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, and the files of subagents below it.

Each line has a `uuid` and the `parentUuid` before it. What makes it more than a list:

- After a rewind, the next prompt has an earlier parent: a branch. Results of parallel tool calls have several parents
  in one turn too, and are no branch. So only prompts fork; everything else goes to the end of the turn it belongs to.
- A `compact_boundary` has no parent but a `logicalParentUuid`; `isCompactSummary` marks a summary, which nobody said.
- What was typed while the agent worked is an `attachment`, a `queued_command`.
- A subagent's lines (`isSidechain`) have the `sessionId` of the session that started it.
- A large output of a tool is in `<folder>/<session>/tool-results/`, and the line has only its beginning.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from everthread.imports.session import (
    MAX_LINE_BYTES,
    START,
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

AGENT = "claude-code"
_TASK = "task-notification"
"""What tells the model that a task in the background has ended, in a user's name."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OUTPUTS = "tool-results"
"""The folder of a session in which the large outputs of its tools are."""
_SAVED = re.compile(
    r"(?:<persisted-output>|Error: result \([\d,]+ characters\))[^\n]*\n?[^\n]*?"
    rf"[/\\]([^/\\\n]+)[/\\]{OUTPUTS}[/\\]([^/\\\s<]+\.(?:txt|json))"
)
"""How a result begins that says where its whole output is: the names of the session's folder and of the file."""
_HEAD = 4096
"""So many characters of a result are looked at for that."""


@dataclass(slots=True)
class _Turn:
    """A prompt and what followed it."""

    leaf: str
    """The id of its newest message."""
    subagent: str | None
    is_continued: bool = False
    """Whether another prompt follows it, so that one more is a branch."""


class ClaudeCodeReader:
    """Reads one session file, or one file of a subagent."""

    def __init__(self, path: PurePath) -> None:
        self.sessions: dict[str, Session] = {}
        self._stem = path.stem
        self._project = path.parents[2] if path.parent.name == "subagents" and len(path.parents) > 2 else path.parent
        """The folder of the project, with a folder for each session that needs one."""
        self._is_subagent = path.stem.startswith("agent-") or path.parent.name == "subagents"
        self._native = path.stem if _UUID.fullmatch(path.stem) else None
        """The id of the session. A resumed one can begin with lines copied from another, so the file's name is asked
        first."""
        self._ids = LineIds()
        self._positions: dict[str, tuple[_Turn, str]] = {}
        """For the uuid of each line its turn, and the id of the last message up to it."""
        self._newest: dict[str, _Turn] = {}
        """The newest turn of each session."""
        self._outputs: dict[PurePath, str] = {}
        """The file of each large output, and the message that has it: no other one gets it as well."""
        self._counted: dict[str, Counter[str]] = {}
        """The tokens that were counted of each API message: it has a line for every block, each with all so far."""

    def read(self, line: bytes) -> list[NativeMessage]:
        value = parse_line(line)
        if value is None:
            return []
        kind = value.get("type")
        if kind in ("user", "assistant") and isinstance(value.get("message"), dict):
            return self._messages(value, line)
        attached = dict_at(value, "attachment")
        if kind == "attachment" and attached.get("type") == "queued_command" and attached.get("prompt"):
            return self._queued(value, attached, line)
        if kind in ("summary", "ai-title", "custom-title") and self._native is not None:
            title = value.get("customTitle") or value.get("aiTitle") or value.get("summary")
            if isinstance(title, str) and title.strip():
                self._session(value).title = one_line_title(title)
        self._pass_on(value)
        return []

    def _session(self, value: Mapping[str, Any]) -> Session:
        named = value.get("sessionId")
        if self._native is None or self._is_subagent:
            self._native = named if isinstance(named, str) and named else self._native or self._stem
        subagent = self._subagent(value)
        above = safe_id(AGENT, self._native)
        id = above if subagent is None else safe_id(AGENT, self._native, subagent)
        session = self.sessions.get(id)
        if session is None:
            parent = None if subagent is None else above
            session = self.sessions[id] = Session(id=id, agent=AGENT, parent_id=parent)
            session.note(agent=AGENT, session=self._native, subagent=subagent)
        session.note(cwd=value.get("cwd"), git_branch=value.get("gitBranch"), agent_version=value.get("version"))
        return session

    def _subagent(self, value: Mapping[str, Any]) -> str | None:
        """The subagent that a line belongs to. In older files they stand between those of the session itself."""
        if not self._is_subagent and value.get("isSidechain") is not True:
            return None
        if isinstance(value.get("agentId"), str):
            return f"agent-{value['agentId']}"
        if self._is_subagent:
            return self._stem
        turn, _ = self._positions.get(str(value.get("parentUuid")), (None, ""))
        return turn.subagent if turn is not None and turn.subagent else f"agent-{value.get('uuid')}"

    def _pass_on(self, value: Mapping[str, Any]) -> None:
        """Let lines that name one without a message as their parent find the message before it."""
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        if isinstance(value.get("uuid"), str) and str(parent) in self._positions:
            self._positions[value["uuid"]] = self._positions[str(parent)]

    def _messages(self, value: Mapping[str, Any], line: bytes) -> list[NativeMessage]:
        session = self._session(value)
        session.created_at = session.created_at or moment_of(value.get("timestamp"))
        uuid = value.get("uuid")
        id = safe_id(uuid) if isinstance(uuid, str) and uuid else self._ids.of(line)
        common = without_none({"created_at": time_of(value.get("timestamp")), "line": line_digest(line)[:16]})
        message: Mapping[str, Any] = value["message"]
        if value.get("isCompactSummary") is True:
            self._pass_on(value)
            return [NativeMessage(session=session, payload=summary_payload(id, message.get("content"), common))]
        if value["type"] == "assistant":
            return self._placed(value, [self._assistant(message, id, common)], session, is_prompt=False)
        is_meta = value.get("isMeta") is True or dict_at(value, "origin").get("kind") == _TASK
        payloads = _user(message.get("content"), id, common | {"is_meta": True} if is_meta else common)
        is_prompt = payloads[-1]["role"] == "user" and not is_meta
        if is_prompt:
            session.name_after(text_in(payloads[-1]["content"]))
        placed = self._placed(value, payloads, session, is_prompt=is_prompt)
        return [self._whole(one) if one.payload["role"] == "tool" else one for one in placed]

    def _whole(self, result: NativeMessage) -> NativeMessage:
        """A result with its whole output, where that is in a file of its own."""
        saved = saved_output(result.payload["content"])
        if saved is None:
            return result
        is_its_own = self._outputs.setdefault(saved, result.payload["id"]) == result.payload["id"]
        output = _output_in(Path(self._project / saved)) if is_its_own else None
        if output is None:
            return replace(result, replaces_nothing=True)
        return replace(result, payload={**result.payload, "content": output})

    def _queued(self, value: Mapping[str, Any], attached: Mapping[str, Any], line: bytes) -> list[NativeMessage]:
        session = self._session(value)
        uuid = value.get("uuid")
        id = safe_id(uuid) if isinstance(uuid, str) and uuid else self._ids.of(line)
        common = {"created_at": time_of(value.get("timestamp")), "line": line_digest(line)[:16]}
        is_meta = True if attached.get("commandMode") == _TASK else None
        payload = {**common, "id": id, "role": "user", "content": attached["prompt"], "is_meta": is_meta}
        return self._placed(value, [without_none(payload)], session, is_prompt=False)

    def _assistant(self, message: Mapping[str, Any], id: str, common: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        calls = []
        if isinstance(content, list):
            uses = [one for one in content if isinstance(one, dict) and one.get("type") == "tool_use"]
            calls = [tool_call(one.get("id"), one.get("name"), one.get("input")) for one in uses]
            content = [one for one in content if one not in uses]
        usage, native = message.get("usage"), message.get("id")
        if isinstance(native, str) and isinstance(usage, dict):
            usage = self._not_counted(native, usage)
        return without_none({
            **common, "id": id, "role": "assistant", "content": "" if content is None else content,
            "tool_calls": calls or None, "model": message.get("model"), "usage": usage,
        })  # fmt: skip

    def _not_counted(self, native: str, usage: dict[str, Any]) -> dict[str, Any] | None:
        """What a line says of its API message's tokens beyond what the lines before it said."""
        now = Counter({name: count for name, count in usage.items() if isinstance(count, int)})
        before = self._counted.setdefault(native, Counter())
        self._counted[native] = before | now
        return dict(now - before) or None if before else usage

    def _placed(
        self, value: Mapping[str, Any], payloads: Sequence[dict[str, Any]], session: Session, *, is_prompt: bool
    ) -> list[NativeMessage]:
        parent = str(value.get("parentUuid") or value.get("logicalParentUuid"))
        newest = self._newest.get(session.id)
        turn, at = self._positions.get(parent, (newest, newest.leaf if newest is not None else ""))
        subagent = self._subagent(value)
        if turn is not None and turn.subagent != subagent:
            turn = newest  # the first line of a subagent names the call that started it
        after = None
        if turn is not None:
            after = at if is_prompt and turn.is_continued else turn.leaf
            turn.is_continued |= is_prompt
        if is_prompt and turn is not None and _is_first(value):
            after = START
        if turn is None or is_prompt:
            turn = _Turn(leaf="", subagent=subagent)
        placed = []
        for payload in payloads:
            placed.append(NativeMessage(session=session, payload=payload, after=after))
            turn.leaf = after = payload["id"]
        self._newest[session.id] = turn
        if isinstance(value.get("uuid"), str):
            self._positions[value["uuid"]] = (turn, turn.leaf)
        return placed


def _is_first(value: Mapping[str, Any]) -> bool:
    """Whether a line says of itself that nothing comes before it."""
    return "parentUuid" in value and value["parentUuid"] is None and value.get("logicalParentUuid") is None


def saved_output(content: object) -> PurePath | None:
    """The file with the whole output of which this result has the beginning, in the folder of its project."""
    saved = _SAVED.match(text_in(content)[:_HEAD])
    return None if saved is None or saved[1] == ".." else PurePath(saved[1], OUTPUTS, saved[2])


def _output_in(path: Path) -> str | None:
    """What a tool gave, byte for byte; None where it is not there, or is no file of an agent's."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_LINE_BYTES:
        return None
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape") or None
    except OSError:
        return None


def _user(content: object, id: str, common: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A user's line: a message for each tool result in it, and one for what else it says."""
    blocks = content if isinstance(content, list) else []
    results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
    rest = [block for block in blocks if block not in results] if results else content
    payloads = []
    for block in results:
        status = {"status": "error"} if block.get("is_error") is True else {}
        call = {"tool_call_id": block.get("tool_use_id"), "content": block.get("content") or ""}
        payloads.append({**common, **status, "role": "tool", **call})
    if rest or not results:
        payloads.append({**common, "role": "user", "content": "" if rest is None else rest})
    return [{**payload, "id": id if not index else safe_id(id, index)} for index, payload in enumerate(payloads)]

"""`everthread resume`: a session as a file that an agent opens and goes on with.

For the agent that wrote it, the file is made of its own lines, byte for byte: all of them under the old id, or those
up to some point under a new one. For another agent the messages are written anew, in that agent's form.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any
from uuid import uuid4

from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.entries import Kind
from everthread.core.errors import Conflict, Invalid, NotFound
from everthread.core.imports import ImportSource
from everthread.core.nouns import Message, Ref
from everthread.core.payloads import block_type
from everthread.imports.claude_code import OUTPUTS, saved_output
from everthread.imports.follow import stored_path
from everthread.imports.session import BrokenEntry, dict_at, parse_line, time_of
from everthread.imports.session_file import file_up_to, lines_of, main_source, source_path, whole_file
from everthread.instance import Everthread

TARGETS = {"claude": "claude-code", "codex": "codex"}
_OTHER_BLOCKS = {
    "image", "image_url", "input_image", "document", "file", "input_file", "audio", "input_audio", "video",
}  # fmt: skip
_CALL_ID = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSession:
    """A session file, and how its agent opens it."""

    agent: str
    session_id: str
    path: Path
    """Where the agent looks for it."""
    content: bytes
    is_original: bool
    """Whether it is what the agent had written, byte for byte."""
    cwd: str
    left_out: int = 0
    """How many images and files are not in it: for another agent only text and tool calls are written."""
    restored: int = 0
    """How many messages are in it that the agent's own file had lost."""
    unreadable: int = 0
    """How many lines of the agent's own file are not in it because they are no JSON."""
    has_gaps: bool = False
    """Whether a part of the agent's own file is in the log no more, and so not in it."""
    outputs: Mapping[PurePath, bytes] = field(default_factory=dict)
    """Large outputs of tools that it names, by the files beside it in which Claude Code has them."""

    @property
    def command(self) -> str:
        """What continues it, for a shell. What is in it comes from files of others."""
        id = shlex.quote(self.session_id)
        verb = f"claude --resume {id}" if self.agent == "claude-code" else f"codex resume {id}"
        return f"cd {shlex.quote(self.cwd)} && {verb}" if self.cwd else verb


async def native_session(
    et: Everthread,
    conversation: Conversation,
    *,
    home: Mapping[str, Path],
    target: str | None = None,
    at: Message | None = None,
    before_compaction: int | None = None,
    cwd: str | None = None,
) -> NativeSession:
    """The session as a file for an agent; `home` says where each keeps its files. `cwd` is the folder in which it
    goes on, where that is not the one that it ran in."""
    metadata = conversation.info.metadata
    own = str(metadata.get("agent") or "")
    agent = own if target is None else TARGETS[target]
    if agent not in TARGETS.values():
        raise Invalid(
            f"{conversation.id} did not come from an agent whose sessions can be resumed; name one with --as",
            field="as",
        )
    last_seq = await _last_seq(et, conversation, at, before_compaction)
    lines = [line async for line in lines_of(et, conversation)] if agent == own else []
    cwd = cwd or str(metadata.get("cwd") or "")
    if not lines:
        said = [message async for message in _said(conversation, at, last_seq)]
        return _written_anew(agent, said, cwd, home[agent])
    session_id = str(metadata.get("session"))
    source = main_source(lines)
    if last_seq is None:
        file = await whole_file(et, conversation, source)
        path = Path(await source_path(et, conversation.owner, source))
        if file.is_original or not _is_other(path, file.content):
            return NativeSession(
                agent=agent, session_id=session_id, path=path, content=file.content, is_original=file.is_original,
                cwd=cwd, restored=file.restored, unreadable=file.unreadable, has_gaps=file.has_gaps,
                outputs=await _outputs(conversation, file.content),
            )  # fmt: skip
    else:
        file = await file_up_to(et, conversation, source, last_seq)
    content = _without_boundary(file.content, is_before=before_compaction is not None)
    fresh = str(uuid4())
    content = content.replace(session_id.encode(), fresh.encode())
    return NativeSession(
        agent=agent, session_id=fresh, path=_new_path(agent, fresh, cwd, home[agent]), content=content,
        is_original=False, cwd=cwd, restored=file.restored, unreadable=file.unreadable, has_gaps=file.has_gaps,
        outputs=await _outputs(conversation, content),
    )  # fmt: skip


async def _outputs(conversation: Conversation, content: bytes) -> dict[PurePath, bytes]:
    """The large outputs that lines of Claude Code name, from the messages that have them whole."""
    named: dict[object, PurePath] = {}
    for line in content.splitlines():
        value = _parsed(line) if OUTPUTS.encode() in line else {}
        blocks = dict_at(value, "message").get("content")
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and (saved := saved_output(block.get("content"))) is not None:
                named[block.get("tool_use_id")] = saved
    found: dict[PurePath, bytes] = {}
    branches = [branch async for branch in conversation.branches()] if named else []
    for branch in branches:
        async for message in conversation.messages(branch=branch):
            whole, path = message.payload.get("content"), named.get(message.payload.get("tool_call_id"))
            if message.role == "tool" and path is not None and isinstance(whole, str) and saved_output(whole) is None:
                found[path] = whole.encode("utf-8", "surrogateescape")
    return found


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        return parse_line(line) or {}
    except BrokenEntry:
        return {}


def _is_other(path: Path, content: bytes) -> bool:
    """Whether there is a file with other content, such as what damage has left of it."""
    return path.is_file() and path.read_bytes() != content


async def _last_seq(
    et: Everthread, conversation: Conversation, at: Message | None, before_compaction: int | None
) -> int | None:
    """The last entry that the file may have; None for all."""
    if at is not None:
        return at.entry_seq
    if before_compaction is None:
        return None
    ref = Ref(conversation.owner, conversation.id)
    summaries = [entry.seq for entry in await et.store.log.framework_entries(ref) if entry.kind == Kind.SUMMARY]
    if not 1 <= before_compaction <= len(summaries):
        count = len(summaries)
        raise NotFound(
            f"{conversation.id} has {count} compactions of its agent; there is no number {before_compaction}"
        )
    return summaries[before_compaction - 1] - 1


def _without_boundary(content: bytes, *, is_before: bool) -> bytes:
    """Without the mark of the compaction that follows: it stands behind the last message before it."""
    lines = content.splitlines(keepends=True)
    while is_before and lines and b"compact_boundary" in lines[-1]:
        lines.pop()
    return b"".join(lines)


async def _said(conversation: Conversation, at: Message | None, last_seq: int | None) -> AsyncIterator[Message]:
    branch = at.seq if at is not None else None
    async for message in conversation.messages(branch=branch):
        if last_seq is None or message.seq <= last_seq:
            yield message


def _new_path(agent: str, session_id: str, cwd: str, home: Path) -> Path:
    if agent == "claude-code":
        return home / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd or "/") / f"{session_id}.jsonl"
    now = datetime.now(UTC)
    return home / "sessions" / f"{now:%Y/%m/%d}" / f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{session_id}.jsonl"


# -- written anew ----------------------------------------------------------------------------------------------


def _written_anew(agent: str, said: Sequence[Message], cwd: str, home: Path) -> NativeSession:
    session_id = str(uuid4())
    write = _as_claude if agent == "claude-code" else _as_codex
    content = b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        for line in write(said, session_id, cwd)
    )
    path = _new_path(agent, session_id, cwd, home)
    left_out = sum(_others_in(message) for message in said)
    return NativeSession(
        agent=agent, session_id=session_id, path=path, content=content, is_original=False, cwd=cwd, left_out=left_out
    )


def _others_in(message: Message) -> int:
    """How many images, files and the like a message has."""
    content = message.payload.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return sum(block_type(block) in _OTHER_BLOCKS for block in blocks)


def _as_claude(said: Sequence[Message], session_id: str, cwd: str) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for message, calls in _with_answered_calls(said):
        uuid = str(uuid4())
        line: dict[str, Any] = {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session_id,
            "version": "2.0.0", "gitBranch": "", "type": "user", "uuid": uuid, "timestamp": _time(message),
        }  # fmt: skip
        text = payloads.text(message.payload)
        if message.role == "assistant":
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
            blocks += [{"type": "tool_use", "id": id, "name": name, "input": given} for id, name, given in calls]
            if not blocks:
                continue
            line |= {"type": "assistant", "message": {
                "id": f"msg_{uuid.replace('-', '')}", "type": "message", "role": "assistant",
                "model": message.payload.get("model") or "<synthetic>", "content": blocks,
                "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 0, "output_tokens": 0},
            }}  # fmt: skip
        elif message.role == "tool" and calls:
            result = {"type": "tool_result", "tool_use_id": calls[0][0], "content": text}
            line["message"] = {"role": "user", "content": [result]}
        elif text.strip():
            line["message"] = {"role": "user", "content": text}
            if message.role != "user" or message.payload.get("is_meta"):
                line["isMeta"] = True
        else:
            continue
        yield line
        parent = uuid


def _as_codex(said: Sequence[Message], session_id: str, cwd: str) -> Iterator[dict[str, Any]]:
    first = _time(said[0]) if said else time_of(datetime.now(UTC).isoformat())
    yield {"timestamp": first, "type": "session_meta", "payload": {
        "id": session_id, "timestamp": first, "cwd": cwd or "/", "originator": "everthread", "cli_version": "0.0.0",
        "source": "cli", "model_provider": "openai", "instructions": None,
    }}  # fmt: skip
    for message, calls in _with_answered_calls(said):
        at = _time(message)

        def line(kind: str, at: str | None = at, **payload: Any) -> dict[str, Any]:
            return {"timestamp": at, "type": kind, "payload": payload}

        text = payloads.text(message.payload)
        if message.role == "tool" and calls:
            yield line("response_item", type="function_call_output", call_id=calls[0][0], output=text)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if text.strip():
            kind = "output_text" if role == "assistant" else "input_text"
            yield line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])
            yield line("event_msg", type="agent_message" if role == "assistant" else "user_message", message=text)
        for id, name, given in calls if message.role == "assistant" else ():
            arguments = json.dumps(given, ensure_ascii=False)
            yield line("response_item", type="function_call", name=name, arguments=arguments, call_id=id)


Call = tuple[str, str, dict[str, Any]]


def _with_answered_calls(said: Sequence[Message]) -> Iterator[tuple[Message, list[Call]]]:
    """Each message with its calls that were answered, and each answer with the call that it answers: providers refuse a
    request in which one of them is missing."""
    answered = {message.payload.get("tool_call_id") for message in said if message.role == "tool"}
    made: set[object] = set()
    for message in said:
        calls: list[Call] = []
        if message.role == "tool":
            id = message.payload.get("tool_call_id")
            calls = [(_call_id(id), "", {})] if id in made else []
        else:
            for call in message.payload.get("tool_calls") or ():
                if isinstance(call, dict) and call.get("id") in answered:
                    made.add(call["id"])
                    given = call.get("args")
                    calls.append(
                        (_call_id(call["id"]), str(call.get("name")), given if isinstance(given, dict) else {})
                    )
        yield message, calls


def _call_id(id: object) -> str:
    return _CALL_ID.sub("_", str(id))[:64]


def _time(message: Message) -> str | None:
    return time_of((message.said_at or message.created_at).isoformat())


async def note_written(et: Everthread, owner: str, session: NativeSession) -> None:
    """Record a new session as read: what it repeats is here, so of its file only what follows is imported."""
    if session.is_original or await et.store.imports.source(owner, stored_path(session.path)) is not None:
        return
    digest, now = sha256(session.content).digest(), round(datetime.now(UTC).timestamp() * 1e6)
    source = ImportSource(0, session.agent, stored_path(session.path), None, len(session.content), digest, now)
    await et.store.imports.keep_source(owner, source)


def write_file(session: NativeSession, path: Path) -> bool:
    """Write a session where there is no file yet; False where the same one is there already. Where its agent looks for
    it, it gets the large outputs beside it that are not there."""
    is_new = not path.exists()
    if not is_new and path.read_bytes() != session.content:
        raise Conflict(f"{path} exists and has other content; nothing was written: name another file with --output")
    if is_new:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(session.content)
    if path.absolute() == session.path.absolute():
        for name, output in session.outputs.items():
            if not (beside := path.parent / name).exists():
                beside.parent.mkdir(parents=True, exist_ok=True)
                beside.write_bytes(output)
    return is_new

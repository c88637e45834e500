"""Small sessions of the agents that are read by the shapes of their files, written from their descriptions: where each
stands in a home folder, what is in it, and what is to come of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

from tests.imports.agent_files import CWD, as_lines, at

MILLIS = 1772359200000
"""Of the moment `at(0)`."""


@dataclass(frozen=True, kw_only=True)
class AgentFile:
    """A session of an agent in a home folder."""

    agent: str
    path: str
    content: bytes = b""
    script: str = ""
    """Of a database, instead of the content."""
    beside: Mapping[str, Any] | None = None
    """A small file that the agent keeps beside it, and its path."""
    id: str
    title: str
    said: tuple[tuple[str, str], ...]
    """Role and text of each message that is no summary and nothing that the program added."""
    calls: tuple[str, ...] = ()
    """What the tools were given: a text in it for each call."""
    thought: str | None = None
    model: str | None = None
    tokens: int | None = None

    def put(self, home: Path) -> Path:
        path = home / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, value in (self.beside or {}).items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(json.dumps(value))
        if self.script:
            with closing(sqlite3.connect(path)) as connection:
                connection.executescript(self.script)
        else:
            path.write_bytes(self.content)
        return path


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "'" + text.replace("'", "''") + "'"


KIMI = AgentFile(
    agent="kimi", path=".kimi-code/sessions/wd/k1/agents/main/wire.jsonl", id="kimi:k1", title="Rotate the keys",
    beside={".kimi-code/sessions/wd/k1/state.json": {"title": "Rotate the keys", "workDir": CWD, "createdAt": at(0)}},
    content=as_lines([
        {"type": "metadata", "protocol_version": "1.4", "created_at": MILLIS},
        {"type": "config.update", "model": "kimi-test", "systemPrompt": "You are an agent."},
        {"type": "context.append_message", "time": MILLIS + 1000, "message": {
            "role": "user", "content": [{"type": "text", "text": "Why is the key stale?"}], "toolCalls": []}},
        *({"type": "context.append_loop_event", "time": MILLIS + 2000 + number, "event": event}
          for number, event in enumerate((
              {"type": "step.begin", "uuid": "s1"},
              {"type": "content.part", "stepUuid": "s1", "part": {"type": "think", "think": "Look at the cache."}},
              {"type": "content.part", "stepUuid": "s1", "part": {"type": "text", "text": "I read "}},
              {"type": "content.part", "stepUuid": "s1", "part": {"type": "text", "text": "the cache. 缓存"}},
              {"type": "tool.call", "stepUuid": "s1", "toolCallId": "t1", "name": "Read",
               "args": {"path": f"{CWD}/keys.py"}},
              {"type": "step.end", "uuid": "s1", "stepUuid": "s1", "usage": {"input_tokens": 9, "output_tokens": 2}},
              {"type": "tool.result", "toolCallId": "t1", "result": {"output": "TTL = 60"}},
              {"type": "step.begin", "uuid": "s2"},
              {"type": "content.part", "stepUuid": "s2", "part": {"type": "text", "text": "It lives too long."}},
          ))),
    ]),
    said=(("user", "Why is the key stale?"), ("assistant", "I read the cache. 缓存"), ("tool", "TTL = 60"),
          ("assistant", "It lives too long.")),
    calls=("keys.py",), thought="Look at the cache.", model="kimi-test", tokens=11,
)  # fmt: skip


def _grok(second: int, prompt: int, **update: Any) -> dict[str, Any]:
    return {"timestamp": MILLIS // 1000 + second, "params": {
        "update": {**update, "_meta": {"promptIndex": prompt}}, "_meta": {"promptId": f"p{prompt}"}}}  # fmt: skip


def _chunk(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


GROK = AgentFile(
    agent="grok", path=".grok/sessions/srv/g1/updates.jsonl", id="grok:g1", title="Streams",
    beside={".grok/sessions/srv/g1/summary.json": {
        "info": {"id": "g1", "cwd": CWD}, "generated_title": "Streams", "created_at": at(0)}},
    content=as_lines([
        _grok(1, 0, **_chunk("user_message_chunk", "Which stream ")),
        _grok(1, 0, **_chunk("user_message_chunk", "is torn?")),
        _grok(2, 0, **_chunk("agent_thought_chunk", "Search.")),
        _grok(2, 0, **_chunk("agent_message_chunk", "Looking")),
        _grok(2, 0, **_chunk("agent_message_chunk", " now.")),
        _grok(3, 0, sessionUpdate="tool_call", toolCallId="t1", kind="read", rawInput={"path": f"{CWD}/stream.py"}),
        _grok(4, 0, sessionUpdate="tool_call_update", toolCallId="t1", status="completed",
              content=[{"type": "content", "content": {"type": "text", "text": "def stream(): ..."}}]),
        _grok(5, 0, **_chunk("agent_message_chunk", "The second one.")),
        _grok(6, 1, **_chunk("user_message_chunk", "Mend it.")),
    ]),
    said=(("user", "Which stream is torn?"), ("assistant", "Looking now."), ("assistant", ""),
          ("tool", "def stream(): ..."), ("assistant", "The second one."), ("user", "Mend it.")),
    calls=("stream.py",), thought="Search.",
)  # fmt: skip

_AIDER = """
# aider chat started at 2026-03-01 10:00:00

> aider v0.86
> Model: gpt-test with diff edit format

#### /add parse.py

> Added parse.py to the chat

#### Make the parser
#### faster, please.

Use a table:

```python
#### not a prompt
> not aider
```

> Tokens: 2.3k sent, 120 received. Cost: $0.01 message, $0.01 session.
> Applied edit to parse.py

# aider chat started at 2026-03-02 10:00:00

#### 还有吗?

Nothing more.
"""
AIDER = AgentFile(
    agent="aider", path="code/parser/.aider.chat.history.md", content=_AIDER.encode(), id="aider:2026-03-01T10:00:00-",
    title="", said=(
        ("user", "/add parse.py"), ("assistant", "> Added parse.py to the chat"),
        ("user", "Make the parser\nfaster, please."),
        ("assistant", "Use a table:\n\n```python\n#### not a prompt\n> not aider\n```"),
        ("assistant", "> Tokens: 2.3k sent, 120 received. Cost: $0.01 message, $0.01 session.\n"
                      "> Applied edit to parse.py"),
    ),
    calls=("parse.py", "parse.py"), model="gpt-test", tokens=2420,
)  # fmt: skip


def _deepseek(seq: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "seq": seq, "time": MILLIS + seq * 1000, "data": data}


_DEEPSEEK = as_lines([
    {"type": "session", "version": 0, "id": "session-1", "createdAt": MILLIS, "cwd": CWD},
    _deepseek(1, "user/message", content=[{"type": "text", "text": "How large is the pool?"}],
              source={"kind": "user"}, role="user"),
    _deepseek(2, "user/message", content=[{"type": "text", "text": "The runtime context."}],
              source={"kind": "plugin"}, role="user"),
    _deepseek(3, "session/title", title="Pool size", source={"kind": "model"}),
    _deepseek(4, "assistant/chunk", chunk={"type": "text-delta", "text": "Let me"}),
    _deepseek(5, "assistant/message", message={"role": "assistant", "source": {"kind": "model", "model": "ds-test"},
              "content": [{"type": "reasoning", "text": "In the notes."}, {"type": "text", "text": "Let me look."}]}),
    _deepseek(6, "tool/call", callId="t1", name="read", arguments=json.dumps({"path": f"{CWD}/notes.txt"})),
    _deepseek(7, "tool/result", message={"content": [
        {"type": "tool-result", "toolCallId": "t1", "content": [{"type": "text", "text": "pool = 40"}]}]}),
    _deepseek(8, "assistant/message", message={"role": "assistant", "content": [{"type": "text", "text": "Forty."}]}),
])  # fmt: skip
_DEEPSEEK_SAID = (
    ("user", "How large is the pool?"), ("assistant", "Let me look."), ("assistant", ""), ("tool", "pool = 40"),
    ("assistant", "Forty."),
)  # fmt: skip
DEEPSEEK = AgentFile(
    agent="deepseek", path=".dsh/sessions/w/session-1/session.jsonl", content=_DEEPSEEK, id="deepseek:session-1",
    title="Pool size", said=_DEEPSEEK_SAID, calls=("notes.txt",), thought="In the notes.", model="ds-test",
)  # fmt: skip
_FRAMES = b"".join(zstandard.ZstdCompressor().compress(line) for line in _DEEPSEEK.splitlines(keepends=True))
DEEPSEEK_PACKED = AgentFile(
    agent="deepseek", path=".dsh/sessions/w/session-1/session.jsonl.zstd", content=_FRAMES, id="deepseek:session-1",
    title="Pool size", said=_DEEPSEEK_SAID, calls=("notes.txt",), thought="In the notes.", model="ds-test",
)  # fmt: skip
ANTIGRAVITY = AgentFile(
    agent="antigravity", path=".gemini/antigravity/brain/b1/.system_generated/logs/transcript.jsonl",
    id="antigravity:b1", title="Build it.",
    content=as_lines([
        {"source": "USER_EXPLICIT", "created_at": at(1), "content":
            f'<USER_REQUEST>\nBuild it.\n</USER_REQUEST>\n<ADDITIONAL_METADATA>{{"cwd":"{CWD}"}}'
            "</ADDITIONAL_METADATA>"},
        {"source": "SYSTEM", "created_at": at(1), "content": "A checkpoint."},
        {"source": "MODEL", "type": "VIEW_FILE", "created_at": at(2), "content":
            f"Created At: now\nFile Path: `file://{CWD}/build.sh`\nmake all"},
        {"source": "MODEL", "type": "PLANNER_RESPONSE", "created_at": at(3), "content": "It builds."},
    ]),
    said=(("user", "Build it."), ("assistant", ""),
          ("tool", f"Created At: now\nFile Path: `file://{CWD}/build.sh`\nmake all"), ("assistant", "It builds.")),
    calls=("build.sh",),
)  # fmt: skip
_ASKS = [{"type": "toolRequest", "id": "t1", "toolCall": {
    "status": "success", "value": {"name": "text_editor", "arguments": {"path": f"{CWD}/main.rs"}}}}]  # fmt: skip
_ANSWERS = [{"type": "toolResponse", "id": "t1", "toolResult": {
    "status": "success", "value": [{"type": "text", "text": "fn main() {}"}]}}]  # fmt: skip
_GOOSE_SAID = (
    ("user", "Say hello"), ("assistant", "Hello!"), ("assistant", ""), ("tool", "fn main() {}"),
)  # fmt: skip
_GOOSE_ROWS: tuple[tuple[str, list[dict[str, Any]], dict[str, Any]], ...] = (
    ("user", [{"type": "text", "text": "Say hello"}], {}),
    ("assistant", [{"type": "thinking", "thinking": "Easy."}, {"type": "text", "text": "Hello!"}], {}),
    ("assistant", _ASKS, {}),
    ("user", _ANSWERS, {}),
    ("user", [{"type": "text", "text": "They said hello."}], {"userVisible": False, "agentVisible": True}),
)
GOOSE = AgentFile(
    agent="goose", path=".local/share/goose/sessions/20260301_1.jsonl", id="goose:20260301_1", title="Greetings",
    content=as_lines([
        {"description": "Greetings", "id": "20260301_1", "working_dir": CWD, "created_at": at(0), "message_count": 2},
        *({"id": f"m{number}", "role": role, "created": MILLIS // 1000 + number, "content": content,
           "metadata": metadata} for number, (role, content, metadata) in enumerate(_GOOSE_ROWS)),
    ]),
    said=_GOOSE_SAID, calls=("main.rs",), thought="Easy.",
)  # fmt: skip
GOOSE_DATABASE = AgentFile(
    agent="goose", path=".local/share/goose/sessions/sessions.db", id="goose:20260301_2", title="Greetings",
    script=(
        "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, created_at, "
        "updated_at);"
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, "
        "content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);"
        f"INSERT INTO sessions VALUES ('20260301_2', 'n', 'Greetings', {_quoted(CWD)}, {_quoted(at(0))}, "
        f"{_quoted(at(9))});"
        + "".join(
            f"INSERT INTO messages VALUES ({number + 1}, 'm{number}', '20260301_2', '{role}', {_quoted(content)}, "
            f"{MILLIS // 1000 + number}, {_quoted(metadata)});"
            for number, (role, content, metadata) in enumerate(_GOOSE_ROWS)
        )
    ),
    said=_GOOSE_SAID, calls=("main.rs",), thought="Easy.",
)  # fmt: skip
HERMES = AgentFile(
    agent="hermes", path=".hermes/profiles/architect/state.db", id="hermes:H1", title="Does the retry back off?",
    script=(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, "
        "tool_calls TEXT, tool_name TEXT, timestamp REAL);"
        f"INSERT INTO messages VALUES (1, 'H1', 'user', 'Does the retry back off?', NULL, NULL, NULL, {MILLIS / 1000});"
        "INSERT INTO messages VALUES (2, 'H1', 'assistant', NULL, NULL, "
        + _quoted([{"id": "t1", "function": {"name": "read", "arguments": json.dumps({"path": f"{CWD}/retry.py"})}}])
        + f", NULL, {MILLIS / 1000 + 1});"
        f"INSERT INTO messages VALUES (3, 'H1', 'tool', 'sleep(0)', 't1', NULL, 'read', {MILLIS / 1000 + 2});"
        f"INSERT INTO messages VALUES (4, 'H1', 'assistant', 'It does not.', NULL, NULL, NULL, {MILLIS / 1000 + 3});"
    ),
    said=(("user", "Does the retry back off?"), ("assistant", ""), ("tool", "sleep(0)"), ("assistant", "It does not.")),
    calls=("retry.py",),
)  # fmt: skip
_THREAD = {
    "version": "0.3.0", "title": "Threads", "model": {"provider": "p", "model": "zed-test"},
    "request_token_usage": {"u1": {"input_tokens": 5, "output_tokens": 3}},
    "messages": [
        {"User": {"id": "u1", "content": [
            {"Text": "Where are the threads?"}, {"Mention": {"uri": "file", "content": "mod threads;"}}]}},
        {"Agent": {"content": [
            {"Thinking": {"text": "In a store."}}, {"Text": "Looking."},
            {"ToolUse": {"id": "t1", "name": "read_file", "input": {"path": f"{CWD}/threads.rs"}}}],
            "tool_results": {"t1": {"tool_name": "read_file", "is_error": False, "content": {"Text": "struct T;"}}}}},
        "Resume",
        {"Agent": {"content": [{"Text": "In threads.db."}], "tool_results": {}}},
    ],
}  # fmt: skip
_PACKED = zstandard.ZstdCompressor().compress(json.dumps(_THREAD).encode()).hex()
ZED = AgentFile(
    agent="zed", path=".local/share/zed/threads/threads.db", id="zed:z1", title="Threads",
    script=(
        "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB, "
        "folder_paths TEXT, created_at TEXT);"
        f"INSERT INTO threads VALUES ('z1', 'Threads', {_quoted(at(9))}, 'zstd', x'{_PACKED}', {_quoted(CWD)}, "
        f"{_quoted(at(0))});"
    ),
    said=(("user", "Where are the threads?\nmod threads;"), ("assistant", "Looking."), ("tool", "struct T;"),
          ("assistant", "In threads.db.")),
    calls=("threads.rs",), thought="In a store.", model="zed-test", tokens=8,
)  # fmt: skip
_TASK = [
    {"role": "user", "content": [
        {"type": "text", "text": "<task>\nFix the flaky test\n</task>"},
        {"type": "text", "text": "<environment_details>\n# VSCode Open Tabs\n</environment_details>"}]},
    {"role": "assistant", "content": [{"type": "text", "text":
        f"I read it.\n<read_file>\n<path>{CWD}/flaky.py</path>\n</read_file>"}]},
    {"role": "user", "content": [
        {"type": "text", "text": "[read_file for 'flaky.py'] Result:"}, {"type": "text", "text": "sleep(1)"},
        {"type": "text", "text": "<environment_details>\n# Tabs\n</environment_details>"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "It sleeps."}], "ts": MILLIS + 5000},
    {"role": "user", "content": [
        {"type": "text", "text": "[attempt_completion] Result:\n<feedback>\nThen mend it.\n</feedback>"}]},
]  # fmt: skip
_TASK_SAID = (
    ("user", "Fix the flaky test"),
    ("assistant", f"I read it.\n<read_file>\n<path>{CWD}/flaky.py</path>\n</read_file>"),
    ("tool", "[read_file for 'flaky.py'] Result:\nsleep(1)"), ("assistant", "It sleeps."),
    ("tool", "[attempt_completion] Result:\n<feedback>\nThen mend it.\n</feedback>"), ("user", "Then mend it."),
)  # fmt: skip
_STORAGE = ".config/Code/User/globalStorage"
CLINE_TASK = AgentFile(
    agent="cline", path=f"{_STORAGE}/saoudrizwan.claude-dev/tasks/{MILLIS}/api_conversation_history.json",
    beside={f"{_STORAGE}/saoudrizwan.claude-dev/state/taskHistory.json": [
        {"id": str(MILLIS), "ts": MILLIS, "cwdOnTaskInitialization": CWD}]},
    content=json.dumps(_TASK).encode(), id=f"cline:{MILLIS}", title="Fix the flaky test", said=_TASK_SAID,
    calls=("flaky.py",),
)  # fmt: skip
ROO = AgentFile(
    agent="roo", path=f"{_STORAGE}/rooveterinaryinc.roo-cline/tasks/{MILLIS}/api_conversation_history.json",
    beside={f"{_STORAGE}/rooveterinaryinc.roo-cline/tasks/{MILLIS}/history_item.json": {"workspace": CWD}},
    content=json.dumps([*_TASK, {"role": "assistant", "isSummary": True, "content": "They mended it."}]).encode(),
    id=f"roo:{MILLIS}", title="Fix the flaky test", said=_TASK_SAID, calls=("flaky.py",),
)  # fmt: skip
CLINE = AgentFile(
    agent="cline", path=".cline/data/sessions/c1/c1.messages.json", id="cline:c1", title="Hello there",
    beside={".cline/data/sessions/c1/c1.json": {"cwd": CWD, "created_at": at(0), "metadata": {"title": "Hello there"}}},
    content=json.dumps({"version": 1, "agent": "lead", "sessionId": "c1", "messages": [
        {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Say hello"}], "ts": MILLIS + 1000},
        {"id": "m2", "role": "assistant", "ts": MILLIS + 2000, "content": [
            {"type": "thinking", "text": "Politely."}, {"type": "text", "text": "Hello!"},
            {"type": "tool_use", "id": "t1", "name": "read_files", "input": {"path": f"{CWD}/a.ts"}}]},
        {"id": "m3", "role": "user", "ts": MILLIS + 3000, "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "export {}"}]},
    ]}).encode(),
    said=(("user", "Say hello"), ("assistant", "Hello!"), ("tool", "export {}")), calls=("a.ts",),
    thought="Politely.",
)  # fmt: skip
AGENT_FILES = (
    KIMI, GROK, AIDER, DEEPSEEK, DEEPSEEK_PACKED, ANTIGRAVITY, GOOSE, GOOSE_DATABASE, HERMES, ZED, CLINE_TASK, ROO,
    CLINE,
)  # fmt: skip
LINE_FILES = tuple(one for one in AGENT_FILES if one.content and one.path.endswith((".jsonl", ".md")))

"""The sessions of coding agents over HTTP: whether their files are there, what is gone from them, what they took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everthread import Everthread
from everthread.http.app import create_app
from everthread.imports.importer import Importer
from everthread.imports.watch import Watcher, agent_folders
from everthread.settings import Settings
from tests.http.conftest import client_of
from tests.imports.agent_files import claude_compacted, claude_file, claude_line, claude_subagent_file, codex_file
from tests.imports.test_importer import CHATGPT

OWNER = "local"


async def asked(et: Everthread, path: str, watcher: Watcher | None = None) -> dict[str, Any]:
    app = create_app(et, Settings(database="memory://"), needs_key=False, watcher=watcher)
    async with client_of(app) as client:
        answer = await client.get(f"/api/v1/agents/sessions{path}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def swept(et: Everthread, home: Path, watcher: Watcher | None = None) -> Watcher:
    watcher = watcher or Watcher(et, OWNER, agent_folders(home, {}))
    async for _ in watcher.sweep():
        pass
    return watcher


async def test_each_session_says_whose_it_is_and_where_its_file_is(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    claude_subagent_file(tmp_path)
    codex_file(tmp_path)
    await et.conversations.create(owner=OWNER, id="said-by-hand")
    watcher = await swept(et, tmp_path)
    found = await asked(et, "", watcher)
    assert found["following"] == {"problems": []}
    sessions = {one["conversation"]["id"]: one for one in found["items"]}
    assert sorted(one["agent"] for one in sessions.values()) == ["claude-code", "claude-code", "codex"]
    top = next(one for one in sessions.values() if one["path"] == str(path))
    assert (top["is_on_disk"], top["changed_at"] is not None) == (True, True)
    assert [one["conversation"]["parent_id"] for one in sessions.values()].count(top["conversation"]["id"]) == 1


async def test_a_session_whose_file_was_deleted_says_so(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path)
    watcher = await swept(et, tmp_path)
    path.unlink()
    await swept(et, tmp_path, watcher)
    (session,) = (await asked(et, ""))["items"]
    assert session["is_on_disk"] is False


async def test_a_server_that_follows_no_files_says_so(et: Everthread, tmp_path: Path) -> None:
    claude_file(tmp_path)
    await swept(et, tmp_path)
    assert (await asked(et, ""))["following"] is None


async def test_a_session_counts_what_left_its_file_and_what_its_models_took(et: Everthread, tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7}
    said = [{"type": "text", "text": "Gladly."}]
    spent = [
        claude_line("a9", "a7", "assistant", said, 30),
        claude_line("a10", "a9", "assistant", said, 31),
    ]
    for number, line in enumerate(spent):
        line["message"] |= {"id": f"msg-{number}", "model": "claude-test", "usage": usage}
    lines = [*claude_compacted(), *spent]
    path = claude_file(tmp_path, lines)
    watcher = await swept(et, tmp_path)
    (session,) = (await asked(et, ""))["items"]
    whole = await asked(et, f"/{session['conversation']['id']}")
    assert whole["not_on_disk"] == 0
    assert whole["summaries"] == 1
    parts = ("answers", "input_tokens", "cache_read_tokens", "output_tokens")
    taken = {one["model"]: tuple(one[part] for part in parts) for one in whole["models"]}
    assert taken == {"claude-test-1": (7, 21, 0, 28), "claude-test": (2, 20, 10, 14)}
    assert [one["cost"] for one in whole["models"]] == [None, None]
    claude_file(tmp_path, lines[:-1])
    await swept(et, tmp_path, watcher)
    assert path.exists()
    cut = await asked(et, f"/{session['conversation']['id']}")
    assert (cut["messages"], cut["not_on_disk"]) == (whole["messages"], 1)
    claude_file(tmp_path, lines[:1])
    await swept(et, tmp_path, watcher)
    lost = await asked(et, f"/{session['conversation']['id']}")
    assert lost["not_on_disk"] == watcher.counts.removed == whole["messages"] + whole["summaries"]


async def test_what_a_chat_service_exported_is_no_session_of_an_agent(et: Everthread, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([CHATGPT]))
    await Importer(et, OWNER).import_path(tmp_path / "conversations.json")
    (conversation,) = (await et.conversations.list(OWNER)).items
    assert conversation.id.startswith("chatgpt:")
    assert (await asked(et, ""))["items"] == []
    claude_file(tmp_path)
    await swept(et, tmp_path)
    (session,) = (await asked(et, ""))["items"]
    copied = await (await et.conversations.get(session["conversation"]["id"], OWNER)).copy()
    assert [one["conversation"]["id"] for one in (await asked(et, ""))["items"]] == [session["conversation"]["id"]]
    assert copied.metadata["agent"] == "claude-code"


async def test_a_conversation_that_is_no_session_has_no_totals(et: Everthread) -> None:
    conversation = await et.conversations.create(owner=OWNER)
    app = create_app(et, Settings(database="memory://"), needs_key=False)
    async with client_of(app) as client:
        answer = await client.get(f"/api/v1/agents/sessions/{conversation.id}")
    assert answer.status_code == 404

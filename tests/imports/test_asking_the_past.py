"""What an agent is told over MCP about its own past, and about which sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from everthread import Everthread
from everthread.imports.importer import Importer
from everthread.mcp.server import History
from tests.imports.agent_files import CWD, SESSION, as_lines, claude_line

ID = f"claude-code:{SESSION}"


def history(et: Everthread, project: str | None = CWD) -> History:
    return History(et, "local", project)


def written(path: Path, lines: Iterable[Mapping[str, object]]) -> Path:
    path.write_bytes(as_lines(lines))
    return path


async def imported(et: Everthread, path: Path) -> None:
    await Importer(et, "local").import_path(path)


def session(number: int, *texts: str, cwd: str = CWD) -> list[dict[str, object]]:
    """A session of its own, one prompt after the other."""
    id = SESSION.replace("1111", f"{number:04}")
    names = [None, *(f"p{number}.{place}" for place in range(len(texts)))]
    return [
        claude_line(str(name), before, "user", text, place, cwd=cwd, sessionId=id)
        for place, (before, name, text) in enumerate(zip(names, names[1:], texts, strict=False))
    ]


async def test_what_a_loud_project_says_hides_nothing_of_ours(et: Everthread, tmp_path: Path) -> None:
    ours = session(1, "The cookie is named zebra.", "An unrelated prompt.")
    await imported(et, written(tmp_path / "ours.jsonl", ours))
    loud = session(2, *(f"cookie zebra number {number}" for number in range(700)), cwd="/srv/eve/other")
    await imported(et, written(tmp_path / "loud.jsonl", loud))
    for answer in (
        await history(et).search("zebra cookie", limit=3),
        await history(et).recall("Which cookie is named zebra?", limit=3),
    ):
        assert "The cookie is named zebra." in answer
        assert "number" not in answer


@pytest.mark.parametrize("told_by", ["hash", "file", "list"])
async def test_a_session_of_gemini_cli_belongs_to_its_project(et: Everthread, tmp_path: Path, told_by: str) -> None:
    project = sha256(CWD.encode()).hexdigest() if told_by == "hash" else "shop"
    chats = tmp_path / ".gemini" / "tmp" / project / "chats"
    chats.mkdir(parents=True)
    if told_by == "file":
        (chats.parent / ".project_root").write_text(f"{CWD}\n")
    elif told_by == "list":
        (tmp_path / ".gemini" / "projects.json").write_text(json.dumps({"projects": {"/x": "other", CWD: "shop"}}))
    said = {"id": "m1", "type": "user", "timestamp": "2026-03-01T10:00:00Z", "content": "The cookie is named zebra."}
    (chats / "session-1.json").write_text(json.dumps({"sessionId": "g1", "projectHash": project, "messages": [said]}))
    await imported(et, chats / "session-1.json")
    assert "gemini-cli:g1" in await history(et).search("zebra")
    assert "gemini-cli:g1" in await history(et).sessions()
    assert "gemini-cli:g1" not in await history(et, "/srv/eve/other").search("zebra")

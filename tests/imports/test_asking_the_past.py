"""What an agent is told over MCP about its own past, and about which sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest
from mcp.server.fastmcp import FastMCP

from everthread import Everthread
from everthread.imports.importer import Importer
from everthread.mcp.server import History, mcp_server
from tests.imports.agent_files import CWD, SESSION, as_lines, at, claude_line, claude_session

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
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


async def test_many_older_sessions_that_come_later_hide_none_of_today(et: Everthread, tmp_path: Path) -> None:
    today = [{**line, "timestamp": "2026-05-01T10:00:00Z"} for line in session(1, "The zebra of today.")]
    await imported(et, written(tmp_path / "today.jsonl", today))
    older = tmp_path / "older"
    older.mkdir()
    for number in range(2, 210):
        written(older / f"{number}.jsonl", session(number, "The zebra of before."))
    await imported(et, older)
    (listed,) = (await history(et).sessions(limit=1)).splitlines()
    assert "2026-05-01" in listed
    assert "The zebra of today." in listed
    assert "The zebra of today." in (await history(et).search("zebra", limit=1))


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


def tools(et: Everthread, *, may_show_secrets: bool) -> FastMCP:
    return mcp_server(lambda _: history(et), may_show_secrets=may_show_secrets)


async def answer(server: FastMCP, tool: str, **arguments: object) -> str:
    return str(await server.call_tool(tool, arguments))


async def test_only_who_starts_the_server_lets_a_model_ask_for_secrets(et: Everthread, tmp_path: Path) -> None:
    await imported(et, written(tmp_path / "a.jsonl", session(1, f"The zebra has {TOKEN} as its token.")))
    id = f"claude-code:{SESSION.replace('1111', '0001')}"
    for is_allowed in (False, True):
        server = tools(et, may_show_secrets=is_allowed)
        arguments = [one for tool in await server.list_tools() for one in tool.inputSchema["properties"]]
        assert ("show_secrets" in arguments) is is_allowed
        for told in (
            await answer(server, "search_history", query="zebra", show_secrets=True),
            await answer(server, "read_messages", session=id, show_secrets=True),
        ):
            assert "zebra" in told
            assert (TOKEN in told) is is_allowed


async def test_what_is_found_says_who_said_it_when_and_whether_it_is_a_weak_match(
    et: Everthread, tmp_path: Path
) -> None:
    said = [{**line, "timestamp": "2026-05-01T10:00:00Z"} for line in session(1, "The cookie is named zebra.")]
    await imported(et, written(tmp_path / "a.jsonl", said))
    strong = (await history(et).search("zebra cookie")).splitlines()[0]
    assert "user 2026-05-01 10:00 UTC: " in strong
    (weak, _) = (await history(et).recall("Which harbour, lighthouse, mountain and river has a zebra?")).splitlines()
    assert "user 2026-05-01 10:00 UTC (weak match): " in weak


async def test_no_credential_is_remembered(et: Everthread) -> None:
    assert "Not remembered" in await history(et).remember(f"The user's token is {TOKEN}")
    for told in (
        "the admin login is root / Passw0rd!",
        "my password is correct-horse-9",
        "curl -u admin:S3cretPw x.org",
    ):
        assert "Not remembered" in await history(et).remember(told)
    assert not await et.memories.search("local", "token admin password", limit=5)
    assert "Remembered" in await history(et).remember("The user prefers tabs.")


async def test_a_message_that_the_session_rewound_is_read_where_it_stands(et: Everthread, tmp_path: Path) -> None:
    lines = [
        *claude_session(),
        claude_line("u9", "a4", "user", "Explain the zebra.", 30, cwd=CWD),
        claude_line("a9", "u9", "assistant", "So.", 31),
    ]
    await imported(et, written(tmp_path / f"{SESSION}.jsonl", lines))
    told = await history(et).read(ID, first_seq=9)
    assert "[9] assistant" in told
    assert "branch that the session left" in told
    assert "[12] user" in await history(et).read(ID, first_seq=12)
    assert "branch" not in await history(et).read(ID, first_seq=12)


async def test_clients_are_told_our_version(et: Everthread) -> None:
    server = tools(et, may_show_secrets=False)
    assert server._mcp_server.create_initialization_options().server_version == version("everthread")


async def test_sessions_are_listed_by_their_last_messages(et: Everthread, tmp_path: Path) -> None:
    for number in (3, 1, 2):
        lines = session(number, "Name the zebra.")
        lines[0]["timestamp"] = at(number)
        await imported(et, written(tmp_path / f"{number}.jsonl", lines))
    listed = (await history(et).sessions()).splitlines()
    ids = [f"claude-code:{SESSION.replace('1111', f'{number:04}')}" for number in (3, 2, 1)]
    assert [line.split()[0] for line in listed] == ids
    assert (await history(et).sessions(limit=1)).split()[0] == ids[0]


async def test_files_are_read_in_the_order_they_were_last_written_to(et: Everthread, tmp_path: Path) -> None:
    for number, name in ((1, "b"), (2, "a"), (3, "c")):
        path = written(tmp_path / f"{name}.jsonl", session(number, "Name the zebra."))
        os.utime(path, (number, number))
    counts = await Importer(et, "local").import_path(tmp_path)
    assert counts.imported == [f"claude-code:{SESSION.replace('1111', f'{number:04}')}" for number in (1, 2, 3)]


async def test_a_session_is_read_by_the_beginning_of_its_id_within_its_project(et: Everthread, tmp_path: Path) -> None:
    await imported(et, written(tmp_path / "ours.jsonl", session(1, "A zebra.")))
    await imported(et, written(tmp_path / "theirs.jsonl", session(2, "A horse.", cwd="/srv/eve/other")))
    assert "A zebra." in await history(et).read("000")
    assert "begins 2 ids" in await history(et).read("000", everywhere=True)
    assert "no conversation" in await history(et).read("9999")

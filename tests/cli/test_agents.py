"""`import`, `watch`, `resume`, `blame` and `mcp`: the histories of coding agents, from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import sqlite3
import time
import zipfile
from contextlib import closing
from pathlib import Path
from signal import SIGKILL, SIGTERM

import httpx
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from everthread.cli.errors import ExitCode
from everthread.http.page import FOLDER as PAGE
from everthread.imports.claude_code import OUTPUTS, ClaudeCodeReader
from everthread.imports.codex import CodexReader
from tests.cli.conftest import Quick
from tests.cli.shell import PATIENCE_SECONDS, PROGRAM, Fork, Shell
from tests.imports import test_large_outputs as large_outputs
from tests.imports.agent_files import (
    CWD,
    SESSION,
    as_lines,
    claude_answer,
    claude_compacted,
    claude_file,
    claude_line,
    claude_session,
    claude_subagent_file,
    codex_event,
    codex_file,
    codex_item,
    named,
    tool_use,
)

ID = f"claude-code:{SESSION}"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def home(shell: Shell) -> Path:
    """A home with sessions of two agents."""
    claude_file(shell.home, claude_compacted())
    claude_subagent_file(shell.home)
    codex_file(shell.home)
    return shell.home


def test_one_command_finds_everything_and_a_second_adds_nothing(quick: Quick, home: Path) -> None:
    first = quick("watch", "--once")
    assert first.code == 0
    assert "claude-code" in first.out
    assert "22 new messages in 3 new conversations" in first.out
    again = quick("watch", "--once", "--json").json
    assert (again["messages"], again["files"]) == (0, 0)
    assert "cookie" in quick("search", "cookie").out
    assert quick("verify").code == 0


def test_a_chat_goes_on_in_a_copy_of_a_session_and_never_in_the_session(quick: Quick, home: Path) -> None:
    chat = {"EVERTHREAD_MODEL": "scripted:echo"}
    quick("watch", "--once")
    none = quick("chat", "-c", "hi", env=chat)
    assert none.code == ExitCode.NOT_FOUND
    assert "imported" in none.err
    own = quick("chat", "--json", "hi", env=chat).lines[0]["conversation_id"]
    with claude_file(home, claude_compacted()).open("ab") as file:
        file.write(as_lines([claude_line("new", "a6", "user", "Said last, in the agent.", 60)]))
    quick("watch", "--once")
    assert quick("chat", "-c", "--json", "more", env=chat).lines[0]["conversation_id"] == own
    refused = quick("chat", "--conversation", SESSION, "and here?", env=chat)
    assert refused.code == ExitCode.CONFLICT
    assert f"everthread copy {ID}" in refused.err
    assert f"everthread resume {ID}" in refused.err
    assert "and here?" not in quick("show", SESSION).out
    copied = quick("copy", SESSION, "--json").json["id"]
    assert quick("chat", "--conversation", copied, "and here?", env=chat).code == 0
    assert "and here?" in quick("show", copied).out
    assert quick("verify").code == 0


def test_agents_that_are_not_there_are_no_error(quick: Quick) -> None:
    ran = quick("watch", "--once")
    assert (ran.code, ran.err) == (0, "")
    assert "no sessions" in ran.out


def test_a_folder_can_be_named_and_what_is_broken_is_told(quick: Quick, home: Path) -> None:
    path = claude_file(home)
    path.write_bytes(path.read_bytes() + b"{broken\n")
    ran = quick("import", str(home / ".claude"))
    assert ran.code == 0
    assert "13 new messages" in ran.out
    assert f"{path}:15:" in ran.err
    assert quick("import", str(home / "absent")).code == ExitCode.USAGE
    (home / "torn.json").write_bytes(b"[\xff nothing")
    torn = quick("import", str(home / "torn.json"))
    assert torn.code == ExitCode.USAGE
    assert "nothing in" in torn.err


def test_what_is_written_while_it_watches_is_found_at_once(fork: Fork, quick: Quick, home: Path) -> None:
    path = claude_file(home)
    with fork("watch", "--no-page", "--json") as watching:
        watching.stdout.readline()  # what there was
        with path.open("ab") as file:
            file.write(as_lines([claude_line("new", "a6", "user", "Something unheard of.", 60)]))
        change = json.loads(watching.stdout.readline())
        assert (change["agent"], change["messages"]) == ("claude-code", 1)
        assert "unheard" in quick("search", "unheard").out
        with path.open("ab") as file:
            file.write(b"\x00\xff no JSON\n")
        assert f"{path}:16: is not text" in json.loads(watching.stdout.readline())["not_read"]
        path.unlink()
        assert json.loads(watching.stdout.readline())["is_gone"] is True
        for number in range(5):  # nothing is told of what was in a new folder before it was listened to
            (home / "made").mkdir()
            made = home / "made" / f"{number}.jsonl"
            made.write_bytes(as_lines([claude_line("u1", None, "user", "Hello.", 1, sessionId=f"new-{number}")]))
            (home / "made").rename(path.parent.parent / f"new-{number}")
            assert json.loads(watching.stdout.readline())["path"].endswith(f"new-{number}/{number}.jsonl")
        watching.send_signal(SIGTERM)
        assert watching.wait() == 0
    assert "unheard" in quick("search", "unheard").out


def _lines_kept(database: str) -> int:
    """How far another process has come with what it imports."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM import_lines").fetchone()[0])
    except sqlite3.OperationalError:  # there is no database yet, or no table
        return 0


@pytest.mark.parametrize("lines", [1, 100])
def test_a_killed_watcher_loses_and_doubles_nothing(shell: Shell, fork: Fork, quick: Quick, lines: int) -> None:
    database = (shell.database or "").removeprefix("sqlite:///")
    for number in range(20):
        session = SESSION.replace("1111", f"{number:04}")
        path = shell.home / ".claude" / "projects" / "p" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_lines(claude_session()))
    with fork("watch", "--no-page") as watching:
        while _lines_kept(database) < lines:
            time.sleep(0.002)
        watching.send_signal(SIGKILL)
        assert watching.wait() == -SIGKILL
    assert quick("watch", "--once").code == 0
    assert quick("verify", "--json").json["messages"] == 20 * 11
    assert quick("watch", "--once", "--json").json["messages"] == 0
    with closing(sqlite3.connect(database)) as connection:
        kept = connection.execute("SELECT line FROM import_lines ORDER BY source, first_byte").fetchall()
    assert b"".join(row[0] for row in kept) == as_lines(claude_session()) * 20


def test_a_session_that_was_deleted_comes_back_byte_for_byte(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    for path, session in ((claude_file(home, claude_compacted()), SESSION), (codex_file(home), "codex-1")):
        before = path.read_bytes()
        assert "is there already" in quick("resume", session).out
        path.unlink()
        ran = quick("resume", session)
        assert ran.code == 0
        assert path.read_bytes() == before
        path.write_bytes(before + b"\n")
        assert quick("resume", session).code == ExitCode.CONFLICT
        assert path.read_bytes() == before + b"\n"


@pytest.mark.parametrize("kept_bytes", [0, 2000])
@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_session_whose_file_was_cut_comes_back_whole(
    quick: Quick, home: Path, kept_bytes: int, is_deleted: bool
) -> None:
    quick("watch", "--once")
    for path, session in ((claude_file(home, claude_compacted()), SESSION), (codex_file(home), "codex-1")):
        before = path.read_bytes()
        path.write_bytes(before[:kept_bytes])
        quick("watch", "--once")
        if is_deleted:
            path.unlink()
        ran = quick("resume", session)
        assert (ran.code, "the file on disk had lost" in ran.err) == (0, len(before) > kept_bytes)
        assert "already" not in ran.out or len(before) <= kept_bytes
        made = quick("resume", session, "--json").json
        if is_deleted:
            assert Path(made["path"]) == path
        elif len(before) > kept_bytes:
            assert Path(made["path"]) != path
            assert path.read_bytes() == before[:kept_bytes]
        assert Path(made["path"]).read_bytes().replace(made["session_id"].encode(), session.encode()) == before
    assert quick("verify").code == 0


def test_messages_that_were_cut_out_stand_where_they_stood(quick: Quick, home: Path) -> None:
    path = claude_file(home)
    quick("watch", "--once")
    lines = path.read_bytes().splitlines(keepends=True)
    new = as_lines([claude_line("u9", "a6", "user", "And now?", 40)])
    path.write_bytes(b"".join([*lines[:4], *lines[7:], new]))
    quick("watch", "--once")
    path.unlink()
    made = quick("resume", SESSION, "--json").json
    assert made["restored"] == 3
    assert path.read_bytes() == b"".join([*lines, new])


@pytest.mark.parametrize("arguments", [("--as", "codex"), ("--before-compaction", "1")])
def test_a_session_that_was_resumed_and_continued_comes_back_as_it_was(
    quick: Quick, home: Path, arguments: tuple[str, ...]
) -> None:
    quick("watch", "--once")
    made = quick("resume", SESSION, *arguments, "--json").json
    path = Path(made["path"])
    quick("watch", "--once")
    new = [codex_event(89, type="token_count"), codex_item(90, type="message", role="user", content="And a zebra?")]
    more = [codex_item(91, type="message", role="assistant", content="Striped.")]
    if made["agent"] != "codex":
        new = [{"type": "mode"}, claude_line("new", "a6", "user", "And a zebra?", 90)]
        more = [claude_line("more", "new", "assistant", "Striped.", 91)]
    for lines in (new[:1], new[1:], more):
        with path.open("ab") as file:
            file.write(as_lines(lines))
        quick("watch", "--once")
    before = path.read_bytes()
    path.unlink()
    ran = quick("resume", made["session_id"])
    assert (ran.code, ran.err) == (0, "")
    assert path.read_bytes() == before
    listed = quick("show", f"{made['agent']}:{made['session_id']}", "--json").lines
    assert [one["text"] for one in listed] == ["And a zebra?", "Striped."]
    assert quick("verify").code == 0


def test_what_is_no_json_is_in_no_file_that_is_made(quick: Quick, home: Path) -> None:
    path = claude_file(home)
    good = path.read_bytes()
    first, rest = good.split(b"\n", 1)
    path.write_bytes(first + b"\n\x00\xff\x1b[2J\n\x00\x00" + rest + b"\x89PNG\n\x1a\n")
    damaged = path.read_bytes()
    quick("watch", "--once")
    made = quick("resume", SESSION, "--json").json
    assert Path(made["path"]) != path
    assert path.read_bytes() == damaged
    assert Path(made["path"]).read_bytes().replace(made["session_id"].encode(), SESSION.encode()) == good
    ran = quick("resume", SESSION, "--at", named("a6"), "--output", "-")
    assert [json.loads(line)["type"] for line in ran.out.splitlines()]
    assert "4 lines of the file could not be read" in ran.err
    path.unlink()
    assert quick("resume", SESSION).code == 0
    assert path.read_bytes() == good


def test_a_session_is_resumed_from_before_its_compaction(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    made = quick("resume", SESSION, "--before-compaction", "1", "--json").json
    assert made["session_id"] != SESSION
    content = Path(made["path"]).read_bytes()
    assert content.replace(made["session_id"].encode(), SESSION.encode()) == as_lines(claude_session())
    assert quick("resume", SESSION, "--before-compaction", "2").code == ExitCode.NOT_FOUND


def test_a_session_is_resumed_at_a_message(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    ran = quick("resume", SESSION, "--at", named("u2"), "--output", "-")
    last = json.loads(ran.out.splitlines()[-1])
    assert last["message"]["content"] == "Then fix it."
    assert quick("resume", SESSION, "--at", "1", "--before-compaction", "1").code == ExitCode.USAGE


def test_a_session_goes_from_one_agent_to_the_other(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    made = quick("resume", SESSION, "--as", "codex", "--json").json
    codex = CodexReader(Path(made["path"]))
    said = [one for line in Path(made["path"]).read_bytes().splitlines() for one in codex.read(line)]
    texts = [one.payload["content"][0]["text"] for one in said if one.payload["role"] == "user"]
    assert texts == ["Why does the login test fail?", "Then fix it.", "What was it about?"]
    assert sum(bool(one.payload.get("tool_calls")) for one in said) == 3
    made = quick("resume", "codex-1", "--as", "claude", "--json").json
    claude = ClaudeCodeReader(Path(made["path"]))
    said = [one for line in Path(made["path"]).read_bytes().splitlines() for one in claude.read(line)]
    assert [one.payload["role"] for one in said][-4:] == ["user", "assistant", "tool", "assistant"]
    assert made["command"].endswith(f"claude --resume {made['session_id']}")


def test_show_names_the_branches_that_it_does_not_show(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    assert "branch" not in quick("show", ID).err
    claude_file(home, [*claude_session(), claude_line("u9", "a4", "user", "Explain.", 30)])
    quick("watch", "--once")
    ran = quick("show", ID)
    assert "Then fix it." not in ran.out
    assert "main (to seq 14)" in ran.err
    assert "Then fix it." in quick("show", ID, "--branch", "main").out


def test_blame_tells_which_sessions_touched_a_file_newest_first(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    found = quick("blame", "login.py", "--json").lines
    assert [(one["tool"], one["seq"]) for one in found] == [("Edit", 9), ("Read", 3)]
    assert found[0]["argument"] == f"{CWD}/login.py"
    assert quick("blame", "nothing.py", "--json").lines == []
    without = quick("blame", "nothing.py")
    assert (without.code, without.out) == (0, "")
    assert "everthread search nothing.py" in without.err


def test_blame_finds_a_path_however_it_is_given_and_no_other_file(quick: Quick, home: Path) -> None:
    uses = [
        tool_use("t1", "Read", file_path=f"{CWD}/src/cart.py"),
        tool_use("t2", "Read", file_path=f"{CWD}/src/t.py"),
        tool_use("t3", "Bash", command="pytest src/t.py::test_one && wc t.py.orig x-t.py"),
    ]
    claude_file(home, [
        claude_line("u1", None, "user", "Read them.", 1),
        *(claude_line(f"a{number}", "u1", "assistant", [use], number) for number, use in enumerate(uses, start=2)),
    ])  # fmt: skip
    quick("watch", "--once")
    for name in ("t.py", "./src/t.py", "src/../src/t.py", f"{CWD}/src/t.py"):
        found = [one["argument"] for one in quick("blame", name, "--json").lines]
        assert f"{CWD}/src/t.py" in found, name
        assert f"{CWD}/src/cart.py" not in found, name
    assert [one["tool"] for one in quick("blame", "t.py", "--json").lines] == ["Bash", "Read"]
    assert [one["tool"] for one in quick("blame", "test_one", "--json").lines] == ["Bash"]
    assert [one["argument"] for one in quick("blame", "cart", "--json").lines] == [f"{CWD}/src/cart.py"]
    assert quick("blame", "car", "--json").lines == []


def test_secrets_are_masked_in_what_is_found_unless_asked(quick: Quick, home: Path) -> None:
    claude_file(home, [claude_line("u1", None, "user", f"the deploy token is {TOKEN} so use it", 1)])
    quick("watch", "--once")
    masked = quick("search", "deploy token")
    assert "deploy" in masked.out
    assert TOKEN not in masked.out
    assert "redacted" in masked.out
    assert TOKEN in quick("search", "deploy token", "--show-secrets").out


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_secrets_are_masked_in_what_is_recalled_and_around_it_unless_asked(
    quick: Quick, shell: Shell, form: tuple[str, ...]
) -> None:
    claude_file(shell.home, [
        claude_line("u1", None, "user", "who opened the harbour gate today?", 1),
        claude_line("u2", "u1", "user", f"the deploy token is {TOKEN} so use it", 2),
    ])  # fmt: skip
    quick("watch", "--once")
    (id,) = (one["id"] for one in quick("ls", "--json").lines)
    for question in ("deploy token", "harbour gate"):  # the second has the token in the message after it
        asked = ("recall", id, question, "--around", "1", *form)
        masked = quick(*asked).out
        assert "deploy" in masked
        assert "redacted" in masked
        assert TOKEN not in masked
        assert TOKEN in quick(*asked, "--show-secrets").out


def test_install_writes_a_unit_that_starts_the_same_watch(
    quick: Quick, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    ran = quick("watch", "--install")
    unit = shell.home / ".config" / "systemd" / "user" / "everthread-watch.service"
    assert f'"watch" "--database" "{shell.database}"' in unit.read_text()
    assert "systemctl --user" in ran.out
    assert quick("watch", "--install").code == 0
    unit.write_text("mine")
    assert quick("watch", "--install").code == ExitCode.CONFLICT


async def _ask(shell: Shell, project: str, *calls: tuple[str, dict[str, object]]) -> list[str]:
    """What the MCP server answers to an agent in this folder."""
    server = StdioServerParameters(
        command=str(PROGRAM), args=["mcp", "--project", project], env=shell.environment(), cwd=shell.folder
    )
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        answers = [(await client.call_tool(tool, arguments)).content[0] for tool, arguments in calls]
        return [answer.text for answer in answers if isinstance(answer, TextContent)]


def test_no_title_has_a_credential_or_the_beginning_of_one(shell: Shell, quick: Quick, home: Path) -> None:
    first = f"the deploy token, of which only the beginning has room in a title, is {TOKEN}"
    claude_file(home, [claude_line("u1", None, "user", first, 1)])
    quick("watch", "--once")
    listed = quick("ls", "--json").out
    assert "of which only the beginning" in listed
    assert TOKEN[:4] not in listed
    told = asyncio.run(_ask(
        shell, CWD, ("search_history", {"query": "deploy"}), ("read_messages", {"session": ID}), ("list_sessions", {}),
    ))  # fmt: skip
    assert ID in told[0]
    assert TOKEN[:4] not in "".join(told)


def test_an_mcp_client_asks_the_past_of_its_project_only(shell: Shell, quick: Quick, home: Path) -> None:
    claude_file(home, [*claude_session(), claude_line("t", "a6", "user", f"cookie token {TOKEN}", 60)])
    quick("watch", "--once")
    found, read, remembered, recalled = asyncio.run(_ask(
        shell, CWD, ("search_history", {"query": "cookie"}), ("read_messages", {"session": ID, "limit": 50}),
        ("remember", {"text": "Ada prefers tabs."}), ("recall", {"question": "What does Ada prefer?"}),
    ))  # fmt: skip
    assert ID in found
    assert "Why does the login test fail?" in read
    assert TOKEN not in found + read
    assert "Remembered" in remembered
    assert "Ada prefers tabs." in recalled
    found, everywhere, read = asyncio.run(_ask(
        shell, "/srv/bob", ("search_history", {"query": "cookie"}),
        ("search_history", {"query": "cookie", "everywhere": True}),
        ("read_messages", {"session": ID}),
    ))  # fmt: skip
    assert ID not in found
    assert ID in everywhere
    assert "another project" in read


def test_the_service_answers_mcp_clients_for_the_owner_of_the_key(fork: Fork, quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    keys = {owner: quick("key", "create", "--owner", owner).out.strip() for owner in ("local", "eve")}
    with fork("serve", "--port", "0", "--json") as server:
        address = json.loads(server.stdout.readline())["listening"]

        async def ask(key: str, query: str = "") -> str:
            headers = {"Authorization": f"Bearer {key}"}
            async with (
                httpx.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http,
                streamable_http_client(f"{address}/mcp{query}", http_client=http) as (reads, writes, _),
                ClientSession(reads, writes) as client,
            ):
                await client.initialize()
                names = {tool.name for tool in (await client.list_tools()).tools}
                assert names == {"search_history", "recall", "read_messages", "list_sessions", "remember"}
                (answer,) = (await client.call_tool("search_history", {"query": "cookie"})).content
                return answer.text if isinstance(answer, TextContent) else ""

        assert ID in asyncio.run(ask(keys["local"]))
        assert ID in asyncio.run(ask(keys["local"], f"?project={CWD}"))
        assert ID not in asyncio.run(ask(keys["local"], "?project=/srv/bob"))
        assert ID not in asyncio.run(ask(keys["eve"]))
        assert httpx.post(f"{address}/mcp", headers={"Authorization": "Bearer wrong"}, json={}).status_code == 401


def test_every_line_of_a_watch_for_programs_is_json(fork: Fork, home: Path) -> None:
    with fork("watch", "--port", "0", "--json") as watching:
        first, second = (json.loads(watching.stdout.readline()) for _ in range(2))
        assert first["page"].startswith("http://127.0.0.1:")
        assert first["is_built"] is (PAGE / "index.html").is_file()
        assert second["messages"] > 0


def test_what_cannot_be_imported_is_said_so_and_not_waited_for(fork: Fork, quick: Quick, home: Path) -> None:
    pipe = home / "pipe.jsonl"
    os.mkfifo(pipe)
    with fork("import", str(pipe)) as importing:
        ran = importing.rest()
    assert ran.code == ExitCode.USAGE
    assert "is a pipe or a device" in ran.err
    (home / "notes.txt").write_text("Nothing of interest.")
    ran = quick("import", str(home / "notes.txt"))
    assert ran.code == ExitCode.USAGE
    assert "no importable file found in" in ran.err


def test_a_second_import_of_what_is_read_and_what_is_not_is_no_failure(quick: Quick, home: Path) -> None:
    folder = home / ".claude"
    (folder / "todos.json").write_text('[{"content": "Not said by anybody.", "status": "done"}]')
    assert quick("import", str(folder)).code == 0
    again = quick("import", str(folder))
    assert (again.code, "2 unchanged" in again.out, "todos.json" in again.err) == (0, True, True)


def test_the_damage_of_one_file_hides_no_other(quick: Quick, home: Path) -> None:
    folder = home / "files"
    folder.mkdir()
    good = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}) + "\n"
    (folder / "a.jsonl").write_text(good + "{broken\n" * 40)
    (folder / "b.jsonl").write_text(good.replace("Hi", "Ho") + "{broken\n")
    ran = quick("import", str(folder))
    assert "b.jsonl: entry 2" in ran.err
    assert "… and 35 more" in ran.err


def test_what_was_unpacked_is_named_by_its_place_in_the_zip(quick: Quick, home: Path) -> None:
    inner = home / "inner.zip"
    with zipfile.ZipFile(inner, "w") as packed:
        packed.writestr("x.jsonl", "{}")
    with zipfile.ZipFile(home / "outer.zip", "w") as packed:
        packed.write(inner, "deep/inner.zip")
        packed.writestr("folder/torn.json", '[{"messages": [')
    ran = quick("import", str(home / "outer.zip"))
    assert "outer.zip: folder/torn.json" in ran.err
    assert "outer.zip: deep/inner.zip: is a zip in a zip" in ran.err
    assert "everthread-import-" not in ran.err


def test_one_thing_is_not_counted_in_the_plural(quick: Quick, home: Path) -> None:
    path = home / "one.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}]}))
    assert (
        "1 new message in 1 new conversation; 0 messages were here already (1 file read)"
        in quick("import", str(path)).out
    )


def test_the_page_is_served_while_it_watches(fork: Fork, home: Path) -> None:
    with fork("watch", "--port", "0") as watching:
        address = watching.stdout.readline().decode().removeprefix("the page: ").strip()
        listed: list[dict[str, object]] = []
        for _ in range(PATIENCE_SECONDS * 10):
            listed = httpx.get(f"{address}/api/v1/conversations", timeout=PATIENCE_SECONDS).json()["items"]
            if len(listed) == 3:
                break
            time.sleep(0.1)
        assert ID in {one["id"] for one in listed}
        assert "everthread" in httpx.get(address, timeout=PATIENCE_SECONDS).text
        watching.send_signal(SIGTERM)
        assert watching.wait() == 0


def test_a_port_in_use_keeps_nobody_from_watching(fork: Fork, quick: Quick, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with fork("watch", "--port", str(port)) as watching:
            assert f"127.0.0.1:{port}" in watching.stderr.readline().decode()
            while "cookie" not in quick("search", "cookie").out:
                time.sleep(0.05)
            watching.send_signal(SIGTERM)
            assert watching.wait() == 0


def test_a_session_that_was_resumed_from_a_point_gives_only_what_follows(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    for arguments in (("--before-compaction", "1"), ("--as", "codex")):
        made = quick("resume", SESSION, *arguments, "--json").json
        assert quick("watch", "--once", "--json").json["messages"] == 0
        path = Path(made["path"])
        with path.open("ab") as file:
            if made["agent"] == "codex":
                asked = [{"type": "input_text", "text": "And a zebra?"}]
                file.write(as_lines([codex_item(90, type="message", role="user", content=asked)]))
            else:
                file.write(as_lines([claude_line("new", "a6", "user", "And a zebra?", 90)]))
        counts = quick("watch", "--once", "--json").json
        assert (counts["messages"], counts["imported"]) == (1, [f"{made['agent']}:{made['session_id']}"])
        (listed,) = quick("show", counts["imported"][0], "--json").lines
        assert listed["text"] == "And a zebra?"
    assert quick("verify").code == 0


@pytest.mark.parametrize("is_seen", [False, True], ids=["unseen", "seen"])
@pytest.mark.parametrize("arguments", [("--before-compaction", "1"), ("--as", "codex")], ids=["claude", "codex"])
def test_a_resumed_session_whose_file_is_replaced_gives_only_what_follows(
    quick: Quick, home: Path, arguments: tuple[str, str], is_seen: bool
) -> None:
    quick("watch", "--once")
    made = quick("resume", SESSION, *arguments, "--json").json
    if is_seen:
        quick("watch", "--once")
    path = Path(made["path"])
    written = [json.loads(line) for line in path.read_bytes().splitlines()]
    later = {"timestamp": "2999-01-01T00:00:00.000Z"}
    asked = codex_item(0, type="message", role="user", content=[{"type": "input_text", "text": "And a zebra?"}])
    new = asked if made["agent"] == "codex" else claude_line("new", "a6", "user", "And a zebra?", 0)
    (path.parent / "new").write_text("".join(json.dumps({"v": 2} | line) + "\n" for line in [*written, new | later]))
    (path.parent / "new").rename(path)  # its agent writes all lines in another way
    counts = quick("watch", "--once", "--json").json
    assert (counts["messages"], counts["imported"]) == (1, [f"{made['agent']}:{made['session_id']}"])
    assert quick("resume", counts["imported"][0], "-o", "-").out.encode() == path.read_bytes()
    with path.open("ab") as file:
        file.write(as_lines([{**new, **later, "uuid": named("newer"), "more": 1}]))
    assert quick("watch", "--once", "--json").json["messages"] == 1


def test_a_session_comes_back_with_its_large_outputs_beside_it(quick: Quick, home: Path) -> None:
    path = claude_file(home, large_outputs.lines(large_outputs.saved()))
    output = large_outputs.keep(path)
    kept = output.read_bytes()
    quick("watch", "--once")
    output.unlink()
    assert quick("resume", SESSION).code == 0
    assert output.read_bytes() == kept
    made = quick("resume", SESSION, "--at", "3", "--json").json
    assert (path.parent / made["session_id"] / OUTPUTS / "b1.txt").read_bytes() == kept
    assert b"persisted-output" in Path(made["path"]).read_bytes()  # the line is as it was
    output.write_bytes(b"its own")
    quick("resume", SESSION)
    assert output.read_bytes() == b"its own"


def test_the_command_that_continues_a_session_is_quoted_for_the_shell(quick: Quick, home: Path) -> None:
    folder = "/srv/ada/my shop; echo $HOME"
    claude_file(home, [claude_line("u1", None, "user", "Hello there.", 1, cwd=folder)])
    quick("watch", "--once")
    command = quick("resume", SESSION, "--at", "1", "--json").json["command"]
    words = shlex.split(command)
    assert words[:4] == ["cd", folder, "&&", "claude"]


def test_a_session_without_a_folder_goes_on_in_the_current_one_or_the_one_named(
    quick: Quick, shell: Shell, home: Path
) -> None:
    claude_file(home, [claude_line("u1", None, "user", "Hello there.", 1, cwd="")])
    quick("watch", "--once")
    assert str(shell.folder) in quick("resume", SESSION, "--as", "codex").err
    assert quick("resume", SESSION, "--as", "codex", "--cwd", "/srv/else").err == ""
    for arguments, folder in (((), str(shell.folder)), (("--cwd", "/srv/else"), "/srv/else")):
        made = quick("resume", SESSION, "--as", "codex", "--json", *arguments).json
        assert f'"cwd":"{folder}"' in Path(made["path"]).read_text()


def test_a_file_elsewhere_comes_with_the_place_where_its_agent_looks(quick: Quick, home: Path, tmp_path: Path) -> None:
    quick("watch", "--once")
    ran = quick("resume", SESSION, "--at", "3", "-o", str(tmp_path / "mine.jsonl"))
    assert f"move it to {home / '.claude'}" in ran.out
    assert quick("resume", SESSION, "--at", "3", "-o", str(tmp_path / "b.jsonl"), "--json").json["command"] is None


def test_images_that_do_not_go_over_to_another_agent_are_counted(quick: Quick, home: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    line = claude_line("u1", None, "user", [image, {"type": "text", "text": "What is this?"}], 1)
    claude_file(home, [line])
    quick("watch", "--once")
    ran = quick("resume", SESSION, "--as", "codex")
    assert "1 images or files are not in it" in ran.err
    assert quick("resume", SESSION).err == ""
    for shown in (quick("show", SESSION), *(quick("export", SESSION, "-f", kind) for kind in ("md", "html"))):
        assert "[image]" in shown.out


def test_a_session_is_named_with_or_without_its_agent_by_its_beginning(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    for name in ("codex-1", "codex:codex", "codex-"):
        assert quick("resume", name).code == 0
    claude_file(home, [claude_line("u1", None, "user", "Hi.", 1, sessionId="x")]).rename(
        home / ".claude" / "projects" / "-srv-ada-project" / f"{SESSION[:-1]}6.jsonl"
    )
    quick("watch", "--once")
    ran = quick("resume", SESSION[:8])
    assert ran.code == ExitCode.USAGE
    assert f"{SESSION[:8]!r} begins 2 ids" in ran.err


def test_the_beginning_of_a_session_means_it_and_not_its_subagents(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    for name in (SESSION[:4], f"claude-code:{SESSION[:4]}", SESSION):
        assert "Then fix it." in quick("show", name).out
        assert "Then fix it." in quick("export", name, "-f", "md").out
        assert quick("recall", name, "cookie").code == 0
    assert "Found two cookies." in quick("show", f"{SESSION}:agent").out
    assert quick("show", "9999").code == ExitCode.NOT_FOUND


def test_what_claude_code_added_to_a_prompt_is_no_title_in_codex_either(quick: Quick, home: Path) -> None:
    first = claude_line("u1", None, "user", "<command-message>init is running…</command-message>", 1)
    claude_file(home, [first, claude_line("u2", "u1", "user", "Name the zebra.", 2)])
    quick("watch", "--once")
    made = quick("resume", SESSION, "--as", "codex", "--json").json
    reader = CodexReader(Path(made["path"]))
    for line in Path(made["path"]).read_bytes().splitlines():
        reader.read(line)
    assert [session.title for session in reader.sessions.values()] == ["Name the zebra."]


def test_the_command_adds_up_by_model_project_and_session(quick: Quick, tmp_path: Path) -> None:
    path = claude_file(tmp_path, [claude_line("u1", None, "user", "Why?", 1), claude_answer("a1", "msg_1", 2, 40)])
    side = claude_subagent_file(tmp_path)
    side.write_bytes(as_lines([claude_answer("x1", "msg_x", 3, 2, isSidechain=True, agentId="abc", uuid=named("x1"))]))
    assert quick("import", str(path.parent)).code == 0
    for by, names in (
        ("model", {"agent": "claude-code", "model": "claude-test-1"}),
        ("project", {"agent": "claude-code", "project": "/srv/ada/project"}),
        ("session", {"agent": "claude-code", "session": f"claude-code:{SESSION}", "title": "Why?"}),
    ):
        (row,) = quick("usage", "--by", by, "--json").lines
        assert row == {
            **names, "turns": 2, "failed": 0, "input_tokens": 18, "cache_read_tokens": 200, "cache_write_tokens": 14,
            "output_tokens": 42, "total_tokens": 274, "cost": None,
        }  # fmt: skip
    assert quick("usage", SESSION, "--json").lines[0]["turns"] == 2
    assert "claude-test-1" in quick("usage").out


def test_an_agents_own_summary_is_shown_where_it_stands_and_never_as_undone(quick: Quick, home: Path) -> None:
    quick("watch", "--once")
    (listed,) = quick("compactions", SESSION, "--json").lines
    assert (listed["state"], listed["invalid_at"], listed["undone_at"]) == ("by claude-code", None, None)
    shown = quick("show", SESSION, "--full").out
    assert "summarised by claude-code" in shown
    assert listed["summary"] in " ".join(shown.split())
    assert shown.index("summarised by claude-code") > shown.index(f"{listed['last_seq']:>6} ")
    assert "summarised by" not in quick("show", SESSION, "--limit", "1").out


def test_pictures_of_a_chat_service_are_named_where_they_stood(quick: Quick, tmp_path: Path) -> None:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-abc"}
    unnamed = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-xyz"}
    files = [
        {"id": "file-abc", "name": "cat.png", "mime_type": "image/png"},
        {"id": "file-def", "name": "plan.pdf", "mime_type": "application/pdf"},
    ]
    content = {"content_type": "multimodal_text", "parts": [picture, unnamed, "What is this?"]}
    message = {"id": "a", "author": {"role": "user"}, "content": content, "metadata": {"attachments": files}}
    value = {
        "conversation_id": "c",
        "title": "Image",
        "mapping": {"a": {"id": "a", "parent": None, "message": message}},
    }
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([value]))
    quick("import", str(path))
    for shown in (quick("show", "chatgpt:c").out, quick("export", "chatgpt:c", "-f", "md").out.replace("\\", "")):
        assert [label in shown for label in ("[image: cat.png]", "[file: plan.pdf]", "[image]")] == [True] * 3
        assert shown.count("[image") == 2

"""Sessions that `resume` writes, read by the agents' own programs: Anthropic's SDK and Codex itself, both offline."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Quick
from tests.imports.agent_files import SESSION, claude_compacted, claude_file, codex_file

HERE = Path(__file__).with_name("agents")
QUESTIONS = ["Why does the login test fail?", "Then fix it.", "What was it about?"]
PATIENCE_SECONDS = 60

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the agents' programs are installed (800 MB)."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs Node and npm")
    folder = tmp_path_factory.mktemp("agents")
    for file in HERE.iterdir():
        shutil.copy(file, folder)
    install = (
        npm,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--loglevel",
        "error",
    )
    ran = subprocess.run(install, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"the agents cannot be installed here: {ran.stderr[-200:]}")
    return folder


@pytest.fixture
def home(shell: Any, quick: Quick) -> Path:
    folder: Path = shell.home
    claude_file(folder, claude_compacted())
    codex_file(folder)
    quick("watch", "--once")
    return folder


def _read_by_claude(agents: Path, home: Path, session: str) -> list[tuple[str, Any]]:
    ran = subprocess.run(
        ("node", "read_claude.mjs", session), cwd=agents, env={**os.environ, "HOME": str(home)}, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return [(kind, content) for kind, content in json.loads(ran.stdout)]


def _read_by_codex(agents: Path, home: Path, session: str) -> list[tuple[str, str]]:
    """What `codex app-server` shows of a thread; None where it does not know it."""
    program = next(path for path in agents.glob("node_modules/@openai/codex-*/vendor/*/bin/codex") if path.is_file())
    program.chmod(0o755)
    with subprocess.Popen(
        (str(program), "app-server"), env={**os.environ, "HOME": str(home), "CODEX_HOME": str(home / ".codex")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None

        def call(number: int, method: str, **params: object) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
            process.stdin.flush()
            while True:
                answer: dict[str, Any] = json.loads(process.stdout.readline())
                if answer.get("id") == number:
                    return answer

        try:
            call(1, "initialize", clientInfo={"name": "test", "title": "test", "version": "1"})
            process.stdin.write(b'{"method": "initialized"}\n')
            known = call(2, "thread/list", limit=50)["result"]["data"]
            assert session in {thread["id"] for thread in known}
            thread = call(3, "thread/read", threadId=session, includeTurns=True)["result"]["thread"]
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
    items = [item for turn in thread["turns"] for item in turn["items"]]
    return [
        (item["type"], item["text"] if "text" in item else item["content"][0]["text"])
        for item in items
        if item["type"] in ("userMessage", "agentMessage")
    ]


def test_claude_code_reads_its_session_as_it_was_before_its_compaction(quick: Quick, home: Path, agents: Path) -> None:
    now = _read_by_claude(agents, home, SESSION)
    assert QUESTIONS[0] not in [content for _, content in now], "compacted, it has forgotten how it began"
    made = quick("resume", SESSION, "--before-compaction", "1", "--json").json
    said = _read_by_claude(agents, home, made["session_id"])
    assert [content for kind, content in said if kind == "user" and isinstance(content, str)] == QUESTIONS[:2]
    assert said[-1] == ("assistant", [{"type": "text", "text": "Fixed."}])
    assert len(said) == 11


def test_claude_code_reads_a_session_of_codex(quick: Quick, home: Path, agents: Path) -> None:
    made = quick("resume", "codex-1", "--as", "claude", "--json").json
    said = _read_by_claude(agents, home, made["session_id"])
    assert said[0] == ("user", "List the files.")
    assert [content[0]["type"] for _, content in said[1:]] == ["tool_use", "tool_result", "text"]


def test_codex_reads_a_session_of_claude_code(quick: Quick, home: Path, agents: Path) -> None:
    made = quick("resume", SESSION, "--as", "codex", "--json").json
    said = _read_by_codex(agents, home, made["session_id"])
    assert [text for kind, text in said if kind == "userMessage"] == QUESTIONS
    assert [text for kind, text in said if kind == "agentMessage"] == [
        "The cookie name is wrong. 密码",
        "Fixed.",
        "A cookie.",
    ]

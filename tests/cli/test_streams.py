"""Pipes that break, Ctrl-C, terminals, and characters that no terminal should obey."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import PATIENCE_SECONDS, Fork, Ran, Shell, user

SHOW_AND_LIST = """
from everthread.cli.commands import run
assert run(["show", "c"]) == 0
print("shown")
assert run(["ls"]) == 0
"""
STRANGE = "nul \x00 escape \x1b[31mred bell \x07 half \ud83d end \u202eturned"


@pytest.fixture
def long_talk(fork: Fork, quick: Quick) -> Fork:
    """Far more than a pipe holds."""
    text = "x" * 5000
    assert quick("append", "c", input=[user(f"{number} {text}") for number in range(100)]).code == 0
    return fork


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_leaves_early_ends_the_command_quietly(long_talk: Fork, more: list[str]) -> None:
    with long_talk("show", "c", "--full", *more) as process:
        process.stdout.read(100)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_stdout_that_is_closed_before_anything_is_written_is_quiet(long_talk: Fork) -> None:
    read, write = os.pipe()
    os.close(read)
    with long_talk("ls", stdout=write) as process:
        os.close(write)
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_ctrl_c_ends_a_command_that_writes_quietly(long_talk: Fork) -> None:
    with long_talk("show", "c", "--full") as process:
        process.stdout.read(100)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b""
        assert process.wait() == 130


def test_ctrl_c_ends_a_command_that_waits_for_input_quietly(fork: Fork, quick: Quick) -> None:
    quick("migrate")
    with fork("append", "c") as process:
        _wait_until_reading(process.child.pid)
        process.send_signal(signal.SIGINT)
        assert process.rest() == Ran(130, "", "")
    assert quick("ls", "--json").lines == []


def _wait_until_reading(pid: int) -> None:
    """Until the process sleeps in a read of a pipe, which is the only pipe it reads."""
    place = Path(f"/proc/{pid}/wchan")
    if not place.exists():
        pytest.skip("needs Linux's /proc to see what a process waits for")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "pipe" not in place.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize(
    "locale",
    [
        {"LANG": "C"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_any_message_can_be_shown_in_any_locale(shell: Shell, quick: Quick, locale: dict[str, str]) -> None:
    quick("append", "c", "--title", "标题", input=[user(STRANGE), user("历史 naïve 🙂")])
    command = (sys.executable, "-c", SHOW_AND_LIST)
    ran = subprocess.run(command, cwd=shell.folder, env=shell.environment(locale), capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    shown, ended, listed = ran.stdout.decode(errors="backslashreplace").partition("\nshown\n")
    assert ended
    for out in (shown, listed):
        assert set(out) - {"\n"} == set(filter(str.isprintable, out))


def test_what_a_terminal_would_obey_is_shown_escaped(quick: Quick) -> None:
    quick("append", "c", "--title", "ti\x1b[2Jtle", input=[user(STRANGE, name="na\x1bme")])
    shown = quick("show", "c").out
    assert r"nul \x00 escape \x1b[31mred bell \x07 half \ud83d end \u202eturned" in shown
    assert "\x1b" not in shown + quick("ls").out + quick("search", "escape").out
    assert r"(na\x1bme)" in shown


def test_json_gives_back_the_very_text(quick: Quick) -> None:
    quick("append", "c", input=[user(STRANGE)])
    (message,) = quick("show", "c", "--json").lines
    assert message["text"] == STRANGE


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"\n", 1, 1), (b"y\n", 0, 0), (b"\x03", 130, 1)])
def test_erase_asks_on_a_terminal(fork: Fork, quick: Quick, answer: bytes, code: int, left: int) -> None:
    quick("append", "c", input=[user("x")])
    ours, theirs = pty.openpty()
    with fork("erase", "conversation", "c", stdin=theirs, owns_terminal=True) as process:
        asked = b""
        while not asked.endswith(b"[y/N] ") and (letter := process.stderr.read(1)):
            asked += letter
        os.write(ours, answer)
        assert process.wait() == code
    os.close(theirs)
    os.close(ours)
    assert b"It cannot be undone" in asked
    assert len(quick("ls", "--json").lines) == left


def test_a_long_proof_shows_its_progress_on_a_terminal(fork: Fork, quick: Quick) -> None:
    quick("append", "c", input=[user("x") for _ in range(600)])
    ours, theirs = pty.openpty()
    with fork("verify", "--json", env={"TERM": "xterm-256color"}, stderr=theirs) as process:
        os.close(theirs)
        assert b"verifying" in _all_of(ours)
        assert json.loads(process.stdout.read())["messages"] == 600
    os.close(ours)


def _all_of(terminal: int) -> bytes:
    written = b""
    try:
        while part := os.read(terminal, 65536):
            written += part
    except OSError:  # what Linux answers at the end
        pass
    return written


def on_a_terminal(fork: Fork, *arguments: str, env: dict[str, str]) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with fork(*arguments, env={"TERM": "xterm-256color", **env}, stdout=theirs) as process:
        os.close(theirs)
        written = _all_of(ours)
        process.wait()
    os.close(ours)
    return written


@pytest.mark.parametrize(
    "command",
    [["export", "c", "--format", "html"], ["export", "c", "--format", "md"], ["sql", "SELECT 1 AS 'a\x1b[2Jb'"]],
    ids=["html", "markdown", "a column's name"],
)
def test_a_file_printed_to_a_terminal_is_escaped_and_in_a_pipe_is_as_it_is(
    fork: Fork, quick: Quick, command: list[str]
) -> None:
    quick("append", "c", input=[user("clipboard \x1b]52;c;QUJD\x07 C1 \x9b31m", name="na\x1bme")])
    written = on_a_terminal(fork, *command, env={"NO_COLOR": "1"})
    assert written.strip()
    assert not {"\x1b", "\x07", "\x9b"} & set(written.decode())
    if command[0] == "export":
        with fork(*command) as process:
            assert "\x9b" in process.rest().out


@pytest.mark.parametrize("command", [["ls"], ["show", "c"]])
def test_colours_are_for_terminals_that_want_them(fork: Fork, quick: Quick, command: list[str]) -> None:
    quick("append", "c", input=[user("x")])
    assert b"\x1b[1m" in on_a_terminal(fork, *command, env={})
    for unwanted in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = on_a_terminal(fork, *command, env=unwanted)
        assert plain.strip()
        assert b"\x1b" not in plain
    with fork(*command) as process:
        piped = process.rest()
    assert (piped.code, "\x1b" in piped.out) == (0, False)


def test_a_table_in_a_pipe_is_never_cut(quick: Quick) -> None:
    id = "i" * 128
    quick("append", id, "--title", "t" * 300, input=[user("x")])
    assert id + "  " + "t" * 300 in quick("ls").out

"""Each kind of failure has its exit code, and each failure is told in one line."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from everthread.cli.errors import EXIT_CODES, ExitCode, exit_code
from everthread.core.errors import EverthreadError, NotFound
from tests.cli.conftest import Quick
from tests.cli.shell import Fork, Shell, user


def kinds_below(kind: type[EverthreadError]) -> Iterator[type[EverthreadError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from kinds_below(child)


def test_every_error_has_an_exit_code() -> None:
    ours = {kind for kind in kinds_below(EverthreadError) if kind.__module__ == EverthreadError.__module__}
    assert len(ours) > 10
    assert ours - EXIT_CODES.keys() == set()


def test_an_error_of_a_newer_kind_has_the_code_of_the_one_above_it() -> None:
    class Vanished(NotFound):
        pass

    assert exit_code(Vanished("x")) == ExitCode.NOT_FOUND


def test_a_service_that_is_told_to_stop_and_does_so_in_good_order_has_not_failed(fork: Fork) -> None:
    with fork("serve", "--port", "0") as serving:
        assert b"serves" in serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        ran = serving.rest()
    assert (ran.code, "Traceback" in ran.err) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["show", "gone"], 3, "not_found"),
        (["nonsense"], 2, "usage"),
        (["show"], 2, "usage"),
        (["ls", "--nonsense"], 2, "usage"),
        (["ls", "--limit", "many"], 2, "usage"),
        (["show", "x" * 129], 2, "invalid"),
        (["ls", "--database", "nonsense"], 2, "invalid"),
        (["ls", "--database", "mysql://host/name"], 2, "invalid"),
        (["erase", "owner", "local"], 2, "invalid"),
        (["ls", "--owner", ""], 2, "invalid"),
        (["show", ""], 2, "invalid"),
        (["verify", "--against", "gone.jsonl"], 1, "os_error"),
        (["restore", "gone.db", "--force"], 3, "not_found"),
        (["models", "fetch", "gone"], 3, "not_found"),
    ],
)
def test_a_failure_is_one_line_and_one_code(quick: Quick, arguments: list[str], code: int, word: str) -> None:
    quick("migrate")
    ran = quick(*arguments, "--json")
    assert (ran.code, ran.out, ran.error["code"]) == (code, "", word)
    assert ran.error["message"]
    assert ran.error["retryable"] is False


def test_for_people_a_failure_is_one_plain_line(shell: Shell, quick: Quick) -> None:
    quick("migrate")
    ran = shell("show", "gone")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == "everthread: no conversation 'gone'; `everthread ls` lists them\n"


def test_without_a_command_the_help_is_shown(shell: Shell) -> None:
    ran = shell()
    assert ran.code == 2
    assert "Usage: everthread" in ran.out + ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("group", ["memories", "kb", "key", "models", "hold", "erase"])
def test_a_group_without_its_command_shows_its_help_line_by_line(quick: Quick, group: str) -> None:
    ran = quick(group)
    assert (ran.code, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"Usage: everthread {group} ")
    assert "Commands:" in lines
    assert quick("--json", group).error["code"] == "usage"


def test_a_file_that_is_no_database_is_damage(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "et.db").write_bytes(os.urandom(5000))
    for command in ("ls", "verify", "doctor"):
        assert quick(command).code == 5, command


def test_a_folder_that_cannot_be_written_is_an_error(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = quick("append", "c", "--database", f"sqlite:///{tmp_path}/file/et.db", input=[user("x")])
    assert ran.code == 1
    assert "cannot make the folder" in ran.err


def test_a_server_that_is_not_there_is_an_error_that_may_be_retried(quick: Quick) -> None:
    ran = quick("ls", "--json", "--database", "postgresql://nobody@127.0.0.1:1/none")
    assert (ran.code, ran.error["retryable"]) == (1, True)


def test_even_a_defect_is_one_line(shell: Shell, quick: Quick, tmp_path: Path) -> None:
    broken = tmp_path / "sitecustomize.py"
    broken.write_text("import everthread.instance as i\ni.Everthread.heads = lambda self: 1 / 0\n")
    quick("migrate")
    ran = shell("heads", env={"PYTHONPATH": str(tmp_path)})
    assert ran.code == 1
    assert ran.err.startswith("everthread: internal error: ZeroDivisionError")
    assert ran.err.count("\n") == 1
    asked = shell("heads", env={"PYTHONPATH": str(tmp_path), "EVERTHREAD_LOG_LEVEL": "debug"})
    assert "Traceback" in asked.err


def test_what_is_wrong_with_an_argument_or_a_file_is_said_in_plain_words(quick: Quick, tmp_path: Path) -> None:
    quick("append", "c1", input=[{"role": "user", "content": "hi"}])
    (tmp_path / "notes.txt").write_text("no heads")
    torn = tmp_path / "session.jsonl"
    line = {"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"role": "user", "content": "hi"}}
    torn.write_text(json.dumps({**line, "timestamp": "2026-01-01T00:00:00Z"}) + "\nno JSON\n")
    said = {
        "window": quick("context", "c1", "--window", "8k").err,
        "branch": quick("show", "c1", "--branch", "q").err,
        "heads": quick("verify", "--against", str(tmp_path / "notes.txt")).err,
        "import": quick("import", str(torn)).err,
        "append": quick("append", "c1", input=b"{").err,
    }
    assert "'--window': must be a whole number" in said["window"]
    assert "no branch 'q' in conversation 'c1'; there are main" in said["branch"]
    assert "line 1 is not a line of `everthread heads`: it is not JSON from character 1 on" in said["heads"]
    assert "session.jsonl:2: is not JSON from character 1 on" in said["import"]
    assert "is not JSON from character 2 on" in said["append"]

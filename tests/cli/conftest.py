"""Three ways to the command line: `shell` is the installed program, `fork` the same one without its start, `quick` the
same app inside this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everthread.cli import commands
from tests.cli.shell import Fork, Ran, Shell, as_bytes
from tests.forkserver import ForkServer

Quick = Callable[..., Ran]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """The installed program on an empty SQLite file, which is not there yet."""
    return Shell(tmp_path / "home", f"sqlite:///{tmp_path / 'et.db'}")


@pytest.fixture
def fork(shell: Shell, forkserver: ForkServer) -> Fork:
    """The same program, forked: for what depends on a process, but not on how it was started."""
    return Fork(shell, forkserver)


@pytest.fixture
def quick(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Quick:
    """The same command line without a process: for what does not depend on one."""
    runner = CliRunner()
    monkeypatch.chdir(shell.folder)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "EVERTHREAD_SHARED"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, input: bytes | str | list[object] = b"", env: Mapping[str, str] | None = None) -> Ran:
        monkeypatch.setattr(sys, "argv", ["everthread", *arguments])
        with runner.isolation(as_bytes(input), shell.environment(env)) as (out, err, _):
            code = commands.run(arguments)
            sys.stderr.flush()
            return Ran(code, out.getvalue().decode(), err.getvalue().decode())

    return run

"""The server that the tests run on is gone when they are, however they end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.postgres import ROOT, own_server

USER = """
import sys
from tests.postgres import shared_server
with shared_server() as server:
    print(server.folder, (server.data / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""
OWNER = """
import sys
from pathlib import Path
from tests.postgres import own_server
with own_server(Path(sys.argv[1])) as server:
    print(server.folder, server.pid, flush=True)
    sys.stdin.read()
"""


@contextmanager
def program(script: str, *arguments: str, run: str) -> Iterator[tuple[subprocess.Popen[str], Path, int]]:
    """A process that holds a server until its input ends, the server's folder and its process."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT, env={**os.environ, "PYTEST_XDIST_TESTRUNUID": run}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        folder, pid = process.stdout.readline().split()
        yield process, Path(folder), int(pid)


def assert_ends(pid: int) -> None:
    deadline = time.monotonic() + 30
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


def test_test_processes_share_one_server_until_the_last_of_them_is_killed() -> None:
    run = f"killed-{os.getpid()}"
    with program(USER, run=run) as (first, folder, pid), program(USER, run=run) as (second, same_folder, same_pid):
        assert (folder, pid) == (same_folder, same_pid)
        first.kill()
        first.wait()
        assert psutil.pid_exists(pid)
        second.kill()
        second.wait()
        assert_ends(pid)
        while folder.exists():
            time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends a server whose parent died")
def test_a_private_server_does_not_outlive_its_test(tmp_path: Path) -> None:
    with program(OWNER, str(tmp_path), run="") as (owner, folder, pid):
        owner.kill()
        owner.wait()
        assert_ends(pid)
        shutil.rmtree(folder)


def test_a_private_server_leaves_no_folder(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        assert server.run_sql("SELECT 1") == "1"
    assert not server.folder.exists()

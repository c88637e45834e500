"""A child of the forkserver is a process as any other: nobody who reads a test need know that it was forked."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.forkserver import ForkServer

TELL = "import json, os, sys; print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), __name__]))"


def test_a_program_has_its_arguments_its_folder_and_its_environment(forkserver: ForkServer, tmp_path: Path) -> None:
    ended = forkserver.run_program("-c", TELL, "a", "中", folder=tmp_path, env={"ONLY": "this"}, needs=())
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == [["-c", "a", "中"], str(tmp_path), {"ONLY": "this"}, "__main__"]


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no such tram')", 1, "no such tram"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
    ],
)
def test_a_program_ends_as_python_would_end_it(
    text: str, code: int, error: str, forkserver: ForkServer, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text(text)
    ended = forkserver.run_program(str(file), folder=tmp_path, env=os.environ, needs=())
    assert (ended.code, ended.out) == (code, "")
    assert error in ended.err


def test_a_program_does_what_it_has_left_to_do_when_it_ends(forkserver: ForkServer, tmp_path: Path) -> None:
    text = """if True:
        import atexit, threading, time
        atexit.register(print, "at exit")
        threading.Thread(target=lambda: (time.sleep(0.1), print("a thread"))).start()
        print("the program", end=" ")
    """
    ended = forkserver.run_program("-c", text, folder=tmp_path, env=os.environ, needs=())
    assert (ended.code, ended.out, ended.err) == (0, "the program a thread\nat exit\n", "")


def test_what_one_child_does_another_does_not_see(forkserver: ForkServer, tmp_path: Path) -> None:
    change = "import everthread; everthread.open = None"
    look = "import everthread; print(everthread.open is None)"
    for text, printed in ((change, ""), (look, "False\n")):
        assert forkserver.run_program("-c", text, folder=tmp_path, env=os.environ, needs=()).out == printed


def test_a_program_that_still_runs_is_killed_in_the_end(forkserver: ForkServer, tmp_path: Path) -> None:
    text = "import time; print('here', flush=True); time.sleep(600)"
    with forkserver.talking_program("-c", text, folder=tmp_path, env=os.environ, needs=()) as (child, said):
        assert said.readline() == "here\n"
        assert child.is_at_work()
    assert not psutil.pid_exists(child.pid)


def test_what_hangs_is_told_and_killed(forkserver: ForkServer, tmp_path: Path) -> None:
    child = forkserver.start_program("-c", "import time; time.sleep(600)", folder=tmp_path, env=os.environ, needs=())
    with pytest.raises(AssertionError, match="still ran"):
        child.wait(0)
    assert not psutil.pid_exists(child.pid)

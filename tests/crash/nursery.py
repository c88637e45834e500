"""Cheap child processes: one process imports everything once, and forks a child for each job.

A crash test starts hundreds of children; a new interpreter costs two seconds each, a fork some milliseconds. The
nursery warms up on a database of its own and closes it, so no engine's thread exists when it forks. Both ends stand
here: `Nursery` and `Child` are the tests' side, `main` is the process (`python -m tests.crash.nursery`). They talk
in JSON lines.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from tests.crash import child

ROOT = Path(__file__).parents[2]
PRELOADED = ("everthread.adapters.stores.postgres", "sqlalchemy.dialects.postgresql.asyncpg")
"""What the warming up does not import by itself."""
PATIENCE_SECONDS = 90.0
"""After this long a child hangs, and the test says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process that works on a job."""

    pid: int
    nursery: Nursery
    log: Path

    def send(self, number: signal.Signals) -> None:
        """A signal, at once. The nursery has not reaped it yet, so the pid is still its own."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """How it ended: 0, an exit code, or minus the signal that ended it."""
        answer = self.nursery.ask({"wait": self.pid, "seconds": seconds})
        if answer["status"] is None:
            self.send(signal.SIGKILL)
            self.nursery.ask({"wait": self.pid, "seconds": seconds})
            raise AssertionError(f"the child still ran after {seconds} s:\n{self.said()}")
        return int(answer["status"])

    def is_at_work(self) -> bool:
        return self.nursery.ask({"wait": self.pid, "seconds": 0})["status"] is None

    def said(self) -> str:
        """What it wrote, for the message of a failing test."""
        return self.log.read_text(errors="replace")[-4000:]


class Nursery:
    """The tests' handle on the process that forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._born = 0
        self._process = subprocess.Popen(
            (sys.executable, "-m", "tests.crash.nursery"),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it died, and a test has said so
            self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()

    def start(self, call: str, **arguments: Any) -> Child:
        """A child that calls `module:function` with these arguments (JSON)."""
        self._born += 1
        log = self._folder / f"child-{self._born}.log"
        answer = self.ask({"start": call, "arguments": arguments, "log": str(log)})
        return Child(pid=answer["pid"], nursery=self, log=log)

    def run(self, call: str, **arguments: Any) -> None:
        """The same, waited for; it must end well."""
        child = self.start(call, **arguments)
        status = child.wait()
        assert status == 0, f"{call} ended with {status}:\n{child.said()}"

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the nursery died; its error stands above"
        answer: dict[str, Any] = json.loads(line)
        return answer


# -- the process itself ------------------------------------------------------------------------------------


def main() -> None:
    """Serve until the tests hang up. In a forked child `serve` returns its job, which then is all of the program."""
    for name in PRELOADED:
        importlib.import_module(name)
    with TemporaryDirectory() as folder:
        child.run_script(f"sqlite:///{folder}/warm.db", seed=0, acks=f"{folder}/acks", erases=1)
    gc.freeze()
    job = serve()
    if job is not None:
        pkgutil.resolve_name(job["start"])(**job["arguments"])


def serve() -> Mapping[str, Any] | None:
    """Answer questions; give the job in each forked child, and None once nobody asks any more."""
    born: set[int] = set()
    ended: dict[int, int] = {}
    for line in sys.stdin:
        question = json.loads(line)
        if "wait" in question:
            answer: Mapping[str, Any] = {"status": _status(question["wait"], question["seconds"], ended)}
        else:
            assert _is_alone(), "a thread before the fork: its locks would be copied, held for ever"
            pid = os.fork()
            if pid == 0:
                _settle(question["log"])
                return dict(question)
            born.add(pid)
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)
    for pid in born - ended.keys():  # of tests that failed before they waited for them
        os.kill(pid, signal.SIGKILL)
    return None


def _is_alone() -> bool:
    """Whether this is the only thread; one that was joined may take a moment more to leave the kernel."""
    end = time.monotonic() + 5
    while os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) > 1:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _settle(log: str) -> None:
    """A child reads nothing, and writes into a file of its own rather than into the nursery's answers."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off for its jobs
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(nothing, 0)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.close(nothing)
    os.close(written)


def _status(pid: int, seconds: float, ended: dict[int, int]) -> int | None:
    end = time.monotonic() + seconds
    while pid not in ended:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ended[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > end:
            return None
        else:
            time.sleep(0.002)
    return ended[pid]


if __name__ == "__main__":
    main()

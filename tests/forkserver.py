"""Cheap child processes: one process imports things once, and forks a child for each job.

The tests start hundreds of processes; a new interpreter costs one to three seconds each, a fork some milliseconds. The
server warms up on a database of its own and closes it, so no engine's thread exists when it forks. Both ends are here:
`ForkServer` and `Child` are the tests' side, `main` is the process (`python -m tests.forkserver`). They talk in JSON
lines over a socket, which also passes the files that a child writes to.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, TextIO

from tests.crash import child

ROOT = Path(__file__).parents[1]
PRELOADED = ("everthread.adapters.stores.postgres", "procrastinate.schema")
"""What the warming up does not import by itself."""
WITH_LANGCHAIN = ("everthread.langchain", "everthread.langgraph")
SERVING = ("everthread.cli.serve", "everthread.http.server", "everthread.demo.load", "everthread.demo.replay")
"""What programs need."""
PATIENCE_SECONDS = 90.0
"""After this long a child hangs, and the test says so."""


class Ended(NamedTuple):
    """What a program left behind."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process that works on a job."""

    pid: int
    forkserver: ForkServer
    log: Path

    def send(self, number: signal.Signals) -> None:
        """A signal, at once. The forkserver has not reaped it yet, so the pid is still its own."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """How it ended: 0, an exit code, or minus the signal that ended it."""
        answer = self.forkserver.ask({"wait": self.pid, "seconds": seconds})
        if answer["status"] is None:
            self.send(signal.SIGKILL)
            self.forkserver.ask({"wait": self.pid, "seconds": PATIENCE_SECONDS})
            raise AssertionError(f"the child still ran after {seconds} s:\n{self.said()}")
        return int(answer["status"])

    def end(self) -> None:
        """Kill it, if it still runs."""
        if self.is_at_work():
            self.send(signal.SIGKILL)
            self.wait()

    def is_at_work(self) -> bool:
        return self.forkserver.ask({"wait": self.pid, "seconds": 0})["status"] is None

    def said(self) -> str:
        """What it wrote, for the message of a failing test."""
        return self.log.read_text(errors="replace")[-4000:]


class ForkServer:
    """The tests' handle on the process that forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._born = 0
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "tests.forkserver"),
                cwd=ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # of numpy, which would start its threads at once
                stdin=theirs.fileno(),
            )
        self._answers = self._socket.makefile("r")

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait(PATIENCE_SECONDS)

    def start(self, call: str, **arguments: Any) -> Child:
        """A child that calls `module:function` with these arguments (JSON)."""
        log = self._new_file()
        with log.open("ab") as output, open(os.devnull, "rb") as nothing:
            return self._begin(call, arguments, log, (nothing.fileno(), output.fileno(), output.fileno()))

    def run(self, call: str, **arguments: Any) -> None:
        """The same, waited for; it must end well."""
        child = self.start(call, **arguments)
        status = child.wait()
        assert status == 0, f"{call} ended with {status}:\n{child.said()}"

    def start_program(
        self,
        *arguments: str,
        folder: Path,
        env: Mapping[str, str],
        needs: Sequence[str],
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        owns_terminal: bool = False,
    ) -> Child:
        """`python ARGUMENTS` in a folder: the name of a file, `-m` and a module, or `-c` and a text. What it `needs` is
        imported once for all that need it. With `owns_terminal`, Ctrl-C in the terminal on stdin reaches it."""
        log = self._new_file()
        given = {"arguments": arguments, "folder": str(folder), "env": dict(env), "owns_terminal": owns_terminal}
        with log.open("ab") as output, open(os.devnull, "rb") as nothing:
            files = (stdin or nothing.fileno(), stdout or output.fileno(), stderr or output.fileno())
            return self._begin("tests.forkserver:run_program", given, log, files, needs)

    def run_program(self, *arguments: str, folder: Path, env: Mapping[str, str], needs: Sequence[str]) -> Ended:
        """The same, waited for."""
        written = self._new_file()
        with written.open("ab") as output:
            child = self.start_program(*arguments, folder=folder, env=env, needs=needs, stdout=output.fileno())
        code = child.wait()
        return Ended(code, written.read_text(encoding="utf-8"), child.log.read_text(encoding="utf-8"))

    @contextmanager
    def talking_program(
        self, *arguments: str, folder: Path, env: Mapping[str, str], needs: Sequence[str]
    ) -> Iterator[tuple[Child, TextIO]]:
        """A program and what it says, as it says it; killed in the end if it still runs."""
        read, write = os.pipe()
        with open(read, encoding="utf-8") as said:
            child = self.start_program(*arguments, folder=folder, env=env, needs=needs, stdout=write)
            os.close(write)
            try:
                yield child, said
            finally:
                child.end()

    def ask(self, question: Mapping[str, Any], files: Sequence[int] = ()) -> dict[str, Any]:
        socket.send_fds(self._socket, [f"{json.dumps(question)}\n".encode()], files)
        line = self._answers.readline()
        assert line, "the forkserver died; its error stands above"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _begin(
        self, call: str, arguments: Mapping[str, Any], log: Path, files: Sequence[int], needs: Sequence[str] = ()
    ) -> Child:
        modules = [call.partition(":")[0], *needs]
        answer = self.ask({"start": call, "modules": modules, "arguments": arguments}, files)
        return Child(pid=answer["pid"], forkserver=self, log=log)

    def _new_file(self) -> Path:
        self._born += 1
        return self._folder / f"written-{self._born}"


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
        _leave(_code_of(job))


def _code_of(job: Mapping[str, Any]) -> int:
    """Do the job; the code that the process is to end with."""
    try:
        pkgutil.resolve_name(job["start"])(**job["arguments"])
    except SystemExit as ending:
        if ending.code is not None and not isinstance(ending.code, int):
            raise  # a text, which Python writes
        return ending.code or 0
    return 0


def _leave(code: int) -> None:
    """End as Python does, but without taking apart what was imported: in a fork, whose pages would all be copied for
    it, that takes up to half a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def serve() -> Mapping[str, Any] | None:
    """Answer questions; give the job in each forked child, and None once nobody asks any more."""
    born: set[int] = set()
    ended: dict[int, int] = {}
    tests = socket.socket(fileno=sys.stdin.fileno())
    while received := _received(tests):
        question, files = received
        if "wait" in question:
            answer: Mapping[str, Any] = {"status": _status(question["wait"], question["seconds"], ended)}
        else:
            for name in question["modules"]:
                importlib.import_module(name)
            assert _is_alone(), "a thread before the fork: its locks would be copied, held for ever"
            pid = os.fork()
            if pid == 0:
                _settle(*files)
                tests.detach()
                return question
            born.add(pid)
            ended.pop(pid, None)  # of an earlier child: the numbers of processes come round again
            answer = {"pid": pid}
        for file in files:
            os.close(file)
        tests.sendall(f"{json.dumps(answer)}\n".encode())
    for pid in born - ended.keys():  # of tests that failed before they waited for them
        os.kill(pid, signal.SIGKILL)
    return None


def _received(tests: socket.socket) -> tuple[Mapping[str, Any], list[int]] | None:
    """The next question and the files that came with it."""
    text, files, _, _ = socket.recv_fds(tests, 1 << 20, 3)
    while text and not text.endswith(b"\n"):
        text += tests.recv(1 << 20)
    return (json.loads(text), files) if text else None


def _is_alone() -> bool:
    """Whether this is the only thread; one that was joined may take a moment more to leave the kernel."""
    end = time.monotonic() + 5
    while os.path.isdir("/proc/self/task") and len(os.listdir("/proc/self/task")) > 1:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _settle(*files: int) -> None:
    """A child reads and writes the files that came with its job."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have switched off for its jobs
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # the former remembers a file of another kind
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def run_program(arguments: Sequence[str], folder: str, env: Mapping[str, str], owns_terminal: bool) -> None:
    """Be the program that `python ARGUMENTS` would be."""
    if owns_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    match arguments:
        case ["-c", text, *rest]:
            sys.argv = ["-c", *rest]
            exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case [file, *rest]:
            sys.argv = [file, *rest]
            runpy.run_path(file, run_name="__main__")


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

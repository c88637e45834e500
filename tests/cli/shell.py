"""The command line as tests use it: the program in a process of its own, away from this user's files.

`Shell` starts the installed program; `Fork` the same one as a child of the forkserver, for the many tests of signals,
pipes and terminals: there all is as in a process that was started, but for what an interpreter does before it begins.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from tests.forkserver import SERVING, Child, ForkServer

PROGRAM = Path(sys.executable).with_name("everthread")
PATIENCE_SECONDS = 60


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The documents on stdout, a line each."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The error that `--json` tells."""
        return json.loads(self.err)["error"]


class Shell:
    """Runs `everthread` with a home, a working folder and a database of its own."""

    def __init__(self, home: Path, database: str | None = None) -> None:
        self.home = home
        self.folder = home / "here"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = database

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        own = {} if self.database is None else {"EVERTHREAD_DATABASE": self.database}
        return {**kept, "HOME": str(self.home), "LANG": "C.UTF-8", **own, **(more or {})}

    def start(self, *arguments: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        """Begin, and leave the end to the caller."""
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [str(PROGRAM), *arguments], cwd=self.folder, env=self.environment(env), **{**streams, **options}
        )

    def __call__(
        self, *arguments: str, input: bytes | str | Sequence[object] = b"", env: Mapping[str, str] | None = None
    ) -> Ran:
        """Run to the end. A list as input becomes JSON lines."""
        with self.start(*arguments, env=env) as process:
            out, err = process.communicate(as_bytes(input), timeout=PATIENCE_SECONDS)
        return Ran(process.returncode, out.decode(errors="backslashreplace"), err.decode(errors="backslashreplace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A program that was forked; with our ends of those of its streams that nobody gave it."""

    child: Child
    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.end()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def send_signal(self, number: Signals) -> None:
        self.child.send(number)

    def wait(self) -> int:
        return self.child.wait(PATIENCE_SECONDS)

    def rest(self) -> Ran:
        """All that it still writes, and how it ends; there is nothing more to read for it."""
        self.stdin.close()
        with ThreadPoolExecutor(1) as beside:
            errors = beside.submit(self.stderr.read)
            out = self.stdout.read()
            return Ran(self.wait(), out.decode(), errors.result().decode())


class Fork:
    """Forks `everthread` where a shell would start it."""

    def __init__(self, shell: Shell, forkserver: ForkServer) -> None:
        self._shell = shell
        self._forkserver = forkserver

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        owns_terminal: bool = False,
    ) -> Running:
        (theirs, write), (out, said), (errors, told) = os.pipe(), os.pipe(), os.pipe()
        child = self._forkserver.start_program(
            "-m", "everthread", *arguments,
            folder=self._shell.folder, env=self._shell.environment(env), needs=SERVING,
            stdin=stdin or theirs, stdout=stdout or said, stderr=stderr or told, owns_terminal=owns_terminal,
        )  # fmt: skip
        for end in (theirs, said, told):
            os.close(end)
        return Running(child=child, stdin=open(write, "wb"), stdout=open(out, "rb"), stderr=open(errors, "rb"))


def as_bytes(given: bytes | str | Sequence[object]) -> bytes:
    if isinstance(given, bytes):
        return given
    return (given if isinstance(given, str) else "\n".join(map(json.dumps, given))).encode()


def user(text: str, **more: object) -> dict[str, object]:
    return {"role": "user", "content": text, **more}

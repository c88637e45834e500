"""The command line as tests use it: the installed program in a process of its own, away from this user's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


def as_bytes(given: bytes | str | Sequence[object]) -> bytes:
    if isinstance(given, bytes):
        return given
    return (given if isinstance(given, str) else "\n".join(map(json.dumps, given))).encode()


def user(text: str, **more: object) -> dict[str, object]:
    return {"role": "user", "content": text, **more}

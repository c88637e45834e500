"""A terminal for tests: `everthread` behind a real pseudo-terminal, typed into and read from."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Mapping
from types import TracebackType

from tests.cli.shell import Fork

PATIENCE_SECONDS = 90.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>()][A-Za-z0-9]?|\r")


class Terminal:
    """One run of one command, in a terminal of 100 columns."""

    def __init__(self, fork: Fork, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        told = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}
        self.process = fork(*arguments, env=told, stdin=inner, stdout=inner, stderr=inner, owns_terminal=True)
        os.close(inner)
        self.raw = ""
        self._read_to = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.__exit__(kind, value, trace)
        os.close(self._outer)

    @property
    def text(self) -> str:
        """All that was shown, without what moves the cursor."""
        return _CONTROL.sub("", self.raw)

    def type(self, keys: str) -> None:
        os.write(self._outer, keys.encode())

    def enter(self, line: str) -> None:
        self.type(f"{line}\r")

    def expect(self, pattern: str) -> str:
        """Wait until something new is shown that fits; gives what was new."""
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            new = self.text[self._read_to :]
            if found := re.search(pattern, new):
                self._read_to += found.end()
                return new[: found.end()]
            if time.monotonic() > until or not self._read():
                raise AssertionError(f"never shown: {pattern!r} in {self.text[-3000:]!r}")

    def end(self) -> int:
        """Wait for the end of the program."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.process.child.is_at_work() and time.monotonic() < until:
            self._read()
        return self.process.wait()

    def _read(self) -> bool:
        if not select.select([self._outer], [], [], 0.2)[0]:
            return self.process.child.is_at_work()
        try:
            self.raw += os.read(self._outer, 65_536).decode(errors="replace")
        except OSError:  # the other end is closed
            return False
        return True

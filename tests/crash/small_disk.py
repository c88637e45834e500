"""Disks that are soon full, made in a child and gone with it.

tmpfs        a small file system of its own; root may mount one, and any user may in a user namespace of his own
file limit   no file may grow beyond a size (RLIMIT_FSIZE): works everywhere, but the system's error is another one

Both leave nothing behind: the mount is seen by the child alone, and so is the limit.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000

UNAVAILABLE = 77
"""The exit code of a child that could not make its disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tmpfs:
    """A file system in memory, with a piece of ballast on it that can be thrown off."""

    folder: Path
    ballast: Path

    def make_room(self) -> None:
        self.ballast.unlink()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimit:
    """A bound on the size of files, which can be raised."""

    folder: Path
    size_bytes: int

    def make_room(self) -> None:
        _limit_files(self.size_bytes)


SmallDisk = Tmpfs | FileLimit


def small_disk(way: str, folder: Path, *, size_bytes: int, ballast_bytes: int) -> SmallDisk:
    """A disk with so much room, ballast included. Only in a process that has no other threads yet."""
    if way == "file limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _limit_files(size_bytes - ballast_bytes)
        return FileLimit(folder=folder, size_bytes=size_bytes)
    try:
        _mount_tmpfs(folder, size_bytes)
    except OSError as problem:
        print(f"cannot mount a tmpfs: {problem}")
        raise SystemExit(UNAVAILABLE) from problem
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(ballast_bytes))
    return Tmpfs(folder=folder, ballast=ballast)


def _limit_files(size_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _mount_tmpfs(folder: Path, size_bytes: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    _succeed(system.unshare(_CLONE_NEWNS if user == 0 else _CLONE_NEWNS | _CLONE_NEWUSER))
    if user != 0:  # who makes a namespace may mount in it, and need not even become root there
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _succeed(system.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    options = f"size={size_bytes},mode=755".encode()
    _succeed(system.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options))


def _succeed(outcome: int) -> None:
    if outcome:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))

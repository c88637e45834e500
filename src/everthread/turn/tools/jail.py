"""Runs one command that can write nowhere but in its folder: `python jail.py FOLDER SECONDS COMMAND`.

Started as a program of its own, by `commands`, before any thread exists: the rules below hold for a process and all
that it starts, for ever. They are the kernel's. Landlock (Linux 5.13 and later): read and run what the system
installed, read and write the folder, nothing else, not even /proc, where other processes show their environment. And
seccomp: no sockets at all, because Landlock knows neither UDP nor the sockets that have a path (`/run/docker.sock` is
one), and TCP only since 6.7; a socket pair is no way out, and stays. Signals to others are kept in since 6.12. Without
both nothing is run. Whatever the command leaves running is killed when it ends, is told to, or when whoever started the
jail is gone. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from types import FrameType

CANNOT_CONFINE = 125
"""What it leaves behind when the kernel cannot hold the command in its folder; nothing was run."""
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_ASKED = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38
_ADOPT_ORPHANS = 36
_END_WITH_PARENT = 1
_EXECUTE, _WRITE, _READ, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | 1 << 14 | 1 << 15
_RIGHTS_BY_VERSION = ((1, (1 << 13) - 1), (2, (1 << 14) - 1), (3, (1 << 15) - 1), (5, (1 << 16) - 1))
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store")
_SYSTEM_FILES = (
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/ssl/certs",
    "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
_SECCOMP, _WITH_FILTER = 22, 2
_SYSTEM_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By machine: how the kernel names it to a filter, and the number of `socket`."""
_IO_URING_SETUP = 425
"""On every machine. What it starts makes sockets too, and passes no filter."""
_OTHER_NUMBERS = 0x40000000
"""From here on the numbers of x32, by which an x86_64 may be called as well."""
_MAX_MEMORY_BYTES = 4 << 30
_MAX_FILE_BYTES = 256 << 20
_MAX_OPEN_FILES = 256

_libc = ctypes.CDLL(None, use_errno=True)


def main(folder: str, seconds: str, command: str) -> int:
    if not can_confine():
        return CANNOT_CONFINE
    _libc.prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _told_to_end)
    _libc.prctl(_END_WITH_PARENT, signal.SIGTERM, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _run(folder, int(float(seconds)) + 1, command)
    _, status = os.waitpid(child, 0)
    _kill_what_is_left()
    return os.waitstatus_to_exitcode(status)


def can_confine() -> bool:
    """Whether the kernel can hold a command in its folder, and we know how to tell it."""
    return version() >= 1 and os.uname().machine in _SYSTEM_CALLS


def version() -> int:
    """What the kernel knows of Landlock; less than 1 is nothing."""
    try:
        return int(_libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ASKED)))
    except (AttributeError, OSError):
        return 0


def _run(folder: str, seconds: int, command: str) -> None:
    """In the child: give up what is not needed, then become the command."""
    try:
        _libc.prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        os.makedirs(os.path.join(folder, ".tmp"), exist_ok=True)
        os.chdir(folder)
        for kind, most in (
            (resource.RLIMIT_CPU, seconds),
            (resource.RLIMIT_AS, _MAX_MEMORY_BYTES),
            (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
            (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (most, most))
        confine(folder)
        forbid_sockets()
        os.execv("/bin/sh", ["sh", "-c", command])
    finally:
        os._exit(CANNOT_CONFINE)


def confine(folder: str) -> None:
    """From here on this process reads the system, and reads and writes this folder."""
    known = version()
    rights = max(mask for least, mask in _RIGHTS_BY_VERSION if known >= least)
    attributes = struct.pack("QQQ", rights, 0b11 if known >= 4 else 0, 0b11 if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = _checked(_libc.syscall(_CREATE, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0)))
    look = _EXECUTE | _READ | _READ_FOLDER
    for place in dict.fromkeys((*_SYSTEM, *_SYSTEM_FILES, sys.base_prefix, sys.prefix)):
        _allow(ruleset, place, (look | _WRITE if place.startswith("/dev/") else look) & rights)
    _allow(ruleset, folder, rights)
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)


def forbid_sockets() -> None:
    """From here on this process makes no sockets. Needs `confine` before it, which gives up new privileges."""
    machine, socket_call = _SYSTEM_CALLS[os.uname().machine]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, kill, refuse = 0x7FFF0000, 0x80000000, 0x00050000
    steps = (
        (load, 0, 0, 4),  # the machine that the call is made for
        (equal, 1, 0, machine),
        (give, 0, 0, kill),  # another one's numbers mean other calls
        (load, 0, 0, 0),  # the number of the call
        (at_least, 3, 0, _OTHER_NUMBERS),
        (equal, 2, 0, socket_call),
        (equal, 2, 0, _IO_URING_SETUP),
        (give, 0, 0, allow),
        (give, 0, 0, refuse | errno.EACCES),
        (give, 0, 0, refuse | errno.ENOSYS),
    )
    filter = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(filter))
    _checked(_libc.prctl(_SECCOMP, _WITH_FILTER, program, 0, 0))


def _allow(ruleset: int, place: str, rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
        granted = rights if os.path.isdir(place) else rights & _FILE_RIGHTS
        rule = struct.pack("=Qi", granted, opened)
        _checked(_libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0)))
        os.close(opened)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refused to confine the command")
    return result


def _told_to_end(_signal: int, _frame: FrameType | None) -> None:
    _kill_what_is_left()
    os._exit(128 + signal.SIGTERM)


def _kill_what_is_left() -> None:
    """Also what detached itself: an orphan becomes our child, because we adopt them."""
    while children := list(_children()):
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    yield int(name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

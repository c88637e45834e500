"""A process as the holder of its runs: its name, and how to tell that a holder is dead.

A lease alone would leave the runs of a killed process open for the lease's whole length. So the holder's name says on
which machine and as which process a run is held: on the same machine the process is looked for instead.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from everthread.core.ids import new_id
from everthread.core.turns import Turn


def holder_is_dead(turn: Turn, now: datetime) -> bool:
    """Whether the process that holds a run has ended for good."""
    if turn.lease_until is None or turn.lease_until < now:
        return True
    machine, pid, started, _ = (*turn.holder.split("|"), "", "", "")[:4]
    return machine == _machine() and pid.isdigit() and not _is_running(int(pid), started)


def holder_name() -> str:
    """A unique name for this process."""
    return "|".join((_machine(), str(os.getpid()), _start_time(os.getpid()), new_id()))


def _machine() -> str:
    """The host; on Linux also this boot of it, since machines may share a name, and the pid namespace, since containers
    of one machine do not see each other's processes."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return "/".join(parts)


def _start_time(pid: int) -> str:
    """When a process started, where the system tells: its pid may have been reused since. A process that has ended, and
    whose parent has not noticed yet, has no start time either."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "ended" if stat[0] == "Z" else stat[19]
    return ""


def _is_running(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, but it exists
        pass
    return started == _start_time(pid)

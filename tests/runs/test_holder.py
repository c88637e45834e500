"""Which processes count as dead."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everthread.core.turns import Turn, TurnState
from everthread.runs.holder import holder_is_dead, holder_name

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when processes started")
def test_a_killed_process_is_dead_before_its_parent_notices() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = Path(f"/proc/{child.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
        turn = Turn(
            id="t",
            conversation_id="c",
            state=TurnState.RUNNING,
            question_id="q",
            answer_id="a",
            received_at=NOW,
            holder=f"{holder_name().split('|')[0]}|{child.pid}|{started}|x",
            lease_until=NOW + timedelta(seconds=10),
        )
        assert not holder_is_dead(turn, NOW)
        child.kill()
        until = time.monotonic() + 10
        while not holder_is_dead(turn, NOW) and time.monotonic() < until:
            time.sleep(0.01)
        assert holder_is_dead(turn, NOW), "it is still in the table of processes, but ended"

"""Ctrl-C while summaries are being made: what was made is whole and stays, the rest was not begun."""

from __future__ import annotations

import os
import pty
import re
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import PATIENCE_SECONDS, Fork
from tests.contracts.views import turn

TURNS = 300


@pytest.fixture
def long_talk(fork: Fork, quick: Quick) -> Fork:
    """Many stretches to summarise."""
    said = [message for number in range(TURNS) for message in turn(number)]
    assert quick("append", "c", input=said).code == 0
    return fork


def leaves(quick: Quick) -> list[Any]:
    return [one for one in quick("compactions", "c", "--json").lines if one["level"] == 1]


def wait_for_summaries(quick: Quick, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(leaves(quick)) < count and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_ctrl_c_leaves_whole_summaries_and_the_same_command_goes_on(
    long_talk: Fork, quick: Quick, more: list[str]
) -> None:
    history = quick("show", "c", "--json").out
    with long_talk("compact", "c", *more) as process:
        wait_for_summaries(quick, 1)
        process.send_signal(signal.SIGINT)
        ran = process.rest()
    assert (ran.code, ran.out) == (130, "")
    some = r"the (?:1 summary made so far is|[1-9]\d+ summaries made so far are|[2-9] summaries made so far are) kept"
    said = rf"interrupted: {some}; the log is as it was, and the same command goes on\n"
    assert re.fullmatch("" if more else said, ran.err)
    made = leaves(quick)
    assert made[0]["first_seq"] == 1
    assert all(one["last_seq"] + 1 == following["first_seq"] for one, following in pairwise(made))
    assert 0 < made[-1]["last_seq"] < 4 * TURNS - 60, "it had come to its end before it was interrupted"
    assert quick("verify").code == 0
    assert quick("show", "c", "--json").out == history
    assert quick("compact", "c").code == 0
    finished = leaves(quick)
    assert [one["id"] for one in finished[: len(made)]] == [one["id"] for one in made]
    assert finished[-1]["last_seq"] > 4 * TURNS - 40


def test_ctrl_c_ends_a_replay_in_the_middle_of_its_bar(long_talk: Fork, quick: Quick, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text("max_message_history = 20\n")
    ours, theirs = pty.openpty()
    environment = {"TERM": "xterm", "COLUMNS": "80"}
    command = ("replay", "c", "--policy", str(policy))
    with long_talk(*command, env=environment, stderr=theirs) as process:
        os.close(theirs)
        drawn = b""
        while b"replaying" not in drawn:
            drawn += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        drawn += rest_of(ours)
        assert process.stdout.read() == b""
        assert process.wait() == 130
    os.close(ours)
    assert b"Traceback" not in drawn
    assert drawn.count(b"\x1b[?25h") >= drawn.count(b"\x1b[?25l") > 0, "the cursor stays hidden"
    assert leaves(quick) == []


def rest_of(terminal: int) -> bytes:
    written = b""
    try:
        while part := os.read(terminal, 65536):
            written += part
    except OSError:  # what Linux answers at the end
        pass
    return written

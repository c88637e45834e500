"""The program that gets killed: `python -m tests.crash.child URL SEED ACKS [--erases N] [--kill NAME:N] [--patient]`.

It works through a script and writes a line to a file after each call that was answered, before the next one is
made: what stands there was acknowledged. Started again on the same file, it goes on from the first step that was
not, as a caller who retries. `--kill` pulls the plug when the flow reaches a fail point for the N-th time. `--patient`
makes it retry by itself when the server goes away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import everthread
from everthread import Everthread, NotFound, StoreGone
from everthread.core import failpoints
from tests.crash.script import Lane, Step, script
from tests.crash.verbs import Answer, do


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is left to do of a lane."""

    lane: Lane
    done: int
    """How many of its steps were acknowledged."""
    is_retry: bool
    """Whether the first step that is left may have been begun by a child that died."""
    is_patient: bool
    """Whether a step is made again when the server goes away."""


def run_script(url: str, seed: int, acks: str, erases: int, kill: str | None = None, patient: bool = False) -> None:
    """Work through the rest of a script."""
    if kill is not None:
        failpoints.arm(plug(kill))
    told = read_acks(Path(acks))
    is_retry = os.path.exists(acks)
    lines = os.open(acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    work = [
        Work(lane=lane, done=len(told.get(lane.name, ())), is_retry=is_retry, is_patient=patient)
        for lane in script(seed, erases)
    ]
    try:
        asyncio.run(_work(url, work, lines))
    except StoreGone:  # of a lane it would be in a group; so the server died while the child closed
        if not patient:
            raise
    finally:
        os.close(lines)


def plug(kill: str) -> Callable[[str], None]:
    """A trap that kills this process when `name:n` is reached for the n-th time."""
    name, _, nth = kill.partition(":")
    reaches = count(1)

    def trap(reached: str) -> None:
        if reached == name and next(reaches) == int(nth):
            os.kill(os.getpid(), signal.SIGKILL)

    return trap


async def _work(url: str, lanes: Sequence[Work], lines: int) -> None:
    async with everthread.open(url) as et, asyncio.TaskGroup() as group:
        for work in lanes:
            group.create_task((_work_off_record if work.lane.is_off_record else _work_lane)(et, work, lines))


async def _work_off_record(et: Everthread, work: Work, lines: int) -> None:
    """A child that was stopped by a signal has erased it when it closed: then there is nothing to go on with."""
    try:
        await _work_lane(et, work, lines)
    except NotFound:
        if not work.is_retry:
            raise


async def _work_lane(et: Everthread, work: Work, lines: int) -> None:
    for number, step in enumerate(work.lane.steps[work.done :], start=work.done):
        answer = await _answered(et, work, step, again=work.is_retry and number == work.done)
        os.write(lines, (json.dumps({"lane": work.lane.name, "step": number, "answer": answer}) + "\n").encode())


async def _answered(et: Everthread, work: Work, step: Step, *, again: bool) -> Answer:
    while True:
        try:
            return await do(et, work.lane, step, again=again)
        except StoreGone:
            if not work.is_patient:
                raise
        await asyncio.sleep(0.05)
        again = True


def read_acks(path: Path) -> dict[str, list[Any]]:
    """The answers each lane was given, in the order of its steps."""
    told: dict[str, list[Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        said = json.loads(line)
        answers = told.setdefault(said["lane"], [])
        assert said["step"] == len(answers), f"{said['lane']} skipped a step"
        answers.append(said["answer"])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.child", description=__doc__)
    parser.add_argument("url")
    parser.add_argument("seed", type=int)
    parser.add_argument("acks")
    parser.add_argument("--erases", type=int, default=1)
    parser.add_argument("--kill", metavar="NAME:N")
    parser.add_argument("--patient", action="store_true")
    run_script(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()

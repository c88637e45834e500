"""Work beside turns: it is done, its errors arrive, and the interpreter is left as it was found."""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import pairwise

import pytest

from everthread.core.background import CpuShare, run_in_background


async def test_threads_change_hands_more_often_while_something_is_worked_on_and_no_longer() -> None:
    before = sys.getswitchinterval()
    seen = await asyncio.gather(*(run_in_background(sys.getswitchinterval) for _ in range(3)))
    assert all(interval < before for interval in seen)
    assert sys.getswitchinterval() == pytest.approx(before)


async def test_an_error_arrives_and_leaves_the_interpreter_as_it_was() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError):
        await run_in_background(divmod, 1, 0)
    assert sys.getswitchinterval() == pytest.approx(before)


def spin(seconds: float) -> tuple[float, float]:
    """Take the processor for so long; when it was begun and ended."""
    began, until = time.monotonic(), time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    return began, time.monotonic()


async def test_what_a_worker_does_leaves_the_rest_of_its_share_to_others() -> None:
    share = CpuShare(0.25)
    with share.applied():
        pieces = [await run_in_background(spin, 0.02) for _ in range(3)]
    for (_, ended), (begun, _) in pairwise(pieces):
        assert begun - ended >= 3 * 0.02 * 0.9


async def test_two_jobs_together_keep_to_one_share() -> None:
    share = CpuShare(0.5)

    async def job() -> list[tuple[float, float]]:
        with share.applied():
            return [await run_in_background(spin, 0.01) for _ in range(3)]

    pieces = sorted(piece for pieces in await asyncio.gather(job(), job()) for piece in pieces)
    assert all(ended < begun for (_, ended), (begun, _) in pairwise(pieces))


async def test_what_somebody_waits_for_is_not_kept_to_the_share_of_a_worker() -> None:
    share = CpuShare(0.05)
    with share.applied():
        await run_in_background(spin, 0.05)  # after which a worker pauses for a second
    began = time.monotonic()
    await run_in_background(spin, 0.0)
    assert time.monotonic() - began < 0.5


async def test_an_error_of_a_worker_arrives_too() -> None:
    with CpuShare(0.5).applied(), pytest.raises(ZeroDivisionError):
        await run_in_background(divmod, 1, 0)

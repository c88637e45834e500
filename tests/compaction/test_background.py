"""Work beside turns: it is done, its errors arrive, and the interpreter is left as it was found."""

from __future__ import annotations

import asyncio
import sys

import pytest

from everthread.compaction.background import run_in_background


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

"""Pause the garbage collector while thousands of messages are built. A measured trick, kept here alone.

What it gives: all of these objects stay, and the collector would look through the whole process again and again
meanwhile, and take longer than the building. Without it a turn on a thread of 1,000 turns takes 1.4 times the CPU
(docs/decisions/0024). For few objects it would cost: one look at all of them afterwards takes four times as long as
looking at what was made last.

To remove it: set `ENABLED` to False, then delete this module and its two `with` statements.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ENABLED = True

_MIN_OBJECTS = 1_000


@contextmanager
def gc_paused(object_count: int) -> Iterator[None]:
    """Around the building of so many objects that all stay; does nothing for few."""
    if not ENABLED or object_count <= _MIN_OBJECTS or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

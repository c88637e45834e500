"""A process of its own for the work that waits: what `everthread worker` runs."""

from __future__ import annotations

from everthread.worker.process import until_told_to_stop

__all__ = ["until_told_to_stop"]

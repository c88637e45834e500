"""`everthread demo`: a long conversation outlives a framework that summarises it away.

A scripted model talks for sixty turns through LangChain's `create_agent` with its `SummarizationMiddleware`, which
removes what it has summarised. `archive_stream` captures the stream. At the end three counts stand side by side: the
messages really said, those left in the checkpoint, and those in the log.
"""

from __future__ import annotations

from everthread.demo.play import run
from everthread.demo.report import DemoResult, DemoSearch, render

__all__ = ["DemoResult", "DemoSearch", "render", "run"]

"""What `everthread demo` shows: a long conversation outlives a framework that summarises it away.

A scripted model talks for sixty turns through LangChain's `create_agent` with its `SummarizationMiddleware`, which
removes what it has summarised. `archive_stream` captures the stream. In the end three counts stand side by side: what
was really said, what the checkpoint still has, and what the log has.
"""

from __future__ import annotations

from everthread.demo.play import run
from everthread.demo.result import DemoResult, DemoSearch
from everthread.demo.show import render

__all__ = ["DemoResult", "DemoSearch", "render", "run"]

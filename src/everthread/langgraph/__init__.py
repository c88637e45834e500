"""LangGraph: everything its graphs say, kept beside any checkpointer. Needs the extra `everthread[langgraph]`."""

from __future__ import annotations

from everthread.langgraph.archiving_saver import ArchivingSaver
from everthread.langgraph.lifecycle import open_sync, run_sync
from everthread.langgraph.saver import EverthreadSaver, EverthreadStore, make_saver
from everthread.langgraph.stream import archive_stream

__all__ = [
    "ArchivingSaver",
    "EverthreadSaver",
    "EverthreadStore",
    "archive_stream",
    "make_saver",
    "open_sync",
    "run_sync",
]

"""LangGraph: everything its graphs say, kept beside any checkpointer. Needs the extra `everthread[langgraph]`."""

from __future__ import annotations

try:
    from everthread.langgraph.archiving_saver import ArchivingSaver
    from everthread.langgraph.lifecycle import open_sync, run_sync
    from everthread.langgraph.saver import EverthreadSaver, EverthreadStore, make_saver
    from everthread.langgraph.stream import archive_stream
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        f"everthread.langgraph needs an extra: pip install 'everthread[langgraph]' ({problem})", name=problem.name
    ) from problem

__all__ = [
    "ArchivingSaver",
    "EverthreadSaver",
    "EverthreadStore",
    "archive_stream",
    "make_saver",
    "open_sync",
    "run_sync",
]

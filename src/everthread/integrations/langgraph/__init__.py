"""LangGraph: everything its graphs say, kept beside any checkpointer. Needs the extra `everthread[langgraph]`."""

from __future__ import annotations

from everthread.integrations.langgraph.archiving import ArchivingSaver
from everthread.integrations.langgraph.saver import EverthreadSaver, make_saver
from everthread.integrations.langgraph.store import EverthreadStore
from everthread.integrations.langgraph.stream import archive_stream

__all__ = ["ArchivingSaver", "EverthreadSaver", "EverthreadStore", "archive_stream", "make_saver"]

"""LangGraph: everything its graphs say, kept beside any checkpointer. Needs the extra `everthread[langgraph]`."""

from __future__ import annotations

from everthread.langgraph.archiving import ArchivingSaver
from everthread.langgraph.saver import EverthreadSaver, make_saver
from everthread.langgraph.store import EverthreadStore
from everthread.langgraph.stream import archive_stream
from everthread.langgraph.sync import opened

__all__ = ["ArchivingSaver", "EverthreadSaver", "EverthreadStore", "archive_stream", "make_saver", "opened"]

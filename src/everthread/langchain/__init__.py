"""LangChain: its messages from our stored ones, and the way back. Needs the extra `everthread[langchain]`."""

from __future__ import annotations

from everthread.adapters.checkpoints.payloads import from_langchain
from everthread.langchain.middleware import DEEPAGENTS_SLOT, EverthreadMiddleware
from everthread.langchain.reviving import to_langchain
from everthread.langgraph.sync import opened

__all__ = ["DEEPAGENTS_SLOT", "EverthreadMiddleware", "from_langchain", "opened", "to_langchain"]

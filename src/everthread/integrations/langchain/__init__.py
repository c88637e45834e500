"""LangChain: its messages from our stored ones, and the way back. Needs the extra `everthread[langchain]`."""

from __future__ import annotations

from everthread.adapters.checkpoints.payloads import from_langchain
from everthread.integrations.langchain.middleware import DEEPAGENTS_SLOT, EverthreadMiddleware
from everthread.integrations.langchain.reviving import to_langchain

__all__ = ["DEEPAGENTS_SLOT", "EverthreadMiddleware", "from_langchain", "to_langchain"]

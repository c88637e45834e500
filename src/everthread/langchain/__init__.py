"""LangChain: its messages from our stored ones, and the way back. Needs the extra `everthread[langchain]`."""

from __future__ import annotations

try:
    from everthread.adapters.checkpoints.langchain_json import from_langchain
    from everthread.langchain.messages import to_langchain
    from everthread.langchain.middleware import DEEPAGENTS_SLOT, EverthreadMiddleware
    from everthread.langgraph.lifecycle import open_sync
except ModuleNotFoundError as problem:
    raise ModuleNotFoundError(
        f"everthread.langchain needs an extra: pip install 'everthread[langchain]' ({problem})", name=problem.name
    ) from problem

__all__ = ["DEEPAGENTS_SLOT", "EverthreadMiddleware", "from_langchain", "open_sync", "to_langchain"]

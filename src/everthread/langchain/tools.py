"""The agent functions as LangChain tools: an agent searches and opens its own past, has its context shrunk, and
remembers what is worth it of its user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from langchain_core.tools import BaseTool, StructuredTool

from everthread import agent_tools
from everthread.agent_tools import AgentToolAnswer
from everthread.conversation import Conversation

Ask = Callable[[Conversation], Awaitable[AgentToolAnswer]]
Wait = Callable[[Ask], str]
"""Does something with the conversation of the running agent, and gives the text for the model."""
AsyncWait = Callable[[Ask], Awaitable[str]]


def history_tools(wait: Wait, await_: AsyncWait) -> list[BaseTool]:
    """The three tools, blocking and async."""
    return [_search(wait, await_), _open(wait, await_), _compress(wait, await_)]


def memory_tools(wait: Wait, await_: AsyncWait) -> list[BaseTool]:
    """The two tools of long-term memory, blocking and async."""
    return [_remember(wait, await_), _forget(wait, await_)]


def _search(wait: Wait, await_: AsyncWait) -> BaseTool:
    def ask(query: str, limit: int) -> Ask:
        return lambda conversation: agent_tools.history_search(conversation, query, limit=limit)

    def search(query: str, limit: int = 10) -> str:
        """Find messages of this conversation, however old, by their words."""
        return wait(ask(query, limit))

    async def asearch(query: str, limit: int = 10) -> str:
        return await await_(ask(query, limit))

    return StructuredTool.from_function(search, asearch, name="history_search")


def _open(wait: Wait, await_: AsyncWait) -> BaseTool:
    def ask(**what: object) -> Ask:
        return lambda conversation: agent_tools.history_open(conversation, **what)  # type: ignore[arg-type]

    def open_(
        seq: int | None = None,
        last_seq: int | None = None,
        message_id: str | None = None,
        summary_id: str | None = None,
        offset: int = 0,
    ) -> str:
        """Show earlier messages as they were: one (seq or message_id), a stretch (seq to last_seq), or what a summary
        was made from (summary_id). A long message is shown by parts: offset is a number of characters.
        """
        return wait(ask(seq=seq, last_seq=last_seq, message_id=message_id, summary_id=summary_id, offset=offset))

    async def aopen(
        seq: int | None = None,
        last_seq: int | None = None,
        message_id: str | None = None,
        summary_id: str | None = None,
        offset: int = 0,
    ) -> str:
        return await await_(
            ask(seq=seq, last_seq=last_seq, message_id=message_id, summary_id=summary_id, offset=offset)
        )

    return StructuredTool.from_function(open_, aopen, name="history_open")


def _compress(wait: Wait, await_: AsyncWait) -> BaseTool:
    def compress() -> str:
        """Summarise the older part of this conversation now, so that the context gets smaller. Nothing is lost."""
        return wait(agent_tools.compress_context)

    async def acompress() -> str:
        return await await_(agent_tools.compress_context)

    return StructuredTool.from_function(compress, acompress, name="compress_context")


def _remember(wait: Wait, await_: AsyncWait) -> BaseTool:
    def ask(text: str, kind: str, subject: str | None) -> Ask:
        return lambda conversation: agent_tools.remember(conversation, text, kind=kind, subject=subject)

    def remember(text: str, kind: str = "fact", subject: str | None = None) -> str:
        """Remember something lasting about the user for later conversations, in one sentence. kind: fact, preference,
        profile (who they are) or instruction (how to serve them). subject: what it is about, such as name; what
        was known of the same subject before becomes its past.
        """
        return wait(ask(text, kind, subject))

    async def aremember(text: str, kind: str = "fact", subject: str | None = None) -> str:
        return await await_(ask(text, kind, subject))

    return StructuredTool.from_function(remember, aremember, name="remember")


def _forget(wait: Wait, await_: AsyncWait) -> BaseTool:
    def ask(memory: str) -> Ask:
        return lambda conversation: agent_tools.forget(conversation, memory)

    def forget(memory: str) -> str:
        """Forget what is remembered of the user: by the id that a memory is shown with, or find it by its words."""
        return wait(ask(memory))

    async def aforget(memory: str) -> str:
        return await await_(ask(memory))

    return StructuredTool.from_function(forget, aforget, name="forget")

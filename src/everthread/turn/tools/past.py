"""The conversation's own past, and its summing up: `agent_functions` as tools of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread import agent_tools
from everthread.agent_tools import Answer
from everthread.core.errors import Invalid
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool


def tools(desk: Desk) -> Sequence[BaseTool]:
    return [as_tool(function, desk=desk) for function in (history_search, history_open, compress_context)]


async def history_search(
    desk: Desk,
    query: Annotated[str, Field(description="words that were said")],
    limit: Annotated[int, Field(ge=1, description="how many at most")] = 10,
) -> str:
    """Find messages of this conversation, however old, by their words."""
    return text_of(await agent_tools.history_search(desk.conversation, query, limit=limit))


async def history_open(
    desk: Desk,
    seq: Annotated[int | None, Field(description="the number of a message")] = None,
    last_seq: Annotated[int | None, Field(description="where a stretch from seq ends")] = None,
    message_id: str | None = None,
    summary_id: Annotated[str | None, Field(description="a summary, to see what it was made from")] = None,
    offset: Annotated[int, Field(ge=0, description="in characters, for a long message")] = 0,
) -> str:
    """Show earlier messages as they were: one (seq or message_id), a stretch (seq to last_seq), or what a summary was
    made from (summary_id). A long message is shown by parts."""
    return text_of(
        await agent_tools.history_open(
            desk.conversation,
            seq=seq,
            last_seq=last_seq,
            message_id=message_id,
            summary_id=summary_id,
            offset=offset,
        )
    )


async def compress_context(desk: Desk) -> str:
    """Sum up the older part of this conversation now, so that the context gets smaller. Nothing is lost."""
    return text_of(await agent_tools.compress_context(desk.conversation))


def text_of(answer: Answer) -> str:
    """What a model reads of an answer; Invalid where nothing was done."""
    if answer.is_error:
        raise Invalid(answer.text)
    return answer.text

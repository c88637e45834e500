"""What is worth knowing of the user in later conversations: `agent_functions` as tools of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import BaseTool
from pydantic import Field

from everthread import agent_functions
from everthread.core.errors import Invalid
from everthread.turn.tools.desk import Desk
from everthread.turn.tools.shaping import as_tool


def tools(desk: Desk) -> Sequence[BaseTool]:
    """Off the record nothing is remembered, so nothing is offered that would."""
    if desk.conversation.off_record:
        return []
    return [as_tool(function, desk=desk) for function in (remember, forget)]


async def remember(
    desk: Desk,
    text: Annotated[str, Field(description="one short sentence that can stand alone")],
    kind: Annotated[str, Field(description="fact, preference, profile (who they are) or instruction")] = "fact",
    subject: Annotated[
        str | None, Field(description="what it is about, such as name; the newest of one counts")
    ] = None,
) -> str:
    """Remember something lasting about the user for later conversations."""
    answer = await agent_functions.remember(desk.conversation, text, kind=kind, subject=subject)
    if answer.is_error:
        raise Invalid(answer.text)
    return answer.text


async def forget(
    desk: Desk, memory: Annotated[str, Field(description="the id that the memory is shown with, or some of its words")]
) -> str:
    """Forget what is remembered of the user."""
    answer = await agent_functions.forget(desk.conversation, memory)
    if answer.is_error:
        raise Invalid(answer.text)
    return answer.text

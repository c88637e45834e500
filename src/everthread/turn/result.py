"""What an answer says about itself, for programs: kept on the assistant's message, filled by tools and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from everthread.core.turns import MESSAGE_KEY

DESCRIBE_RESULT = "describe_result"


class Visualization(TypedDict, total=False):
    """A picture that was made."""

    success: bool
    image_url: str | None
    pdf_url: str | None
    data_url: str | None


class Analysis(TypedDict, total=False):
    """What was found in data."""

    analysis: str
    insights: list[str]
    recommendations: list[str]
    possible_analyses: list[str]


class ResultMetadata(TypedDict, total=False):
    """The result metadata of an assistant's message."""

    needs_info: bool
    """The answer asks for something without which it cannot go on."""
    missing_params: list[str]
    suggestions: list[str]
    visual_request: bool
    """The question asked for a picture."""
    visualization: Visualization
    analysis: Analysis


RESULT_FIELDS = tuple(ResultMetadata.__annotations__)


def result_metadata(payload: Mapping[str, Any]) -> ResultMetadata:
    """The result metadata of a stored message; empty when it has none."""
    extra = payload.get("additional_kwargs")
    about = extra.get(MESSAGE_KEY) if isinstance(extra, Mapping) else None
    result = about.get("result") if isinstance(about, Mapping) else None
    return cast(ResultMetadata, dict(result)) if isinstance(result, Mapping) else ResultMetadata()


@tool(DESCRIBE_RESULT)
def describe_result(
    call_id: Annotated[str, InjectedToolCallId],
    needs_info: bool = False,
    missing_params: list[str] | None = None,
    suggestions: list[str] | None = None,
    visual_request: bool = False,
    analysis: str = "",
    insights: list[str] | None = None,
    recommendations: list[str] | None = None,
    possible_analyses: list[str] | None = None,
) -> Command[Any]:
    """Describe the answer you are about to give: what is missing to answer (needs_info, missing_params), what the user
    could ask next (suggestions), whether a picture was asked for, and what an analysis found."""
    result: dict[str, Any] = {
        "needs_info": needs_info,
        "missing_params": missing_params or [],
        "suggestions": suggestions or [],
        "visual_request": visual_request,
    }
    if analysis or insights or recommendations or possible_analyses:
        result["analysis"] = {
            "analysis": analysis,
            "insights": insights or [],
            "recommendations": recommendations or [],
            "possible_analyses": possible_analyses or [],
        }
    message = ToolMessage("noted; now answer in words", name=DESCRIBE_RESULT, tool_call_id=call_id)
    return Command(update={"result": result, "messages": [message]})

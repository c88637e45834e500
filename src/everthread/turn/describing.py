"""The tool by which an answer says about itself what programs want to know (`results.py`)."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

NAME = "describe_result"


@tool(NAME)
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
    found: dict[str, Any] = {
        "needs_info": needs_info,
        "missing_params": missing_params or [],
        "suggestions": suggestions or [],
        "visual_request": visual_request,
    }
    if analysis or insights or recommendations or possible_analyses:
        found["analysis"] = {
            "analysis": analysis,
            "insights": insights or [],
            "recommendations": recommendations or [],
            "possible_analyses": possible_analyses or [],
        }
    said = ToolMessage("noted; now answer in words", name=NAME, tool_call_id=call_id)
    return Command(update={"result": found, "messages": [said]})

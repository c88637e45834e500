"""What an answer says about itself, for programs: kept on the assistant's message, filled by tools and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypedDict, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from everthread.core.turns import MESSAGE_KEY

DESCRIBE_RESULT: Final = "describe_result"
PLOT: Final = "plot"


class Visualization(TypedDict, total=False):
    """A picture that was made, or why there is none."""

    success: bool
    title: str
    image_url: str | None
    """Where the service answers with the PNG."""
    pdf_url: str | None
    data_url: str | None
    """The numbers as CSV."""
    image_path: str | None
    """The same in the conversation's workspace, for programs without a service."""
    pdf_path: str | None
    data_path: str | None
    error: str


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
    visual_request: dict[str, Any] | bool | None
    """The picture that the question asked for, in the model's words; None when it asked for none."""
    visualization: Visualization
    """The newest picture of the turn."""
    visualizations: list[Visualization]
    """All of them, in the order in which they were made."""
    analysis: Analysis
    is_cut: bool
    """The model reached its output limit, so the answer ends where it stopped."""


RESULT_FIELDS = tuple(ResultMetadata.__annotations__)


def drawn(visualization: Mapping[str, Any]) -> dict[str, Any]:
    """A picture as a part of the result."""
    return {"visualization": dict(visualization), "visualizations": [dict(visualization)]}


def not_drawn(arguments: Mapping[str, Any], error: str) -> dict[str, Any]:
    """A picture that could not be made, whatever the reason."""
    title = arguments.get("title")
    about = {"title": title} if isinstance(title, str) else {}
    return drawn({"success": False, **about, "image_url": None, "pdf_url": None, "data_url": None, "error": error})


def merge_results(known: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What several tools say of one answer: each field as the last one says it, and the pictures of all."""
    pictures = [*known.get("visualizations", ()), *new.get("visualizations", ())]
    return {**known, **new, **({"visualizations": pictures} if pictures else {})}


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
    visual_request: dict[str, Any] | bool | None = None,
    analysis: str = "",
    insights: list[str] | None = None,
    recommendations: list[str] | None = None,
    possible_analyses: list[str] | None = None,
) -> Command[Any]:
    """Describe the answer you are about to give: what is missing to answer (needs_info, missing_params), what the user
    could ask next (suggestions), which picture was asked for (visual_request, such as {"type": "bar", "of": "sales"}),
    and what an analysis found."""
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

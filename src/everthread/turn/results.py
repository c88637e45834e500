"""What an answer says about itself, for programs: kept on the assistant's message, filled by tools and nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from everthread.core.turns import MESSAGE_KEY


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


class Result(TypedDict, total=False):
    """The result metadata of an assistant's message."""

    needs_info: bool
    """The answer asks for something without which it cannot go on."""
    missing_params: list[str]
    suggestions: list[str]
    visual_request: bool
    """The question asked for a picture."""
    visualization: Visualization
    analysis: Analysis


FIELDS = tuple(Result.__annotations__)


def result_of(payload: Mapping[str, Any]) -> Result:
    """The result metadata of a stored message; empty when it has none."""
    extra = payload.get("additional_kwargs")
    kept = extra.get(MESSAGE_KEY) if isinstance(extra, Mapping) else None
    found = kept.get("result") if isinstance(kept, Mapping) else None
    return cast(Result, dict(found)) if isinstance(found, Mapping) else Result()

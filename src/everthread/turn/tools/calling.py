"""Calling a function so that nothing it does ends the turn: whatever happens comes back as words for the model.

Arguments that do not fit, an error, a tool that hangs: each becomes a `ToolException`, which LangChain answers to the
call as a result with `status="error"`. Only being cancelled goes through, and takes the function with it.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import ValidationError
from pydantic.v1 import ValidationError as OldValidationError

from everthread.core.errors import EverthreadError
from everthread.text.secrets import redact_secrets

Result = TypeVar("Result")
Theirs = bool | str | Callable[[ToolException], Any] | None
_GRACE_SECONDS = 2.0
"""How long a tool that is given up may take to put things in order."""
_MAX_ERROR_CHARACTERS = 2_000
_MOST_MISFITS = 10
_PYDANTIC_LINK = re.compile(r"\s*For further information visit \S+")


class Refused(ToolException):
    """What a call came to, in words for the model."""


async def watched(name: str, work: Awaitable[Result], seconds: float) -> Result:
    """The result of the work, or Refused."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)
            raise Refused(f"{name} was given up after {seconds:g} seconds; try something smaller")
    finally:
        task.cancel()
    if task.cancelled():
        raise Refused(f"{name} was cancelled")
    problem = task.exception()  # a value: a tool may raise anything
    if isinstance(problem, ToolException):
        raise problem
    if problem is not None:
        raise Refused(told(name, problem)) from problem
    return task.result()


def told(name: str, problem: BaseException) -> str:
    """What went wrong, in words that help a model to do better, without secrets."""
    said = str(problem) if isinstance(problem, EverthreadError) else f"{type(problem).__name__}: {problem}"
    clean = redact_secrets(_PYDANTIC_LINK.sub("", said))[:_MAX_ERROR_CHARACTERS]
    return clean if clean.startswith(f"{name}: ") else f"{name} failed: {clean}"


def guarded(tool: BaseTool, seconds: float) -> BaseTool:
    """Somebody else's tool, with the same care."""
    if not isinstance(tool, StructuredTool) or tool.coroutine is None:
        return explained(tool)
    inner = tool.coroutine

    @functools.wraps(inner)
    async def call(*args: Any, **given: Any) -> Any:
        return await watched(tool.name, inner(*args, **given), seconds)

    return explained(tool.model_copy(update={"coroutine": call}))


def explained(tool: BaseTool) -> BaseTool:
    """The same tool, which answers arguments that do not fit with what would."""

    def misfits(problem: ValidationError | OldValidationError) -> str:
        errors = problem.errors()[:_MOST_MISFITS]
        wrong = "; ".join(f"{'.'.join(map(str, error['loc'])) or 'all'}: {error['msg']}" for error in errors)
        return f"{tool.name}: the arguments do not fit: {wrong}. It takes: {_takes(tool)}"

    answered = _answered(tool.handle_tool_error)
    return tool.model_copy(update={"handle_validation_error": misfits, "handle_tool_error": answered})


def _answered(theirs: Theirs) -> Callable[[ToolException], Any]:
    """What is refused here is told; what the tool itself reports is told as it wants it told."""

    def answer(problem: ToolException) -> Any:
        if isinstance(problem, Refused) or isinstance(theirs, bool | None):
            return str(problem)
        return theirs if isinstance(theirs, str) else theirs(problem)

    return answer


def _takes(tool: BaseTool) -> str:
    fields = tool.args.items()
    return ", ".join(f"{name} (optional)" if "default" in field else name for name, field in fields) or "nothing"

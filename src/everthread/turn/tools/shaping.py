"""A function as a tool, and what it returns as what a model can read.

Whatever comes back is kept whole in the log: text as it is (a long one is an excerpt in the model's view, with the call
that opens the rest), bytes beside the text, as the message's artifact. What a tool noted down for the graph goes with
its result, as a `Command`.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, NamedTuple

import orjson
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.types import Command

from everthread.core.tools import WHEN_NAMED, Offered, ToolPolicy
from everthread.turn.tools.calling import explained, watched
from everthread.turn.tools.desk import Desk

SECONDS = "seconds"
"""In a tool's metadata: how long the graph waits for it, when that is not what it always does."""
MAX_CHARACTERS = 64_000_000
"""Of one result: a log that swallows more for one call helps nobody."""
_MARGIN_SECONDS = 5.0
_BLOCKS = frozenset({"text", "image", "image_url", "file", "audio", "video", "document", "json"})
_CALL_ID = "tool_call_id"

Content = str | list[str | dict[Any, Any]]
Shaped = tuple[Content, Any]
"""What the model reads, and what is kept beside it."""


def as_tool(
    function: Callable[..., Any],
    *,
    desk: Desk | None = None,
    name: str | None = None,
    description: str | None = None,
    offered: Offered = "always",
    timeout_seconds: float | None = None,
) -> BaseTool:
    """The function as a tool of this turn; its parameter `desk`, if it has one, is filled in and not shown."""
    called = name or function.__name__
    policy = ToolPolicy() if desk is None else desk.policy
    seconds = policy.timeout_seconds if timeout_seconds is None else timeout_seconds
    plan = _plan(function, called)
    filled = {"desk": desk} if plan.takes_desk else {}

    async def call(tool_call_id: str, **given: Any) -> tuple[Content | Command[Any], Any]:
        result = shaped(await watched(called, _work(function, {**given, **filled}), seconds))
        return result if desk is None else _handed_on(desk, called, tool_call_id, result)

    made = StructuredTool(
        coroutine=call,
        name=called,
        description=description or inspect.getdoc(function) or called,
        args_schema=plan.schema,
        response_format="content_and_artifact",
        tags=[WHEN_NAMED] if offered == "when_named" else [],
        metadata={SECONDS: seconds + _MARGIN_SECONDS},
    )
    return explained(made)


class _Plan(NamedTuple):
    """What is the same for a function in every turn."""

    schema: Any
    takes_desk: bool


@lru_cache(maxsize=512)
def _plan(function: Callable[..., Any], name: str) -> _Plan:
    """Made once: a schema takes longer to make than the rest of a turn's tools."""
    signature = inspect.signature(function)
    filled = {"desk"} & set(signature.parameters)

    async def call() -> None: ...

    hints = {key: kind for key, kind in _hints(function).items() if key not in filled and key != "return"}
    shown = [
        one.replace(annotation=hints.get(key, one.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for key, one in signature.parameters.items()
        if key not in filled
    ]
    hidden = inspect.Parameter(_CALL_ID, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[str, InjectedToolCallId])
    call.__signature__ = inspect.Signature([hidden, *shown])  # type: ignore[attr-defined]
    call.__annotations__ = {_CALL_ID: hidden.annotation, **hints}
    call.__name__, call.__doc__ = name, function.__doc__ or name
    return _Plan(StructuredTool.from_function(coroutine=call, name=name).args_schema, bool(filled))


def _work(function: Callable[..., Any], given: Mapping[str, Any]) -> Awaitable[Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(target):
        work: Awaitable[Any] = function(**given)
        return work
    return asyncio.to_thread(functools.partial(function, **given))


def _handed_on(desk: Desk, name: str, call_id: str, result: Shaped) -> tuple[Content | Command[Any], Any]:
    """With what the workspace has to tell before it, and what the graph is to know beside it."""
    content, artifact = result
    notices = desk.files.take_notices()
    if notices and isinstance(content, str):
        content = "\n".join([*(f"[{notice}]" for notice in notices), content])
    changes = desk.notes.take_changes()
    if not changes:
        return content, artifact
    message = ToolMessage(content=content, artifact=artifact, name=name, tool_call_id=call_id)
    return Command(update={**changes, "messages": [message]}), None


def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of its parameters, resolved where it was written."""
    target = function if inspect.isroutine(function) else type(function).__call__
    return inspect.get_annotations(target, eval_str=True)


def shaped(value: Any) -> Shaped:
    """What a tool returned, for the model and for the log."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | list):
        return value
    if isinstance(value, str):
        return _text(value), None
    if isinstance(value, bytes | bytearray | memoryview):
        return _binary(bytes(value))
    if _is_blocks(value):
        return list(value), None
    return ("Done." if value is None else _text(_as_json(value))), None


def _is_blocks(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return is_list and all(isinstance(one, Mapping) and one.get("type") in _BLOCKS for one in value)  # type: ignore[attr-defined]


def _text(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[cut: {len(text) - MAX_CHARACTERS:,} more characters were not kept]"


def _binary(body: bytes) -> Shaped:
    """A line for the model, and the bytes themselves beside it."""
    kept = {"type": "bytes", "sha256": sha256(body).hexdigest(), "base64": base64.b64encode(body).decode()}
    return f"{len(body):,} bytes that are no text, kept whole in the log (sha256 {kept['sha256']}).", kept


def _as_json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2).decode()
    except (TypeError, ValueError):  # a circle, a lone surrogate, a key of some other kind
        return str(value)

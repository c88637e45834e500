"""A function as a tool that cannot end the turn: whatever happens in it comes back as text that the model can read.

- Invalid arguments, an error, a tool that hangs: each becomes a `ToolException`, which LangChain answers to the call as
  a result with `status="error"`. Only a cancellation goes through, and takes the function with it.
- What a function returns is kept whole in the log: text as it is (in the model's view a long one is an excerpt, with
  the call that opens the rest), bytes beside the text, as the message's artifact.
- Changes of the graph's state that a function made go with its result, as a `Command`.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, NamedTuple, TypeVar

import orjson
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langgraph.types import Command
from pydantic import BaseModel, ValidationError
from pydantic.v1 import ValidationError as OldValidationError

from everthread.core.errors import EverthreadError
from everthread.core.payloads import block_type
from everthread.core.tools import WHEN_NAMED, ToolPolicy, WhenOffered
from everthread.text.secrets import redact_secrets
from everthread.turn.tools.tool_context import ToolContext

MAX_CHARACTERS = 64_000_000
"""Of one result: a log that takes more for one call helps nobody."""
_CONTEXT = "tool_context"
"""The parameter that the turn fills in; models are not shown it."""
_CALL_ID = "tool_call_id"
_MARGIN_SECONDS = 5.0
"""The graph waits this much longer than the tool, whose own timeout says more."""
_GRACE_SECONDS = 2.0
"""How long a tool that timed out may take to clean up."""
_MAX_ERROR_CHARACTERS = 2_000
_MAX_ARGUMENT_ERRORS = 10
_PYDANTIC_LINK = re.compile(r"(?<!\s)\s*+For further information visit \S+")
_BLOCKS = frozenset({"text", "image", "image_url", "file", "audio", "video", "document", "json"})

OUTSIDE = "outside_tool"
"""The tag of tools that others run: their results are entered as coming from outside."""

T = TypeVar("T")
Content = str | list[str | dict[Any, Any]]
ContentAndArtifact = tuple[Content, Any]
"""What the model reads, and what is kept beside it."""


class ToolFailure(ToolException):
    """Why a call gave no result, in words for the model."""


# -- our functions -----------------------------------------------------------------------------------------


def as_tool(
    function: Callable[..., Any],
    *,
    tool_context: ToolContext | None = None,
    name: str | None = None,
    description: str | None = None,
    offered: WhenOffered = "always",
    timeout_seconds: float | None = None,
) -> BaseTool:
    """The function as a tool of this turn; its parameter `tool_context`, if it has one, is filled in and not shown."""
    tool_name = name or function.__name__
    policy = ToolPolicy() if tool_context is None else tool_context.policy
    seconds = policy.timeout_seconds if timeout_seconds is None else timeout_seconds
    schema, takes_context = _schema_of(function, tool_name)
    injected = {_CONTEXT: tool_context} if takes_context else {}

    async def call(tool_call_id: str, **arguments: Any) -> tuple[Content | Command[Any], Any]:
        value = await run_within(tool_name, _start(function, {**arguments, **injected}), seconds)
        content, artifact = format_result(value)
        if tool_context is None:
            return content, artifact
        notices = tool_context.files.take_notices()
        if notices and isinstance(content, str):
            content = "\n".join([*(f"[{notice}]" for notice in notices), content])
        changes = tool_context.state_changes.take()
        if not changes:
            return content, artifact
        message = ToolMessage(content=content, artifact=artifact, name=tool_name, tool_call_id=tool_call_id)
        return Command(update={**changes, "messages": [message]}), None

    model = _model_of(
        tool_name, description or inspect.getdoc(function) or tool_name, schema, offered == "when_named", seconds
    )
    return model.model_copy(
        update={"coroutine": call, "tags": list(model.tags or ()), "metadata": dict(model.metadata or {})}
    )


@lru_cache(maxsize=512)
def _model_of(name: str, description: str, schema: type[BaseModel], is_when_named: bool, seconds: float) -> BaseTool:
    """What is the same of a tool in every turn. Cached: pydantic checks it for longer than copying it takes."""

    async def not_given() -> None: ...

    tool = StructuredTool(
        coroutine=not_given,
        name=name,
        description=description,
        args_schema=schema,
        response_format="content_and_artifact",
        tags=[WHEN_NAMED] if is_when_named else [],
        metadata={"seconds": seconds + _MARGIN_SECONDS},
    )
    return explain_arguments(tool)


class _Schema(NamedTuple):
    """What is the same for a function in every turn."""

    arguments: Any
    takes_context: bool


@lru_cache(maxsize=512)
def _schema_of(function: Callable[..., Any], name: str) -> _Schema:
    """Cached: making a schema takes longer than the rest of a turn's tools."""
    signature = inspect.signature(function)
    injected = {_CONTEXT} & set(signature.parameters)
    # Annotations are resolved in the module that the function was written in.
    annotations = inspect.get_annotations(_called_function(function), eval_str=True)
    hints = {key: hint for key, hint in annotations.items() if key not in injected and key != "return"}
    shown = [
        parameter.replace(annotation=hints.get(key, parameter.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
        for key, parameter in signature.parameters.items()
        if key not in injected
    ]
    hidden = inspect.Parameter(_CALL_ID, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[str, InjectedToolCallId])

    # A function with the signature that the model is to see, for LangChain to make the schema from.
    async def call() -> None: ...

    call.__signature__ = inspect.Signature([hidden, *shown])  # type: ignore[attr-defined]
    call.__annotations__ = {_CALL_ID: hidden.annotation, **hints}
    call.__name__, call.__doc__ = name, function.__doc__ or name
    return _Schema(StructuredTool.from_function(coroutine=call, name=name).args_schema, bool(injected))


def _called_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """What runs when this is called: of an object, its `__call__`."""
    return function if inspect.isroutine(function) else type(function).__call__


def _start(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Awaitable[Any]:
    if inspect.iscoroutinefunction(_called_function(function)):
        work: Awaitable[Any] = function(**arguments)
        return work
    return asyncio.to_thread(functools.partial(function, **arguments))


# -- other people's tools ----------------------------------------------------------------------------------


def guard(tool: BaseTool, seconds: float) -> BaseTool:
    """Somebody else's tool with the same timeout and the same error texts, tagged as theirs."""
    tool = tool.model_copy(update={"tags": [*(tool.tags or ()), OUTSIDE]})
    if not isinstance(tool, StructuredTool) or tool.coroutine is None:
        return explain_arguments(tool)
    inner = tool.coroutine

    @functools.wraps(inner)
    async def call(*args: Any, **arguments: Any) -> Any:
        return await run_within(tool.name, inner(*args, **arguments), seconds)

    return explain_arguments(tool.model_copy(update={"coroutine": call}))


def explain_arguments(tool: BaseTool) -> BaseTool:
    """The same tool, which answers invalid arguments with what it takes."""

    def explain(problem: ValidationError | OldValidationError) -> str:
        errors = problem.errors()[:_MAX_ARGUMENT_ERRORS]
        wrong = "; ".join(f"{'.'.join(map(str, error['loc'])) or 'all'}: {error['msg']}" for error in errors)
        names = [f"{name} (optional)" if "default" in field else name for name, field in tool.args.items()]
        return f"{tool.name}: the arguments do not fit: {wrong}. It takes: {', '.join(names) or 'nothing'}"

    own_handler = tool.handle_tool_error

    def answer(problem: ToolException) -> Any:
        """Our failures as they are; the tool's own errors as its own handler wants them."""
        if isinstance(problem, ToolFailure) or isinstance(own_handler, bool | None):
            return str(problem)
        return own_handler if isinstance(own_handler, str) else own_handler(problem)

    return tool.model_copy(update={"handle_validation_error": explain, "handle_tool_error": answer})


# -- running -----------------------------------------------------------------------------------------------


async def run_within(name: str, work: Awaitable[T], seconds: float) -> T:
    """The result of the work, or ToolFailure."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_GRACE_SECONDS)
            raise ToolFailure(f"{name} was given up after {seconds:g} seconds; try something smaller")
    finally:
        task.cancel()
    if task.cancelled():
        raise ToolFailure(f"{name} was cancelled")
    problem = task.exception()  # a value: a tool may raise anything
    if isinstance(problem, ToolException):
        raise problem
    if problem is not None:
        raise ToolFailure(describe_error(name, problem)) from problem
    return task.result()


def describe_error(name: str, problem: BaseException) -> str:
    """What went wrong, in words that help a model to do better, without secrets."""
    text = str(problem) if isinstance(problem, EverthreadError) else f"{type(problem).__name__}: {problem}"
    clean = redact_secrets(_PYDANTIC_LINK.sub("", text))[:_MAX_ERROR_CHARACTERS]
    return clean if clean.startswith(f"{name}: ") else f"{name} failed: {clean}"


# -- results -----------------------------------------------------------------------------------------------


def format_result(value: Any) -> ContentAndArtifact:
    """What a tool returned, for the model and for the log."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str | list):
        return value
    if isinstance(value, str):
        return _cut(value), None
    if isinstance(value, bytes | bytearray | memoryview):
        return _binary_result(bytes(value))
    if _is_blocks(value):
        return list(value), None
    return ("Done." if value is None else _cut(_as_json(value))), None


def _is_blocks(value: object) -> bool:
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    return is_list and all(isinstance(one, Mapping) and block_type(one) in _BLOCKS for one in value)  # type: ignore[attr-defined]


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[cut: {len(text) - MAX_CHARACTERS:,} more characters were not kept]"


def _binary_result(body: bytes) -> ContentAndArtifact:
    """A line for the model, and the bytes themselves beside it."""
    artifact = {"type": "bytes", "sha256": sha256(body).hexdigest(), "base64": base64.b64encode(body).decode()}
    return f"{len(body):,} bytes of binary data, kept whole in the log (sha256 {artifact['sha256']}).", artifact


def _as_json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_INDENT_2).decode()
    except (TypeError, ValueError):  # a cycle, a lone surrogate, a key of some other type
        return str(value)

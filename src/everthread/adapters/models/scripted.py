"""A chat model that answers by script: LangChain's whole interface, no network, the same answers every time.

    model = ScriptedModel(["Hello.", Reply(calls=[("weather", {"city": "Kunming"})]), "Rain, 19 degrees."])

A step of the script is a text, a `Reply` (tool calls, thinking, a delay, an error), the same as a mapping, an
`AIMessage`, an exception to raise, or a function from the messages of the request to any of these. A whole script may
be such a function.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, PrivateAttr

from everthread.context.tokens import count_tokens
from everthread.core.errors import Invalid
from everthread.core.payloads import block_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One answer of the model."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Tool calls, each a name and arguments; several are made in parallel."""
    thinking: str = ""
    """Reasoning, as a content block before the text."""
    delay_seconds: float = 0.0
    """How long the model takes before it says anything."""
    pace_seconds: float = 0.0
    """How long it takes between two pieces, when streamed."""
    error: Exception | None = None
    """Raised in place of the answer; when streamed, after the text."""
    id: str | None = None
    """The message's id; LangChain makes one when there is none."""


Step: TypeAlias = "str | Reply | AIMessage | Exception | Callable[[Sequence[BaseMessage]], Step]"
Script: TypeAlias = "Sequence[Step | Mapping[str, Any]] | Callable[[Sequence[BaseMessage]], Step]"


class Request(NamedTuple):
    """What the model was asked."""

    messages: Sequence[BaseMessage]
    tools: Sequence[str]
    """The names of the tools it was offered."""


class ScriptEnded(LookupError):
    """The model was asked once more than its script has steps."""


class _Answer(NamedTuple):
    message: AIMessage
    delay_seconds: float = 0.0
    error: Exception | None = None
    pace_seconds: float = 0.0


class ScriptedModel(BaseChatModel):
    """Answers by script, one step for each request, whichever thread or task it comes from."""

    script: Any = Field(repr=False, exclude=True)
    chunk_characters: int = 8
    """How much of a text or of a call's arguments one streamed chunk holds."""
    requests: list[Request] = Field(default_factory=list, repr=False, exclude=True)
    """Every request so far, in order; none where `keeps_requests` is false."""
    keeps_requests: bool = True
    """Whether requests are kept for a test to look at. One that serves for long would fill its memory with them."""
    _lock: Any = PrivateAttr(default_factory=Lock)
    _numbers: Iterator[int] = PrivateAttr(default_factory=count)

    def __init__(self, script: Script, **fields: Any) -> None:
        super().__init__(script=script if callable(script) else _steps(script), **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The same model, offered these tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, kwargs)
        time.sleep(answer.delay_seconds)
        return _result(answer)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, kwargs)
        await asyncio.sleep(answer.delay_seconds)
        return _result(answer)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages, kwargs)
        time.sleep(answer.delay_seconds)
        yield from _chunks(answer, self.chunk_characters)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = self._answer(messages, kwargs)
        await asyncio.sleep(answer.delay_seconds)
        for chunk in _chunks(answer, self.chunk_characters):
            yield chunk
            await asyncio.sleep(answer.pace_seconds)  # as one over a network, it lets others run between two pieces

    def _answer(self, messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> _Answer:
        tools = [tool["function"]["name"] for tool in options.get("tools", ())]
        with self._lock:
            number = next(self._numbers)
            if self.keeps_requests:
                self.requests.append(Request(tuple(messages), tools))
        return _answer(_resolved(self._step(number), messages), messages, number)

    def _step(self, number: int) -> Step:
        script: Sequence[Step] | Callable[[Sequence[BaseMessage]], Step] = self.script
        if callable(script):
            return script
        if number >= len(script):
            raise ScriptEnded(f"the script has {len(script)} steps, and this is request {number + 1}")
        return script[number]


def _resolved(step: Step, messages: Sequence[BaseMessage]) -> str | Reply | AIMessage | Exception:
    while not isinstance(step, str | Reply | AIMessage | Exception):
        step = step(messages)
    return step


def _answer(said: str | Reply | AIMessage | Exception, messages: Sequence[BaseMessage], number: int) -> _Answer:
    if isinstance(said, AIMessage):
        return _Answer(said.model_copy(deep=True))
    if isinstance(said, str):
        said = Reply(text=said)
    elif isinstance(said, Exception):
        said = Reply(error=said)
    return _Answer(_message(said, messages, number), said.delay_seconds, said.error, said.pace_seconds)


def _message(reply: Reply, messages: Sequence[BaseMessage], number: int) -> AIMessage:
    calls = [
        {"name": name, "args": dict(args), "id": f"call_{number + 1}_{index}", "type": "tool_call"}
        for index, (name, args) in enumerate(reply.calls, 1)
    ]
    content: str | list[str | dict[Any, Any]] = reply.text
    if reply.thinking:
        text = [{"type": "text", "text": reply.text}] if reply.text else []
        content = [{"type": "thinking", "thinking": reply.thinking, "signature": "scripted"}, *text]
    return AIMessage(
        content=content,
        id=reply.id,
        tool_calls=calls,
        usage_metadata=_usage(messages, reply),
        response_metadata={"model_name": "scripted", "model_provider": "scripted"},
    )


def _usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    texts = (message.content if type(message.content) is str else message.text for message in messages)
    read = sum(map(_counted, texts))
    arguments = "".join(json.dumps(dict(args)) for _, args in reply.calls)
    written = count_tokens(reply.thinking + reply.text + arguments)
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


_counted = lru_cache(maxsize=4096)(count_tokens)
"""The same messages come with every request of a conversation."""


def _result(answer: _Answer) -> ChatResult:
    if answer.error is not None:
        raise answer.error
    return ChatResult(generations=[ChatGeneration(message=answer.message)])


def _chunks(answer: _Answer, size: int) -> Iterator[ChatGenerationChunk]:
    """The answer in pieces, as providers stream it: thinking, text, calls, and what it cost in the last one."""
    whole = answer.message
    if isinstance(whole.content, str):
        yield from (_quick_chunk(piece, whole.id) for piece in _pieces(whole.content, size))
    blocks = [] if isinstance(whole.content, str) else _content_pieces(whole.content, size)
    for piece in (*blocks, *_call_pieces(whole, size)):
        yield ChatGenerationChunk(message=piece.model_copy(update={"id": whole.id}))
    if answer.error is not None:
        raise answer.error
    last = AIMessageChunk(
        content="",
        id=whole.id,
        name=whole.name,
        additional_kwargs=whole.additional_kwargs,
        response_metadata=whole.response_metadata,
        usage_metadata=whole.usage_metadata,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)


def _quick_chunk(text: str, id: str | None) -> ChatGenerationChunk:
    """A piece of plain text, without pydantic's checks of what is known to be right: they cost more than the rest."""
    lists: dict[str, Any] = {name: [] for name in ("tool_calls", "invalid_tool_calls", "tool_call_chunks")}
    fresh = {"content": text, "id": id, "additional_kwargs": {}, "response_metadata": {}, **lists}
    message = _like(_PIECE, fresh)
    return _like(_GENERATION, {"message": message, "text": text})


_PIECE = AIMessageChunk(content="")
_GENERATION = ChatGenerationChunk(message=_PIECE)
_M = TypeVar("_M", bound=BaseModel)


def _like(model: _M, fields: Mapping[str, Any]) -> _M:
    """A copy with other fields, as `model_construct` would make it, without its walk over all of them."""
    made = model.__class__.__new__(model.__class__)
    object.__setattr__(made, "__dict__", {**model.__dict__, **fields})
    for slot in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(made, slot, getattr(model, slot))
    return made


def _content_pieces(content: list[str | dict[Any, Any]], size: int) -> Iterator[AIMessageChunk]:
    for index, given in enumerate(content):
        block = {"type": "text", "text": given} if isinstance(given, str) else given
        yield from (AIMessageChunk(content=[{**piece, "index": index}]) for piece in _block_pieces(block, size))


def _block_pieces(block: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    kind = block_type(block)
    if kind not in ("text", "thinking") or not isinstance(block.get(kind), str):
        yield dict(block)
        return
    yield from ({"type": kind, kind: piece} for piece in _pieces(block[kind], size))
    if rest := {key: value for key, value in block.items() if key not in ("type", kind)}:
        yield {"type": kind, kind: "", **rest}


def _call_pieces(message: AIMessage, size: int) -> Iterator[AIMessageChunk]:
    made = [(call["name"], call["id"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    broken = [(call["name"], call["id"], call["args"] or "") for call in message.invalid_tool_calls]
    for index, (name, id, arguments) in enumerate((*made, *broken)):
        yield _call_piece(name=name, args="", id=id, index=index)
        yield from (_call_piece(args=piece, index=index) for piece in _pieces(arguments, size))


def _call_piece(**fields: Any) -> AIMessageChunk:
    return AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(**fields)])


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


# -- by name ---------------------------------------------------------------------------------------------------

ECHO = "echo"


def scripted_by_name(name: str) -> ScriptedModel:
    """`echo` gives the user's words back; a path names a JSON file with a list of steps.

    A step of the file is a text, or an object with some of: text, thinking, calls ([{"name": …, "args": {…}}]),
    delay_seconds, pace_seconds, error (a text). {"steps": [...], "repeat": true} begins again at its end.
    """
    if name == ECHO:
        return ScriptedModel(_echo, chunk_characters=4, keeps_requests=False)
    try:
        found = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise Invalid(f"cannot read the script {name!r}: {type(problem).__name__}", field="model") from problem
    given = found if isinstance(found, dict) else {"steps": found}
    steps = _steps(given.get("steps") or ())
    if not steps:
        raise Invalid(f"the script {name!r} has no steps", field="model")
    return ScriptedModel(_again(steps) if given.get("repeat") else steps, keeps_requests=False)


def _echo(messages: Sequence[BaseMessage]) -> str:
    return next((message.text for message in reversed(messages) if message.type == "human"), "")


def _again(steps: Sequence[Step]) -> Callable[[Sequence[BaseMessage]], Step]:
    numbers = count()
    return lambda _: steps[next(numbers) % len(steps)]


def _steps(given: Sequence[object]) -> list[Step]:
    return [_step_from(step, index) for index, step in enumerate(given)]


def _step_from(step: object, index: int) -> Step:
    if isinstance(step, str | Reply | AIMessage | Exception) or callable(step):
        return step
    if not isinstance(step, Mapping):
        raise Invalid(f"must be a text or an object, not {type(step).__name__}", field=f"steps[{index}]")
    known = {"text", "thinking", "delay_seconds", "pace_seconds"}
    if unknown := step.keys() - known - {"calls", "error"}:
        raise Invalid(f"has no field {min(unknown)!r}", field=f"steps[{index}]")
    calls = [_call_from(call, f"steps[{index}].calls") for call in step.get("calls", ())]
    error = RuntimeError(step["error"]) if "error" in step else None
    return Reply(calls=calls, error=error, **{name: step[name] for name in known & step.keys()})


def _call_from(call: object, field: str) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise Invalid('must be objects such as {"name": "weather", "args": {"city": "Kunming"}}', field=field)
    return call["name"], call.get("args", {})

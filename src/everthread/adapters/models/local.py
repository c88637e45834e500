"""A model on this machine, without key or network: any GGUF file, on llama.cpp (`xllamacpp`), one thread, streaming.

The one that everthread falls back to is SmolLM2 with 135 million parameters: good enough to see that everything works,
and a toy in all other respects.
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import agenerate_from_stream, generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from everthread.core.errors import MissingExtra, ModelError, ModelOverflow

WINDOW_TOKENS: Final = 8_192
ANSWER_TOKENS: Final = 512
_REPEAT_PENALTY: Final = 1.1
"""Small models fall into loops; at 1.1, llama.cpp's usual choice, they leave them and keep the names they are told."""
TOY_NOTICE: Final = (
    "This is SmolLM2-135M, a toy that runs on this machine without key or network: it shows that everything works, and "
    "knows next to nothing. For a real one set EVERTHREAD_MODEL, such as openai:gpt-5-mini (with its key), an "
    "OpenAI-compatible server (EVERTHREAD_MODEL_BASE_URL), or a GGUF file of your own (gguf:/path/to/model.gguf)."
)
_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system"}
_QUIET: Final = -1
_END: Final = None
_LAST_PIECE_SECONDS: Final = 10.0

Piece = Mapping[str, Any] | BaseException | None


class Runner(Protocol):
    """The part of xllamacpp's server that we use."""

    def handle_chat_completions(self, request: Any, on_piece: Callable[[Any], bool]) -> object: ...


@lru_cache(maxsize=2)
def load_runner(path: Path, window: int) -> Runner:
    """The weights, loaded once per process."""
    try:
        import xllamacpp  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("a local model needs an extra: pip install 'everthread[agent]'") from problem
    if not path.is_file():
        raise MissingExtra(f"no model at {path}; download the small one once: everthread models fetch smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = window
    params.n_parallel = 1
    params.cpuparams.n_threads = 1  # two that wait for each other are slower than one on a busy machine
    params.verbosity = _QUIET
    params.api_keys = [secrets.token_urlsafe(32)]  # it also listens on a port of this machine: for nobody else
    try:
        runner: Runner = xllamacpp.Server(params)
    except RuntimeError as problem:
        raise ModelError(f"{path.name} cannot be loaded as a GGUF model: {type(problem).__name__}") from problem
    return runner


class LocalModel(BaseChatModel):
    """A GGUF file as a chat model. It takes text, and calls no tools."""

    path: Path
    window: int = WINDOW_TOKENS
    temperature: float = 0.2

    @property
    def _llm_type(self) -> str:
        return "everthread-local"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        pieces: queue.SimpleQueue[Piece] = queue.SimpleQueue()
        generation = _Generation(self, messages, stop, pieces.put)
        try:
            while (piece := pieces.get()) is not _END:
                yield from _chunks(piece)
        finally:
            generation.is_stopped = True

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Piece] = asyncio.Queue()
        generation = _Generation(
            self, messages, stop, lambda piece: loop.call_soon_threadsafe(pieces.put_nowait, piece)
        )
        try:
            while (piece := await pieces.get()) is not _END:
                for chunk in _chunks(piece):
                    yield chunk
        finally:
            generation.is_stopped = True


_running: set[_Generation] = set()


@atexit.register
def _stop_all() -> None:
    """A thread that is inside of llama.cpp when the interpreter ends would take the process down with it."""
    for generation in list(_running):
        generation.is_stopped = True
        generation.thread.join(_LAST_PIECE_SECONDS)


class _Generation:
    """One answer on its way, in a thread of its own; the model stops at the next piece when it is told to."""

    def __init__(
        self, model: LocalModel, messages: Sequence[BaseMessage], stop: list[str] | None, put: Callable[[Piece], object]
    ) -> None:
        self.is_stopped = False
        self._put = put
        request = {
            "messages": [{"role": _ROLES.get(one.type, "user"), "content": one.text} for one in messages],
            "max_tokens": ANSWER_TOKENS,
            "temperature": model.temperature,
            "repeat_penalty": _REPEAT_PENALTY,
            "stream": True,
            "stream_options": {"include_usage": True},
            **({"stop": stop} if stop else {}),
        }
        self.thread = threading.Thread(
            target=self._run, args=(model, request), daemon=True, name="everthread-local-model"
        )
        _running.add(self)
        self.thread.start()

    def _run(self, model: LocalModel, request: Mapping[str, Any]) -> None:
        try:
            load_runner(model.path, model.window).handle_chat_completions(dict(request), self._on_piece)
        except Exception as problem:  # noqa: BLE001 - a thread's edge: it is raised where the answer is waited for
            self._deliver(problem)
        self._deliver(_END)
        _running.discard(self)

    def _on_piece(self, piece: Mapping[str, Any]) -> bool:
        self._deliver(piece)
        return self.is_stopped

    def _deliver(self, piece: Piece) -> None:
        try:
            self._put(piece)
        except RuntimeError:  # the loop that listened is closed
            self.is_stopped = True


def _chunks(piece: Piece) -> Iterator[ChatGenerationChunk]:
    if isinstance(piece, BaseException):
        raise piece
    assert piece is not None
    if error := piece.get("error"):
        said = str(error.get("message") if isinstance(error, Mapping) else error)
        kind = ModelOverflow if "context" in said or "exceed" in said else ModelError
        raise kind("the local model could not answer: the request is too long for it, or the file is not a chat model")
    choices = piece.get("choices") or ()
    text = "".join(choice.get("delta", {}).get("content") or "" for choice in choices)
    reason = next((choice["finish_reason"] for choice in choices if choice.get("finish_reason")), None)
    usage = _usage(piece.get("usage"))
    if text or reason or usage:
        about = {"finish_reason": reason} if reason else {}
        yield ChatGenerationChunk(
            message=AIMessageChunk(content=text, usage_metadata=usage, response_metadata=about),
            generation_info=about or None,
        )


def _usage(reported: Any) -> UsageMetadata | None:
    if not isinstance(reported, Mapping):
        return None
    read, written = int(reported.get("prompt_tokens", 0)), int(reported.get("completion_tokens", 0))
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)

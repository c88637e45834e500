"""Private methods of LangChain, used to stream chunks without `BaseChatModel.astream`; to remove, call that instead.

`astream` serves callbacks: it keeps every chunk until the end, to hand them over added up. That is a third of what a
token costs, and ten objects for each that the garbage collector walks as long as the answer lasts. Where no callback
listens, and nothing else of what it does is wanted, the model's own `_astream` is called, the method that each chat
model that streams must have; in every other case LangChain's way is taken.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config


def stream_chunks(
    model: Runnable[Any, Any], messages: Sequence[BaseMessage], config: RunnableConfig, options: Mapping[str, Any]
) -> AsyncIterator[AIMessageChunk]:
    """What a model answers, chunk by chunk."""
    given = list(messages)
    if isinstance(model, BaseChatModel) and can_stream_directly(model, given, config, options):
        return _stream_directly(model, given, options)
    return model.astream(given, config, **options)


def can_stream_directly(
    model: BaseChatModel, messages: Sequence[BaseMessage], config: RunnableConfig, options: Mapping[str, Any]
) -> bool:
    """Whether LangChain would do no more than pass chunks on: images and files, for one, it translates."""
    kind = type(model)
    return (
        kind.astream is BaseChatModel.astream
        and kind._astream is not BaseChatModel._astream
        and model._should_stream(async_api=True, **{**options, "stream": True})
        and model.rate_limiter is None
        and model.output_version != "v1"
        and all(isinstance(message.content, str) for message in messages)
        and not _callbacks(model, config)
    )


def _callbacks(model: BaseChatModel, config: RunnableConfig) -> Sequence[BaseCallbackHandler]:
    """Those of the request, of the model and of the process, such as a tracer."""
    asked = ensure_config(config).get("callbacks")
    return AsyncCallbackManager.configure(asked, model.callbacks, model.verbose).handlers


async def _stream_directly(
    model: BaseChatModel, messages: list[BaseMessage], options: Mapping[str, Any]
) -> AsyncIterator[AIMessageChunk]:
    is_last = True
    async for generation in model._astream(messages, **options):
        chunk = generation.message
        assert isinstance(chunk, AIMessageChunk)
        if generation.generation_info:
            chunk.response_metadata = {**generation.generation_info, **chunk.response_metadata}
        is_last = chunk.chunk_position == "last"
        yield chunk
    if not is_last:  # tool calls are read when the last chunk is added
        yield AIMessageChunk(content="", chunk_position="last")

"""Asking the model once: the request goes out, its pieces are told as they come, and one whole message comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from everthread.context.assemble import Context
from everthread.core.errors import ModelError, ModelOverflow
from everthread.core.turns import MESSAGE_KEY
from everthread.turn.requests import PASSAGES_SHARE, context_for, passages_block, request_messages, schema_of
from everthread.turn.scene import Scene, Utterance
from everthread.turn.state import AppState


async def ask(
    state: AppState,
    scene: Scene,
    config: RunnableConfig,
    tools: Sequence[BaseTool],
    *,
    must_answer: bool = False,
) -> AIMessage:
    """The model's message; asked a second time, with a smaller request, when the provider found the first too long."""
    context, messages = await _request(state, scene, tools, must_answer)
    try:
        return await _asked(scene, config, tools, context, messages)
    except ModelOverflow:
        await scene.voice.refused(counted=context.tokens)
        return await _asked(scene, config, tools, *await _request(state, scene, tools, must_answer))


async def _request(
    state: AppState, scene: Scene, tools: Sequence[BaseTool], must_answer: bool
) -> tuple[Context, Sequence[BaseMessage]]:
    """The one that `recall` made, for the first call, unless passages came that must fit in too."""
    first, scene.first = scene.first, None
    if first is not None and not state.get("retrieval_results"):
        return first
    context = await context_for(state, scene, query=_query(state, scene), tools=tools)
    block = passages_block(state, scene.voice.budget.limit // PASSAGES_SHARE)
    return context, request_messages(context, block, must_answer=must_answer)


def _query(state: AppState, scene: Scene) -> str | None:
    is_on = scene.switches.recall and "recall" not in state.get("degraded", ())
    return scene.question if is_on and scene.question.strip() else None


async def _asked(
    scene: Scene,
    config: RunnableConfig,
    tools: Sequence[BaseTool],
    context: Context,
    messages: Sequence[BaseMessage],
) -> AIMessage:
    scene.manifests.append(await scene.conversation.keep_context(context))
    message = await _heard(scene, messages, tools, config)
    usage = {name: count for name, count in (message.usage_metadata or {}).items() if isinstance(count, int)}
    scene.usage.update(usage)
    await scene.voice.heard(counted=context.tokens, usage=usage)
    return message


async def _heard(
    scene: Scene, messages: Sequence[BaseMessage], tools: Sequence[BaseTool], config: RunnableConfig
) -> AIMessage:
    """What comes, told piece by piece."""
    utterance = scene.utterance = Utterance(id=scene.next_message_id())
    heard = Heard()
    event_log, id, pieces = scene.event_log, utterance.id, utterance.pieces
    schemas = [schema_of(tool) for tool in tools]
    async for chunk in scene.voice.stream(messages, schemas, config):
        heard.take(chunk)
        content = chunk.content
        if type(content) is str:  # nearly all of them
            if content:
                pieces.append(content)
                event_log.emit_token(content, id)
        else:
            _tell_blocks(scene, content, utterance)
        if event_log.has_blocked_loop():
            await event_log.yield_to_loop()
    if heard.is_empty:
        raise ModelError(f"the model {scene.voice.name} answered with nothing at all; nothing is lost: ask again")
    return _whole(heard.whole(), id, scene)


class Heard:
    """The pieces of one message. Those that are nothing but text, nearly all, are joined as text: LangChain's way of
    adding chunks costs as much as the rest of a token."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._chunks: list[AIMessageChunk] = []

    @property
    def is_empty(self) -> bool:
        return not self._text and not self._chunks

    def take(self, chunk: AIMessageChunk) -> None:
        if type(chunk.content) is str and not (
            chunk.tool_call_chunks or chunk.usage_metadata or chunk.response_metadata or chunk.additional_kwargs
        ):
            self._text.append(chunk.content)
        else:
            self._join()
            self._chunks.append(chunk)

    def _join(self) -> None:
        if self._text:
            self._chunks.append(AIMessageChunk(content="".join(self._text)))
            self._text = []

    def whole(self) -> AIMessageChunk:
        """All of it."""
        self._join()
        return add_ai_message_chunks(self._chunks[0], *self._chunks[1:])


def _tell_blocks(scene: Scene, content: Sequence[Any], utterance: Utterance) -> None:
    for block in content:
        if isinstance(block, str):
            block = {"type": "text", "text": block}
        kind = block.get("type")
        if kind == "text" and block.get("text"):
            utterance.pieces.append(block["text"])
            scene.event_log.emit_token(block["text"], utterance.id)
        elif kind in ("thinking", "reasoning"):
            text = block.get("thinking") or block.get("reasoning")
            if isinstance(text, str) and text:
                scene.event_log.emit_thinking(text, utterance.id)


def _whole(joined: AIMessageChunk, id: str, scene: Scene) -> AIMessage:
    """The message, under the id it was told by."""
    return AIMessage(
        content=joined.content,
        id=id,
        name=joined.name,
        tool_calls=joined.tool_calls,
        invalid_tool_calls=joined.invalid_tool_calls,
        usage_metadata=joined.usage_metadata,
        response_metadata=joined.response_metadata,
        additional_kwargs={
            **joined.additional_kwargs,
            MESSAGE_KEY: {"turn_id": scene.turn.id, "model": scene.voice.name},
        },
    )

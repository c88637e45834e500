"""Any LangChain chat model as a summariser: a call of its own, beside whatever the turn's model does.

The timeout, the terse retry and the checks of the summary are in `compaction/summarise.py`; here a model is called once
and its failure translated. A provider's error may quote the request, so ours names its type only; the provider's own is
its `__cause__`.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig

from everthread.adapters.models.providers import check_key, error_kind, model_name, options_for_address
from everthread.adapters.models.summary_prompt import (
    EXTRACTION,
    EXTRACTION_CLOSING,
    TITLE,
    TITLE_CLOSING,
    delimit,
    instructions,
    language_of_transcript,
    without_delimiters,
)
from everthread.compaction.sources import ConversationKind
from everthread.core.errors import Invalid, MissingExtra, ModelError

_CONFIG: Final = RunnableConfig(
    run_name="everthread summary",
    # Inside a graph's node a call inherits the node's callbacks: its tokens would appear in the user's stream.
    callbacks=[],
    tags=["nostream", "everthread:summary"],
)
_REASONING = re.compile(r"^\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL)
_FENCE = re.compile(r"^\s*```\w*\n(.*?)\n?```\s*$", re.DOTALL)


class ModelSummariser:
    """A chat model, or any runnable that takes messages, behind the port `Summariser`."""

    def __init__(self, chat: Runnable[Any, Any], name: str | None = None) -> None:
        self._chat = chat
        self.name = name or model_name(chat)

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        """What the model writes, without its reasoning; ModelError when it fails."""
        language = language_of_transcript(text)
        messages: list[BaseMessage] = [
            SystemMessage(instructions(language, kind, max_tokens=max_tokens, is_terse=is_terse)),
            HumanMessage(delimit(text, language)),
        ]
        return await self._call(messages)

    async def extract(self, text: str, *, max_tokens: int) -> str:
        """What the model finds worth remembering, a line each; ModelError when it fails."""
        language = language_of_transcript(text)
        return await self._call([SystemMessage(EXTRACTION), HumanMessage(delimit(text, language, EXTRACTION_CLOSING))])

    async def title(self, text: str) -> str:
        """What the model would call a conversation that begins so; ModelError when it fails."""
        language = language_of_transcript(text)
        return await self._call([SystemMessage(TITLE), HumanMessage(delimit(text, language, TITLE_CLOSING))])

    async def _call(self, messages: list[BaseMessage]) -> str:
        # Providers' errors have no root of their own; a batch hands them over as values.
        (answer,) = await self._chat.abatch([messages], [_CONFIG], return_exceptions=True)
        if isinstance(answer, Exception):
            raise ModelError(f"the summary model {self.name} failed: {error_kind(answer)}") from answer
        return _text_of(answer)


@cache
def summariser_by_name(name: str, base_url: str | None = None) -> ModelSummariser:
    """The model by this name; Invalid when there is none, MissingExtra when its package is not installed,
    ModelKeyMissing when its key is not set."""
    check_key(name, base_url, os.environ, chosen_with="summariser=… or EVERTHREAD_COMPACTION_SUMMARY_MODEL")
    options = options_for_address(name.partition(":")[0], base_url, os.environ)
    try:
        return ModelSummariser(init_chat_model(name, **options), name)
    except ImportError as problem:
        raise MissingExtra(f"the summary model {name!r} needs a package that is not installed: {problem}") from problem
    except ValueError as problem:
        raise Invalid(
            f"no chat model can be made of {name!r} ({type(problem).__name__}); write provider:model, such as "
            "openai:gpt-5-mini, and set what the provider asks for, such as its API key",
            field="summary_model",
        ) from problem


def summariser_from_model(model: object) -> ModelSummariser:
    """A chat model as a summariser; Invalid for what is none."""
    if isinstance(model, Runnable):
        return ModelSummariser(model)
    raise Invalid(
        f"must be a LangChain chat model, a name such as openai:gpt-5-mini, or have a method summarise; "
        f"{type(model).__name__} is none of these",
        field="summariser",
    )


def _text_of(answer: object) -> str:
    text = str(answer.text) if isinstance(answer, BaseMessage) else answer
    if not isinstance(text, str):
        raise ModelError(f"the summary model wrote {type(text).__name__}, not text")
    text = without_delimiters(_REASONING.sub("", text))
    fenced = _FENCE.match(text)
    return fenced[1] if fenced else text

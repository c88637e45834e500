"""LangChain's `Embeddings` as an embedder: any hosted or local model that LangChain supports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from langchain.embeddings import init_embeddings
from langchain_core.embeddings import Embeddings

from everthread.adapters.models.providers import error_kind
from everthread.core.embeddings import same_dimension, unit
from everthread.core.errors import Invalid, MissingExtra, ModelError

MAX_CHARACTERS = 100_000
R = TypeVar("R")
_NAMES = ("model", "model_name", "model_id", "deployment")


class LangChainEmbedder:
    """Vectors are stored under `name`, or else under the class and the model of the `Embeddings`."""

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        self._embeddings = embeddings
        self.name = name or _name_of(embeddings)
        self.dimension: int | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text."""
        found = await self._call(self._embeddings.aembed_documents([text[:MAX_CHARACTERS] for text in texts]))
        if len(found) != len(texts):
            raise ModelError(f"{self.name} returned {len(found)} vectors for {len(texts)} texts")
        return self._packed(found)

    async def query(self, text: str) -> bytes:
        """The vector of a question."""
        return self._packed([await self._call(self._embeddings.aembed_query(text[:MAX_CHARACTERS]))])[0]

    def understood_share(self, text: str) -> float:
        """Most hosted models know most languages."""
        return 1.0 if text.strip() else 0.0

    def _packed(self, found: Sequence[Sequence[float]]) -> list[bytes]:
        try:
            vectors = [unit(numbers) for numbers in found]
            self.dimension = same_dimension(vectors) or self.dimension
        except (TypeError, Invalid) as problem:
            raise ModelError(f"{self.name} returned vectors of different dimensions or none: {problem}") from problem
        return vectors

    async def _call(self, call: Awaitable[R]) -> R:
        """A provider's client may raise anything, and quote a key: only the kind of the error is repeated."""
        (found,) = await asyncio.gather(call, return_exceptions=True)
        if isinstance(found, BaseException):
            raise ModelError(f"{self.name} failed: {error_kind(found)}") from found
        return found


def _name_of(embeddings: Embeddings) -> str:
    named = (getattr(embeddings, field, None) for field in _NAMES)
    model = next((value for value in named if isinstance(value, str) and value), "")
    kind = type(embeddings).__name__
    return f"{kind}:{model}" if model else kind


def adapt(given: object) -> LangChainEmbedder:
    """Embeddings as an embedder; Invalid for any other object."""
    if isinstance(given, Embeddings):
        return LangChainEmbedder(given)
    raise Invalid(
        f"must be LangChain embeddings, a name such as minilm, or have passages, query and understood_share; "
        f"{type(given).__name__} is none of these",
        field="embedder",
    )


def build(name: str) -> LangChainEmbedder:
    """A provider's embeddings by `provider:model`. LangChain's own message is not repeated: it may contain a key."""
    try:
        embeddings = init_embeddings(name)
    except ImportError as problem:
        raise MissingExtra(f"the embedder {name!r} needs a package that is not installed: {problem}") from problem
    except ValueError as problem:
        raise Invalid(
            f"cannot create the embeddings {name!r} ({type(problem).__name__}); write provider:model, such as "
            "openai:text-embedding-3-small, and set what the provider needs, such as its API key",
            field="embedder",
        ) from problem
    return LangChainEmbedder(embeddings, name=name)

"""LangChain's `Embeddings` as an embedder: any hosted or local model that it knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from langchain.embeddings import init_embeddings
from langchain_core.embeddings import Embeddings

from everthread.adapters.models.summariser import kind_of
from everthread.core.errors import Invalid, MissingExtra, ModelError
from everthread.core.meaning import same_dimension, unit

MOST_CHARACTERS = 100_000
R = TypeVar("R")
_NAMES = ("model", "model_name", "model_id", "deployment")


class LangChainEmbedder:
    """Vectors are known by the class and the model of the `Embeddings`, and by `name` where one is given."""

    def __init__(self, embeddings: Embeddings, *, name: str | None = None) -> None:
        self._embeddings = embeddings
        self.name = name or _name_of(embeddings)
        self.dimension: int | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text."""
        found = await self._asked(self._embeddings.aembed_documents([text[:MOST_CHARACTERS] for text in texts]))
        if len(found) != len(texts):
            raise ModelError(f"{self.name} gave {len(found)} vectors for {len(texts)} texts")
        return self._packed(found)

    async def query(self, text: str) -> bytes:
        """The vector of a question."""
        return self._packed([await self._asked(self._embeddings.aembed_query(text[:MOST_CHARACTERS]))])[0]

    def grasp(self, text: str) -> float:
        """Most hosted models know most languages."""
        return 1.0 if text.strip() else 0.0

    def _packed(self, found: Sequence[Sequence[float]]) -> list[bytes]:
        try:
            vectors = [unit(numbers) for numbers in found]
            self.dimension = same_dimension(vectors) or self.dimension
        except (TypeError, Invalid) as problem:
            raise ModelError(f"{self.name} gave no vectors of one dimension: {problem}") from problem
        return vectors

    async def _asked(self, asked: Awaitable[R]) -> R:
        """What a provider's client raises, which may be anything and quote a key, is told by its kind only."""
        (found,) = await asyncio.gather(asked, return_exceptions=True)
        if isinstance(found, BaseException):
            raise ModelError(f"{self.name} failed: {kind_of(found)}") from found
        return found


def _name_of(embeddings: Embeddings) -> str:
    named = (getattr(embeddings, field, None) for field in _NAMES)
    model = next((value for value in named if isinstance(value, str) and value), "")
    kind = type(embeddings).__name__
    return f"{kind}:{model}" if model else kind


def adapted(given: object) -> LangChainEmbedder:
    """Embeddings as an embedder; Invalid for what is none."""
    if isinstance(given, Embeddings):
        return LangChainEmbedder(given)
    raise Invalid(
        f"must be LangChain embeddings, a name such as minilm, or have passages, query and grasp; "
        f"{type(given).__name__} is none of these",
        field="embedder",
    )


def built(name: str) -> LangChainEmbedder:
    """The embeddings of a provider by `provider:model`; what LangChain says of a wrong name may hold a key."""
    try:
        made = init_embeddings(name)
    except ImportError as problem:
        raise MissingExtra(f"the embedder {name!r} needs a package that is not installed: {problem}") from problem
    except ValueError as problem:
        raise Invalid(
            f"no embeddings can be made of {name!r} ({type(problem).__name__}); write provider:model, such as "
            "openai:text-embedding-3-small, and set what the provider asks for, such as its API key",
            field="embedder",
        ) from problem
    return LangChainEmbedder(made, name=name)

"""Embedders turn texts into vectors. Here whatever the user gave (an object, LangChain embeddings, a name) becomes one.

Each embedder needs an extra, which is imported only when the embedder is first asked.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from everthread.adapters.embedders.bert import BertEmbedder
from everthread.adapters.embedders.local_models import BERT_MODELS, MINILM
from everthread.adapters.embedders.wordllama import WordLlama
from everthread.core.embeddings import NUMBER_BYTES, Embedder
from everthread.core.errors import EverthreadError, Invalid, MissingExtra, ModelError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

AUTO = "auto"
"""MiniLM if its weights and the extra are installed, else none."""
NONE = "none"


def embedder_from(given: Embedder | Embeddings | str | None, models: Callable[[], Path]) -> Embedder | None:
    """The embedder that was given to `open`; one that cannot be used raises here. `models` is the folder of weights."""
    if isinstance(given, str):
        embedder = embedder_named(given, models)
        if isinstance(embedder, BertEmbedder | WordLlama):
            embedder.require()
        return _from_langchain(given) if isinstance(embedder, LazyEmbedder) else embedder
    if given is None:
        return None
    if _is_embedder(given):
        return CheckedEmbedder(given)
    return _from_langchain(given)


def embedder_named(name: str, models: Callable[[], Path]) -> Embedder | None:
    """The embedder that a setting names. One that cannot be used raises when it is first asked, so that it does not
    stop a program that never needs it; an unknown name is Invalid at once."""
    if name == NONE:
        return None
    if name == AUTO:
        return _default(models())
    if name in BERT_MODELS:
        return _local(name, models(), os.getpid())
    if name == "wordllama":
        return WordLlama(models())
    if ":" in name:
        return LazyEmbedder(name)
    raise Invalid(
        f"no embedder {name!r}; choose auto, none, {', '.join(BERT_MODELS)}, wordllama, or a LangChain one as "
        "provider:model, such as openai:text-embedding-3-small",
        field="embedder",
    )


@cache
def _local(name: str, models: Path, process: int) -> BertEmbedder:
    """Shared by all who open a database in this process: a loaded model takes a second and some 60 MB. Threads do not
    survive a fork, hence the process id in the key."""
    return BertEmbedder(BERT_MODELS[name], models)


def _default(models: Path) -> Embedder | None:
    minilm = _local(MINILM.model, models, os.getpid())
    try:
        minilm.require()
    except MissingExtra:
        return None
    return minilm


class CheckedEmbedder:
    """A caller's own embedder. What it returns is checked, since vectors of another form would be stored, and compared
    as what they are not."""

    def __init__(self, given: Embedder) -> None:
        self._given = given

    @property
    def name(self) -> str:
        """The caller's name for it."""
        return self._given.name

    @property
    def dimension(self) -> int | None:
        """As the caller says."""
        return self._given.dimension

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """As it does; Invalid where these are not the vectors that it says it makes."""
        found = await self._given.passages(texts)
        if len(found) != len(texts):
            raise Invalid(f"gave {len(found)} vectors for {len(texts)} texts", field="embedder")
        for vector in found:
            self._check(vector)
        return found

    async def query(self, text: str) -> bytes:
        """The same of a question."""
        vector = await self._given.query(text)
        self._check(vector)
        return vector

    def understood_share(self, text: str) -> float:
        """As it does."""
        return self._given.understood_share(text)

    def _check(self, vector: object) -> None:
        dimension = self._given.dimension
        if not isinstance(vector, bytes):
            raise Invalid(f"must give vectors as bytes (float32), not {type(vector).__name__}", field="embedder")
        if len(vector) != NUMBER_BYTES * dimension if dimension is not None else len(vector) % NUMBER_BYTES:
            expected = (
                "a multiple of 4" if dimension is None else f"{NUMBER_BYTES * dimension:,} ({dimension:,} float32)"
            )
            raise Invalid(f"{self.name} gave a vector of {len(vector):,} bytes; expected {expected}", field="embedder")


class LazyEmbedder:
    """LangChain embeddings by name, built when they are first asked. Importing a provider's package takes about a
    second, hence the thread."""

    dimension: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._embedder: Embedder | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """As the model does; ModelError also if it cannot be built."""
        found = await (await self._built()).passages(texts)
        self.dimension = len(found[0]) // 4 if found else self.dimension
        return found

    async def query(self, text: str) -> bytes:
        """As the model does."""
        return await (await self._built()).query(text)

    def understood_share(self, text: str) -> float:
        """Most hosted models know most languages."""
        return 1.0 if text.strip() else 0.0

    async def _built(self) -> Embedder:
        if self._embedder is None:
            try:
                self._embedder = await asyncio.to_thread(_from_langchain, self.name)
            except EverthreadError as problem:
                raise ModelError(f"the embedder {self.name} cannot be used: {problem}") from problem
        return self._embedder


def _from_langchain(given: object) -> Embedder:
    try:
        from everthread.adapters.embedders import langchain  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise MissingExtra("LangChain embeddings need an extra: pip install 'everthread[langchain]'") from problem
    return langchain.build(given) if isinstance(given, str) else langchain.adapt(given)


def _is_embedder(given: object) -> TypeGuard[Embedder]:
    return all(callable(getattr(given, verb, None)) for verb in ("passages", "query", "understood_share"))

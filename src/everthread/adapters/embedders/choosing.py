"""Whatever was given as an embedder becomes one. Each needs an extra, which is imported only when it is first asked."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from everthread.adapters.embedders.bert import LocalBert
from everthread.adapters.embedders.recipes import MINILM, RECIPES
from everthread.adapters.embedders.wordllama import WordLlama
from everthread.core.errors import EverthreadError, Invalid, MissingExtra, ModelError
from everthread.core.meaning import Embedder

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

AUTO = "auto"
"""MiniLM when its weights and the extra are here, else none."""
NONE = "none"


def embedder_from(given: Embedder | Embeddings | str | None, models: Callable[[], Path]) -> Embedder | None:
    """What is wrong with it is said here, where it was given. `models` tells where weights are kept."""
    if isinstance(given, str):
        embedder = embedder_named(given, models)
        if isinstance(embedder, LocalBert | WordLlama):
            embedder.require()
        return _built(given) if isinstance(embedder, NamedEmbedder) else embedder
    if given is None or _is_embedder(given):
        return given
    return _adapted(given)


def embedder_named(name: str, models: Callable[[], Path]) -> Embedder | None:
    """By its name, as in a setting: one that cannot be had says so when it is asked, and stops nothing that needs
    none. Invalid for a name that is none."""
    if name == NONE:
        return None
    if name == AUTO:
        return _default(models())
    if name in RECIPES:
        return _local(name, models(), os.getpid())
    if name == "wordllama":
        return WordLlama(models())
    if ":" in name:
        return NamedEmbedder(name)
    raise Invalid(
        f"no embedder {name!r}; there are auto, none, {', '.join(RECIPES)}, wordllama, and LangChain's by provider and "
        "model, such as openai:text-embedding-3-small",
        field="embedder",
    )


@cache
def _local(name: str, models: Path, process: int) -> LocalBert:
    """One for all who open a database in a process: a loaded model takes a second and some 60 MB. Its threads do not
    come along when a process forks, hence the number."""
    return LocalBert(RECIPES[name], models)


def _default(models: Path) -> Embedder | None:
    minilm = _local(MINILM.model, models, os.getpid())
    try:
        minilm.require()
    except MissingExtra:
        return None
    return minilm


class NamedEmbedder:
    """LangChain's embeddings by their name, built when they are first asked: importing a provider's package takes a
    second or so, hence the thread."""

    dimension: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: Embedder | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """As the model does; ModelError when there is none by this name, too."""
        found = await (await self._ready()).passages(texts)
        self.dimension = len(found[0]) // 4 if found else self.dimension
        return found

    async def query(self, text: str) -> bytes:
        """As the model does."""
        return await (await self._ready()).query(text)

    def grasp(self, text: str) -> float:
        """Most hosted models know most languages."""
        return 1.0 if text.strip() else 0.0

    async def _ready(self) -> Embedder:
        if self._made is None:
            try:
                self._made = await asyncio.to_thread(_built, self.name)
            except EverthreadError as problem:
                raise ModelError(f"the embedder {self.name} cannot be used: {problem}") from problem
        return self._made


def _built(name: str) -> Embedder:
    try:
        from everthread.adapters.embedders.langchain import built  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing_langchain() from problem
    return built(name)


def _adapted(given: object) -> Embedder:
    try:
        from everthread.adapters.embedders.langchain import adapted  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing_langchain() from problem
    return adapted(given)


def _is_embedder(given: object) -> TypeGuard[Embedder]:
    return all(callable(getattr(given, verb, None)) for verb in ("passages", "query", "grasp"))


def _missing_langchain() -> MissingExtra:
    return MissingExtra("embeddings of LangChain need an extra: pip install 'everthread[langchain]'")

"""A sentence embedder on this machine: no network, no torch, one thread for what is indexed and one for questions, so
that a question never waits behind a backlog. What runs it (`bert_session`) is imported and loaded at first use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from everthread.adapters.embedders.recipes import Recipe
from everthread.adapters.models import weights
from everthread.core.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from everthread.adapters.embedders.bert_session import Session

MODULES = ("numpy", "onnxruntime", "safetensors", "tokenizers")


class LocalBert:
    """One of the recipes, over the folder that `everthread models fetch` fills."""

    def __init__(self, recipe: Recipe, models: Path) -> None:
        self.recipe = recipe
        self.name = recipe.name
        self.dimension = recipe.dimension
        self._models = models
        self._loading = threading.Lock()
        self._session: Session | None = None
        self._for_passages = ThreadPoolExecutor(1, thread_name_prefix="everthread-passages")
        self._for_queries = ThreadPoolExecutor(1, thread_name_prefix="everthread-query")

    def require(self) -> None:
        """MissingExtra when the extra or the weights are not here."""
        if any(find_spec(module) is None for module in MODULES):
            raise MissingExtra(f"the embedder {self.recipe.model} needs an extra: pip install 'everthread[meaning]'")
        weights.located(self._models, self.recipe.model)

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text; of a long one, for its first 256 tokens."""
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(self._for_passages, self._vector, text) for text in texts))

    async def query(self, text: str) -> bytes:
        """The vector of a question: the model makes no difference between the two."""
        return await asyncio.get_running_loop().run_in_executor(self._for_queries, self._vector, text)

    def grasp(self, text: str) -> float:
        """The share of the letters that the model knows."""
        return self.recipe.grasp(text)

    def _vector(self, text: str) -> bytes:
        with self._loading:
            session = self._session = self._session or self._loaded()
        return session.vector(text)

    def _loaded(self) -> Session:
        try:
            self.require()
        except MissingExtra as problem:
            raise ModelError(str(problem)) from problem
        from everthread.adapters.embedders.bert_session import Session  # noqa: PLC0415 - an extra

        return Session(self.recipe, self._models)

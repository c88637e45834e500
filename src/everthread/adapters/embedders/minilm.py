"""all-MiniLM-L6-v2 on this machine: no network, no torch, one thread for what is indexed and one for questions, so
that a question never waits behind a backlog. What runs it (`minilm_session`) is imported and loaded at first use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from everthread.adapters.embedders.reading import latin_share
from everthread.adapters.models import weights
from everthread.core.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from everthread.adapters.embedders.minilm_session import Session

MODEL = "minilm"
MODULES = ("numpy", "onnxruntime", "safetensors", "tokenizers")


class MiniLM:
    """384 numbers a text; English, and other languages as far as they are written in Latin letters."""

    name = "all-MiniLM-L6-v2/int8"
    dimension = 384

    def __init__(self, models: Path) -> None:
        """`models` is the folder that `everthread models fetch` fills."""
        self._models = models
        self._loading = threading.Lock()
        self._session: Session | None = None
        self._for_passages = ThreadPoolExecutor(1, thread_name_prefix="everthread-passages")
        self._for_queries = ThreadPoolExecutor(1, thread_name_prefix="everthread-query")

    def require(self) -> None:
        """MissingExtra when the extra or the weights are not here."""
        if any(find_spec(module) is None for module in MODULES):
            raise MissingExtra("the embedder minilm needs an extra: pip install 'everthread[meaning]'")
        weights.located(self._models, MODEL)

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text; of a long one, for its first 256 tokens."""
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(self._for_passages, self._vector, text) for text in texts))

    async def query(self, text: str) -> bytes:
        """The vector of a question: the model makes no difference between the two."""
        return await asyncio.get_running_loop().run_in_executor(self._for_queries, self._vector, text)

    def grasp(self, text: str) -> float:
        """The share of Latin letters."""
        return latin_share(text)

    def _vector(self, text: str) -> bytes:
        with self._loading:
            session = self._session = self._session or self._loaded()
        return session.vector(text)

    def _loaded(self) -> Session:
        try:
            self.require()
        except MissingExtra as problem:
            raise ModelError(str(problem)) from problem
        from everthread.adapters.embedders.minilm_session import Session  # noqa: PLC0415 - an extra

        return Session(self._models)

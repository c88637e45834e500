"""A BERT sentence model on this machine: no network, no torch. One thread embeds what is indexed and another one
questions, so that a question never waits behind a backlog. The model itself (`bert_session`) is loaded at first use.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from everthread.adapters.embedders.local_models import BertModel
from everthread.adapters.models import weights
from everthread.core.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from everthread.adapters.embedders.bert_session import BertSession

MODULES = ("numpy", "onnxruntime", "safetensors", "tokenizers")


class BertEmbedder:
    """One of `BERT_MODELS`, from the folder that `everthread models fetch` fills."""

    def __init__(self, model: BertModel, models: Path) -> None:
        self.model = model
        self.name = model.name
        self.dimension = model.dimension
        self._models = models
        self._loading = threading.Lock()
        self._session: BertSession | None = None
        self._for_passages = ThreadPoolExecutor(1, thread_name_prefix="everthread-passages")
        self._for_queries = ThreadPoolExecutor(1, thread_name_prefix="everthread-query")

    def require(self) -> None:
        """MissingExtra if the extra or the weights are missing."""
        if any(find_spec(module) is None for module in MODULES):
            raise MissingExtra(f"the embedder {self.model.model} needs an extra: pip install 'everthread[meaning]'")
        weights.weights_folder(self._models, self.model.model)

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text; of a long text, for its first 256 tokens."""
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(self._for_passages, self._vector, text) for text in texts))

    async def query(self, text: str) -> bytes:
        """The vector of a question; these models treat questions and passages alike."""
        return await asyncio.get_running_loop().run_in_executor(self._for_queries, self._vector, text)

    def understood_share(self, text: str) -> float:
        """The share of the letters that the model knows."""
        return self.model.understood_share(text)

    def _vector(self, text: str) -> bytes:
        with self._loading:
            session = self._session = self._session or self._load()
        return session.vector(text)

    def _load(self) -> BertSession:
        try:
            self.require()
        except MissingExtra as problem:
            raise ModelError(str(problem)) from problem
        from everthread.adapters.embedders.bert_session import BertSession  # noqa: PLC0415 - an extra

        return BertSession(self.model, self._models)

"""The static matrix of the `wordllama` wheel: a text is the mean of its tokens' rows, so 10,000 texts take a second.

It knows which words occur together, not what a sentence says. Its rows derive from Llama 2's embeddings, whose licence
may apply; hence it is never chosen by default.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from everthread.adapters.embedders.local_models import latin_share
from everthread.adapters.models import weights
from everthread.core.errors import MissingExtra, ModelError

if TYPE_CHECKING:
    from everthread.adapters.embedders.static_matrix import StaticMatrix

MODEL = "wordllama"
MODULES = ("numpy", "safetensors", "tokenizers")


class WordLlama:
    """256 numbers per text."""

    name = "wordllama-l2/256"
    dimension = 256

    def __init__(self, models: Path) -> None:
        """`models` is the folder that `everthread models fetch` fills."""
        self._models = models
        self._loading = threading.Lock()
        self._matrix: StaticMatrix | None = None

    def require(self) -> None:
        """MissingExtra if the extra or the weights are missing."""
        if any(find_spec(module) is None for module in MODULES):
            raise MissingExtra("the embedder wordllama needs an extra: pip install 'everthread[meaning]'")
        weights.weights_folder(self._models, MODEL)

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text."""
        return await asyncio.to_thread(self._vectors, texts)

    async def query(self, text: str) -> bytes:
        """The vector of a question."""
        return (await self.passages([text]))[0]

    def understood_share(self, text: str) -> float:
        """The share of Latin letters."""
        return latin_share(text)

    def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        with self._loading:
            matrix = self._matrix = self._matrix or self._load()
        return matrix.vectors(texts)

    def _load(self) -> StaticMatrix:
        try:
            self.require()
        except MissingExtra as problem:
            raise ModelError(str(problem)) from problem
        from everthread.adapters.embedders.static_matrix import StaticMatrix  # noqa: PLC0415 - an extra

        folder = weights.check_weights(self._models, MODEL)
        return StaticMatrix(folder / "l2_supercat_256.safetensors", folder / "tokenizer.json")

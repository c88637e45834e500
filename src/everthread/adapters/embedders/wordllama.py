"""The static matrix of the `wordllama` wheel: a text is the mean of its tokens' rows, so ten thousand take a second.

It knows which words keep company, not what a sentence says. Its rows derive from the embeddings of Llama 2, whose
licence therefore has a say; hence it is never chosen by itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from everthread.adapters.embedders.reading import latin_share, plain
from everthread.adapters.models import weights

MODEL = "wordllama"
MOST_CHARACTERS = 20_000


class WordLlama:
    """256 numbers a text."""

    name = "wordllama-l2/256"
    dimension = 256

    def __init__(self, models: Path) -> None:
        """`models` is the folder that `everthread models fetch` fills; MissingExtra when the weights are not there."""
        weights.located(models, MODEL)
        self._models = models
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, NDArray[np.float32]] | None = None

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text."""
        return await asyncio.to_thread(self._vectors, texts)

    async def query(self, text: str) -> bytes:
        """The vector of a question."""
        return (await self.passages([text]))[0]

    def grasp(self, text: str) -> float:
        """The share of Latin letters."""
        return latin_share(text)

    def _vectors(self, texts: Sequence[str]) -> list[bytes]:
        tokenizer, rows = self._ready()
        read = tokenizer.encode_batch([plain(text, MOST_CHARACTERS) for text in texts], add_special_tokens=False)
        return [_mean(rows, tokens.ids) for tokens in read]

    def _ready(self) -> tuple[Tokenizer, NDArray[np.float32]]:
        with self._loading:
            if self._loaded is None:
                folder = weights.check(self._models, MODEL)
                (table,) = load_file(folder / "l2_supercat_256.safetensors").values()
                tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
                self._loaded = tokenizer, table.astype(np.float32)
            return self._loaded


def _mean(rows: NDArray[np.float32], ids: Sequence[int]) -> bytes:
    mean = rows[list(ids)].mean(axis=0) if ids else np.zeros(rows.shape[1], dtype=np.float32)
    length = float(np.linalg.norm(mean))
    return (mean / length if length else mean).astype("<f4").tobytes()

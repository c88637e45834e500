"""A static embedder: one row per token, and their mean for a text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from everthread.adapters.embedders.local_models import clip_text

MAX_CHARACTERS = 20_000


class StaticMatrix:
    """Rows and the tokenizer that numbers them; safe to use from any thread."""

    def __init__(self, rows: Path, tokenizer: Path) -> None:
        (table,) = load_file(rows).values()
        self._rows: NDArray[np.float32] = table.astype(np.float32)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()

    def vectors(self, texts: Sequence[str]) -> list[bytes]:
        """A vector for each text."""
        clipped = [clip_text(text, MAX_CHARACTERS) for text in texts]
        encoded = self._tokenizer.encode_batch_fast(clipped, add_special_tokens=False)  # without offsets
        return [self._mean(tokens.ids) for tokens in encoded]

    def _mean(self, ids: Sequence[int]) -> bytes:
        rows = self._rows
        mean = rows[list(ids)].mean(axis=0) if ids else np.zeros(rows.shape[1], dtype=np.float32)
        length = float(np.linalg.norm(mean))
        return (mean / length if length else mean).astype("<f4").tobytes()

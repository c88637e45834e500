"""A sentence embedder of BERT's build, computed step by step in numpy: what our graphs are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import erf, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_erf = np.vectorize(erf, otypes=[np.float32])


class Reference:
    """The model as its authors describe it."""

    def __init__(self, weights: Mapping[str, Floats], heads: int) -> None:
        self._w = weights
        self._heads = heads
        self._layers = sum(name.endswith("query.weight") for name in weights)

    def vector(self, ids: Sequence[int]) -> Floats:
        head = "embeddings"
        state = self._w[f"{head}.word_embeddings.weight"][list(ids)]
        state = state + self._w[f"{head}.position_embeddings.weight"][: len(ids)]
        state = self._norm(state + self._w[f"{head}.token_type_embeddings.weight"][0], head)
        for layer in range(self._layers):
            state = self._layer(state, f"encoder.layer.{layer}")
        mean = state.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def _layer(self, state: Floats, head: str) -> Floats:
        query, key, value = (
            self._dense(state, f"{head}.attention.self.{part}").reshape(len(state), self._heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        seen = (shares @ value).transpose(1, 0, 2).reshape(state.shape)
        mixed = self._norm(self._dense(seen, f"{head}.attention.output.dense") + state, f"{head}.attention.output")
        wide = self._dense(mixed, f"{head}.intermediate.dense")
        bent = np.asarray(wide * 0.5 * (1 + _erf(wide / sqrt(2))), dtype=np.float32)
        return self._norm(self._dense(bent, f"{head}.output.dense") + mixed, f"{head}.output")

    def _dense(self, state: Floats, head: str) -> Floats:
        return np.asarray(state @ self._w[f"{head}.weight"].T + self._w[f"{head}.bias"], dtype=np.float32)

    def _norm(self, state: Floats, head: str) -> Floats:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        scaled = centred / spread * self._w[f"{head}.LayerNorm.weight"] + self._w[f"{head}.LayerNorm.bias"]
        return np.asarray(scaled, dtype=np.float32)

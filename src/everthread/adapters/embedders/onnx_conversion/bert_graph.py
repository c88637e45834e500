"""A BERT sentence model as an ONNX graph: published weights in, bytes for onnxruntime out.

Matrices are rounded to 7 bits, each column with its own scale, so that their products do not saturate on a processor
without VNNI. Activations are rounded to 8 bits at run time; before the dense layers each token has its own scale,
because one for all would be that of the largest token and halve the precision of the rest. What is cheap stays float32.
A text is run alone: in a batch it would share the scale of the others, and its vector would depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from everthread.adapters.embedders.onnx_conversion import torch_file
from everthread.adapters.embedders.onnx_conversion.onnx_file import MICROSOFT, Array, Attribute, Node, Value, model

EPSILON = 1e-12
_WEIGHT_STEPS = 63

Floats = NDArray[np.float32]


def read_weights(path: Path) -> Mapping[str, Floats]:
    """The tensors of a file, by name."""
    return load_file(path) if path.suffix == ".safetensors" else torch_file.load(path)


def build(weights: Mapping[str, Floats], *, heads: int, max_tokens: int) -> bytes:
    """The graph: `ids` of the tokens of a text (int32, 1 x tokens) to its `vector` (1 x dimension, of length 1)."""
    graph = _Graph(weights, heads, max_tokens)
    nodes = list(graph.nodes())
    dimension = len(weights["embeddings.LayerNorm.weight"])
    return model(
        nodes,
        graph.constants,
        [Value(name="ids", type="int32", shape=(1, "tokens"))],
        [Value(name="vector", type="float32", shape=(1, dimension))],
    )


def quantise(matrix: Floats, axis: int, steps: int = _WEIGHT_STEPS) -> tuple[NDArray[np.int8], Floats]:
    """A matrix as small integers, and the scale of each column (`axis` 0) or row (`axis` 1)."""
    scale = np.maximum(np.abs(matrix).max(axis=axis), np.float32(1e-12)) / np.float32(steps)
    return np.rint(matrix / np.expand_dims(scale, axis)).astype(np.int8), scale


class _Graph:
    """The nodes in the order of computation, and the constants they use. The names of values are part of the file, and
    so of the hash in `BertModel.graph_sha256`."""

    def __init__(self, weights: Mapping[str, Floats], heads: int, max_tokens: int) -> None:
        self._weights = weights
        self._heads = heads
        self._max_tokens = max_tokens
        self._layers = sum(name.endswith(".attention.self.query.weight") for name in weights)
        self.constants: dict[str, Array] = {}

    def nodes(self) -> Iterator[Node]:
        yield from self._embeddings()
        state = "state0"
        for layer in range(self._layers):
            yield from self._layer(f"encoder.layer.{layer}", state, f"state{layer + 1}")
            state = f"state{layer + 1}"
        yield from self._mean(state)

    def _embeddings(self) -> Iterator[Node]:
        """Words and positions. The table of words is the largest part of the model, so it is rounded too, by row."""
        head = "embeddings"
        table, scale = quantise(self._weights[f"{head}.word_embeddings.weight"], axis=1, steps=127)
        kinds = self._weights[f"{head}.token_type_embeddings.weight"]
        positions = self._weights[f"{head}.position_embeddings.weight"][: self._max_tokens] + kinds[0]
        self.constants |= {"words": table, "word_scale": scale[:, None], "positions": positions}
        self._integers(zero=0, one=1, token_axis=1, last_axis=-1)
        yield _node("Gather", ("words", "ids"), "word_steps")
        yield _node("Cast", ("word_steps",), "word_floats", to=1)
        yield _node("Gather", ("word_scale", "ids"), "word_scales")
        yield _node("Mul", ("word_floats", "word_scales"), "word_vectors")
        yield _node("Shape", ("ids",), "shape")
        yield _node("Gather", ("shape", "one"), "length")
        yield _node("Slice", ("positions", "zero", "length", "zero"), "position_vectors")
        yield _node("Add", ("word_vectors", "position_vectors"), "embedded")
        yield self._norm("embedded", head, "state0")

    def _layer(self, head: str, state: str, result: str) -> Iterator[Node]:
        yield from self._attention(f"{head}.attention.self", state, f"{head}.seen")
        yield from self._product(f"{head}.attention.output.dense", f"{head}.seen", f"{head}.told")
        yield self._norm_of_sum(f"{head}.attention.output", f"{head}.told", state, f"{head}.mixed")
        yield from self._product(f"{head}.intermediate.dense", f"{head}.mixed", f"{head}.wide")
        yield _node("Gelu", (f"{head}.wide",), f"{head}.bent", domain=MICROSOFT)
        yield from self._product(f"{head}.output.dense", f"{head}.bent", f"{head}.narrow")
        yield self._norm_of_sum(f"{head}.output", f"{head}.narrow", f"{head}.mixed", result)

    def _attention(self, head: str, state: str, result: str) -> Iterator[Node]:
        """Query, key and value in one product, whose input is rounded as it comes."""
        parts = [f"{head}.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([self._weights[f"{part}.bias"] for part in parts])
        steps, scale = quantise(matrix, axis=0)
        zeros = np.zeros(len(scale), dtype=np.int8)
        self.constants |= {f"{head}.w": steps, f"{head}.s": scale, f"{head}.b": bias, f"{head}.z": zeros}
        given = (f"{head}.steps", f"{head}.scale", f"{head}.zero")
        yield Node(op="DynamicQuantizeLinear", inputs=(state,), outputs=given)
        inputs = (given[0], f"{head}.w", f"{head}.b", given[1], f"{head}.s", "", given[2], f"{head}.z")
        yield _node("QAttention", inputs, result, domain=MICROSOFT, num_heads=self._heads)

    def _product(self, head: str, state: str, result: str) -> Iterator[Node]:
        """A dense layer, each token brought to the range -1 to 1 before it is rounded, and back afterwards."""
        steps, scale = quantise(self._weights[f"{head}.weight"].T, axis=0)
        self.constants |= {f"{head}.w": steps, f"{head}.s": scale, f"{head}.z": np.zeros(len(scale), dtype=np.int8)}
        self.constants[f"{head}.b"] = self._weights[f"{head}.bias"]
        yield _node("Abs", (state,), f"{head}.sizes")
        yield _node("ReduceMax", (f"{head}.sizes", "last_axis"), f"{head}.size")
        yield _node("Div", (state, f"{head}.size"), f"{head}.even")
        matrix = (f"{head}.even", f"{head}.w", f"{head}.s", f"{head}.z")
        yield _node("DynamicQuantizeMatMul", matrix, f"{head}.product", domain=MICROSOFT)
        yield _node("Mul", (f"{head}.product", f"{head}.size"), f"{head}.back")
        yield _node("Add", (f"{head}.back", f"{head}.b"), result)

    def _norm(self, state: str, head: str, result: str) -> Node:
        inputs = (state, *self._norm_weights(head))
        return _node("LayerNormalization", inputs, result, axis=-1, epsilon=EPSILON)

    def _norm_of_sum(self, head: str, one: str, other: str, result: str) -> Node:
        inputs = (one, other, *self._norm_weights(head))
        return _node("SkipLayerNormalization", inputs, result, domain=MICROSOFT, epsilon=EPSILON)

    def _norm_weights(self, head: str) -> tuple[str, str]:
        names = (f"{head}.LayerNorm.weight", f"{head}.LayerNorm.bias")
        self.constants |= {name: self._weights[name] for name in names}
        return names

    def _mean(self, state: str) -> Iterator[Node]:
        """Over the tokens, then to length 1."""
        yield _node("ReduceMean", (state, "token_axis"), "mean", keepdims=0)
        yield _node("LpNormalization", ("mean",), "vector", axis=1, p=2)

    def _integers(self, **values: int) -> None:
        self.constants |= {name: np.array([value], dtype=np.int64) for name, value in values.items()}


def _node(op: str, inputs: tuple[str, ...], output: str, *, domain: str = "", **attributes: Attribute) -> Node:
    return Node(op=op, inputs=inputs, outputs=(output,), domain=domain, attributes=attributes)

"""Runs a sentence embedder: tokenizer and graph, ready for any thread.

The weights are read and turned into a graph once, which takes two seconds; the graph is then kept beside them, and the
next process is ready in a tenth of one. Either way what is run has the hash that its recipe names or, where this
machine rounds otherwise, comes from weights that have theirs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf, RuntimeException
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from everthread.adapters.embedders import bert_graph, torch_file
from everthread.adapters.embedders.bert_graph import MOST_TOKENS, Floats
from everthread.adapters.embedders.reading import plain
from everthread.adapters.embedders.recipes import Recipe
from everthread.adapters.models import weights
from everthread.core.errors import ModelError

GRAPH_FILE = "int8.onnx"
MOST_CHARACTERS = 8 * MOST_TOKENS
"""More than this is never within the tokens that a model takes, but for a text of very long words."""

_PROBLEMS = (Fail, InvalidGraph, InvalidProtobuf, RuntimeException)


class Session:
    """The model, loaded."""

    def __init__(self, recipe: Recipe, models: Path) -> None:
        self._model = recipe.model
        folder = weights.located(models, recipe.model)
        graph = _kept_graph(recipe, folder) or _new_graph(recipe, models)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except _PROBLEMS as problem:
            raise ModelError(f"onnxruntime cannot load {self._model}: {problem}") from problem

    def vector(self, text: str) -> bytes:
        """Of the first 256 tokens of a text."""
        ids = self._tokenizer.encode(plain(text, MOST_CHARACTERS)).ids
        try:
            (found,) = self._session.run(["vector"], {"ids": np.array([ids], dtype=np.int32)})
        except _PROBLEMS as problem:
            raise ModelError(f"{self._model} failed on a text of {len(ids)} tokens: {problem}") from problem
        return bytes(np.asarray(found, dtype="<f4").tobytes())


def read_weights(path: Path) -> Mapping[str, Floats]:
    """The tensors of a file, by name."""
    return load_file(path) if path.suffix == ".safetensors" else torch_file.load(path)


def _kept_graph(recipe: Recipe, folder: Path) -> bytes | None:
    """The graph that an earlier process made; None when there is none, or not the one we know."""
    tokenizer = weights.file_of(recipe.model, "tokenizer.json")
    if not weights.is_whole(folder / tokenizer.name, tokenizer):
        return None
    try:
        graph = (folder / GRAPH_FILE).read_bytes()
    except OSError:
        return None
    return graph if sha256(graph).hexdigest() == recipe.graph_sha256 else None


def _new_graph(recipe: Recipe, models: Path) -> bytes:
    folder = weights.check(models, recipe.model)
    graph = bert_graph.build(read_weights(folder / recipe.file), heads=recipe.heads)
    if sha256(graph).hexdigest() == recipe.graph_sha256:
        with suppress(OSError):  # a folder that is shared and read-only: each process makes its own
            _keep(graph, folder)
    return graph


def _keep(graph: bytes, folder: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".building-", delete=False) as file:
        try:
            file.write(graph)
            file.flush()
            os.replace(file.name, folder / GRAPH_FILE)
        except OSError:
            os.unlink(file.name)
            raise

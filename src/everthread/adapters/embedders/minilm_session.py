"""Runs MiniLM: tokenizer and graph, ready for any thread.

The weights are read and turned into a graph once, which takes two seconds; the graph is then kept beside them, and the
next process is ready in a tenth of one. Either way what is run has the hash named here or, where this machine rounds
otherwise, comes from weights that have theirs.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf, RuntimeException
from tokenizers import Tokenizer

from everthread.adapters.embedders import minilm_graph
from everthread.adapters.embedders.minilm import MODEL
from everthread.adapters.embedders.reading import plain
from everthread.adapters.models import weights
from everthread.core.errors import ModelError

GRAPH_FILE = "int8.onnx"
GRAPH_SHA256 = "172f043dd922ef7521f94e89fcfcfa9b27ba906c1be6f5e0cb6dacddbdc839d8"
"""Of the graph that `minilm_graph.build` makes from the published weights; a test holds the two together."""
MOST_CHARACTERS = 8 * minilm_graph.MOST_TOKENS
"""More than this is never within the tokens that the model takes, but for a text of very long words."""

_PROBLEMS = (Fail, InvalidGraph, InvalidProtobuf, RuntimeException)


class Session:
    """The model, loaded."""

    def __init__(self, models: Path) -> None:
        folder = weights.located(models, MODEL)
        graph = _kept_graph(folder) or _new_graph(models, folder)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(minilm_graph.MOST_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except _PROBLEMS as problem:
            raise ModelError(f"onnxruntime cannot load {MODEL}: {problem}") from problem

    def vector(self, text: str) -> bytes:
        ids = self._tokenizer.encode(plain(text, MOST_CHARACTERS)).ids
        try:
            (found,) = self._session.run(["vector"], {"ids": np.array([ids], dtype=np.int32)})
        except _PROBLEMS as problem:
            raise ModelError(f"{MODEL} failed on a text of {len(ids)} tokens: {problem}") from problem
        return bytes(np.asarray(found, dtype="<f4").tobytes())


def _kept_graph(folder: Path) -> bytes | None:
    """The graph that an earlier process made; None when there is none, or not the one we know."""
    tokenizer = weights.file_of(MODEL, "tokenizer.json")
    if not weights.is_whole(folder / tokenizer.name, tokenizer):
        return None
    try:
        graph = (folder / GRAPH_FILE).read_bytes()
    except OSError:
        return None
    return graph if sha256(graph).hexdigest() == GRAPH_SHA256 else None


def _new_graph(models: Path, folder: Path) -> bytes:
    weights.check(models, MODEL)
    graph = minilm_graph.build(folder / "model.safetensors")
    if sha256(graph).hexdigest() == GRAPH_SHA256:
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

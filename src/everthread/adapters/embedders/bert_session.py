"""A loaded BERT sentence model: tokenizer and ONNX graph, ready for any thread.

The graph is made from the published weights once, which takes two seconds, and kept beside them; later processes load
it in a tenth of a second. What runs is either a graph with the hash that `BertModel` names, or, on a machine that
rounds differently, one that was just made from weights whose hash is right.
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

from everthread.adapters.embedders.local_models import BertModel, clip_text
from everthread.adapters.models import weights
from everthread.core.errors import ModelError

GRAPH_FILE = "int8.onnx"
MAX_TOKENS = 256
"""What MiniLM was trained for; its table of positions would go on to 512."""
MAX_CHARACTERS = 8 * MAX_TOKENS
"""Tokens of more than eight characters on average occur only in texts of very long words."""

_ONNX_ERRORS = (Fail, InvalidGraph, InvalidProtobuf, RuntimeException)


class BertSession:
    """The model, loaded."""

    def __init__(self, model: BertModel, models: Path) -> None:
        self._name = model.model
        folder = weights.weights_folder(models, model.model)
        graph = _read_graph(model, folder) or _convert(model, models)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except _ONNX_ERRORS as problem:
            raise ModelError(f"onnxruntime cannot load {self._name}: {problem}") from problem

    def vector(self, text: str) -> bytes:
        """The vector of a text's first 256 tokens."""
        ids = self._tokenizer.encode(clip_text(text, MAX_CHARACTERS)).ids
        try:
            (found,) = self._session.run(["vector"], {"ids": np.array([ids], dtype=np.int32)})
        except _ONNX_ERRORS as problem:
            raise ModelError(f"{self._name} failed on a text of {len(ids)} tokens: {problem}") from problem
        return bytes(np.asarray(found, dtype="<f4").tobytes())


def _read_graph(model: BertModel, folder: Path) -> bytes | None:
    """The graph that an earlier process converted; None if it is missing or not the expected one."""
    tokenizer = weights.file_of(model.model, "tokenizer.json")
    if not weights.is_whole(folder / tokenizer.name, tokenizer):
        return None
    try:
        graph = (folder / GRAPH_FILE).read_bytes()
    except OSError:
        return None
    return graph if sha256(graph).hexdigest() == model.graph_sha256 else None


def _convert(model: BertModel, models: Path) -> bytes:
    from everthread.adapters.embedders.onnx_conversion import bert_graph  # noqa: PLC0415 - once per machine

    folder = weights.check_weights(models, model.model)
    tensors = bert_graph.read_weights(folder / model.file)
    graph = bert_graph.build(tensors, heads=model.heads, max_tokens=MAX_TOKENS)
    if sha256(graph).hexdigest() == model.graph_sha256:
        with suppress(OSError):  # a shared folder may be read-only: then each process converts for itself
            _write_graph(graph, folder)
    return graph


def _write_graph(graph: bytes, folder: Path) -> None:
    """Under a temporary name first: another process may be reading, or writing the same file."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".building-", delete=False) as file:
        try:
            file.write(graph)
            file.flush()
            os.replace(file.name, folder / GRAPH_FILE)
        except OSError:
            os.unlink(file.name)
            raise

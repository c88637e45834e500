"""Turns the published weights of a sentence model into an ONNX file. Runs once per machine and model: `bert_session`
imports this package only if the converted file is not in the models folder yet.

It ships with the package rather than living in tools/, because the conversion happens on the user's machine: weights
come by hash from where their authors publish them, so nobody has to host, or trust, a file of ours. The `onnx` package
and onnxruntime's quantiser would do the same at the price of a dependency that is needed once, and with one scale for
all tokens, which costs precision.

torch_file   reads a checkpoint saved by torch, without torch and without executing it
bert_graph   builds the quantised graph
onnx_file    writes the graph as ONNX
"""

from __future__ import annotations

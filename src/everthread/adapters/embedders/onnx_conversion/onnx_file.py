"""Writes an ONNX model, which is a protocol buffer with a few kinds of fields: a page of code in place of a package
that would be needed once per machine. Field numbers are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Attribute = int | float

IR_VERSION = 8
OPSET = 18
MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own fused and quantised operators."""

_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation."""

    op: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    domain: str = ""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An input or output: its type, and its shape with names for the sizes that vary."""

    name: str
    type: str
    shape: Sequence[int | str]


def model(
    nodes: Iterable[Node], constants: Mapping[str, Array], inputs: Iterable[Value], outputs: Iterable[Value]
) -> bytes:
    """The bytes of a model; the same for the same graph."""
    graph = b"".join(
        [
            *(_bytes(1, _node(node)) for node in nodes),
            _text(2, "graph"),
            *(_bytes(5, _tensor(name, array)) for name, array in constants.items()),
            *(_bytes(11, _value(value)) for value in inputs),
            *(_bytes(12, _value(value)) for value in outputs),
        ]
    )
    opsets = _bytes(8, _text(1, "") + _int(2, OPSET)) + _bytes(8, _text(1, MICROSOFT) + _int(2, 1))
    return _int(1, IR_VERSION) + _text(2, "everthread") + _bytes(7, graph) + opsets


def _node(node: Node) -> bytes:
    return b"".join(
        [
            *(_text(1, name) for name in node.inputs),
            *(_text(2, name) for name in node.outputs),
            _text(4, node.op),
            *(_bytes(5, _attribute(name, value)) for name, value in node.attributes.items()),
            _text(7, node.domain),
        ]
    )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + b"\x15" + np.float32(value).tobytes() + _int(20, 1)
    return _text(1, name) + _int(3, value) + _int(20, 2)


def _tensor(name: str, array: Array) -> bytes:
    dimensions = b"".join(_int(1, size) for size in array.shape)
    body = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    return dimensions + _int(2, _TYPES[array.dtype.name]) + _text(8, name) + _bytes(9, body)


def _value(value: Value) -> bytes:
    sizes = (_int(1, size) if isinstance(size, int) else _text(2, size) for size in value.shape)
    shape = b"".join(_bytes(1, size) for size in sizes)
    tensor = _int(1, _TYPES[value.type]) + _bytes(2, shape)
    return _text(1, value.name) + _bytes(2, _bytes(1, tensor))


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _int(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value & (1 << 64) - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)

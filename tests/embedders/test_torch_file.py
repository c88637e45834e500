"""Weights as torch saves them are read without running anything."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="needs everthread[meaning]")

import numpy as np

from everthread.adapters.embedders.onnx_conversion.torch_file import load
from everthread.core.errors import ModelError


def _pickled(*, module: str, name: str, rest: bytes) -> bytes:
    """A pickle that asks for a name of a module, written by hand, as nobody here has torch."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + rest


def _archive(path: Path, described: bytes, **storages: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", described)
        for key, body in storages.items():
            archive.writestr(f"model/data/{key}", body)
    return path


class _Writer(pickle.Pickler):
    """Writes `(key, numbers)` pairs as torch writes tensors."""

    def persistent_id(self, obj: Any) -> Any:
        return obj.pid if isinstance(obj, _Storage) else None


class _Storage:
    def __init__(self, key: str) -> None:
        self.pid = ("storage", _FloatStorage, key, "cpu", 6)


class _FloatStorage:
    pass


class _Tensor:
    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor_v2, self.arguments


def _rebuild_tensor_v2(*_: Any) -> None:
    raise AssertionError("never called")


def _saved(state: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    _Writer(out, protocol=2).dump(state)
    here = __name__.encode()
    return (
        out.getvalue()
        .replace(b"c" + here + b"\n_rebuild_tensor_v2", b"ctorch._utils\n_rebuild_tensor_v2")
        .replace(b"c" + here + b"\n_FloatStorage", b"ctorch\nFloatStorage")
    )


def test_arrays_are_read_by_name_and_shape(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype="<f4")
    state = {"w": _Tensor(_Storage("0"), 0, (2, 3), (3, 1), False, {})}
    found = load(_archive(tmp_path / "m.bin", _saved(state), **{"0": numbers.tobytes()}))
    assert found["w"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_i25_a_pickle_that_would_run_something_is_refused(tmp_path: Path) -> None:
    evil = _pickled(module="os", name="mkdir", rest=b"(S'" + os.fsencode(tmp_path / "made") + b"'\ntR.")
    with pytest.raises(ModelError, match=r"os\.mkdir"):
        load(_archive(tmp_path / "m.bin", evil))
    assert not (tmp_path / "made").exists()


def test_an_array_that_is_not_where_it_should_be_is_refused(tmp_path: Path) -> None:
    for shape, stride in (((2, 4), (4, 1)), ((3, 2), (1, 3))):
        state = {"w": _Tensor(_Storage("0"), 0, shape, stride, False, {})}
        with pytest.raises(ModelError, match="not where"):
            load(_archive(tmp_path / "m.bin", _saved(state), **{"0": bytes(24)}))


def test_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"not an archive")
    with pytest.raises(ModelError, match="torch"):
        load(tmp_path / "m.bin")

"""Reads weights saved by torch, without torch and without executing anything: the file is a zip archive of plain arrays
and a pickle that names them. The unpickler knows only the few names that describe an array and refuses all others.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from everthread.core.errors import ModelError

_DTYPES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "LongStorage": "<i8"}


def load(path: Path) -> Mapping[str, NDArray[np.float32]]:
    """The float arrays, by name; ModelError if the file is anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = _Unpickler(archive).load()
    except (zipfile.BadZipFile, pickle.UnpicklingError, KeyError, ValueError) as problem:
        raise ModelError(f"{path.name} is not a file of weights saved by torch: {problem}") from problem
    return {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items() if array.dtype.kind == "f"}


class _Unpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        (described,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        super().__init__(io.BytesIO(archive.read(described)))
        self._archive = archive
        self._folder = described.removesuffix("data.pkl") + "data/"

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _array
        if module == "torch" and name in _DTYPES:
            return _StorageType(name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        _, kind, key, *_ = pid
        return np.frombuffer(self._archive.read(f"{self._folder}{key}"), dtype=kind.dtype)


class _StorageType:
    """Stands in for one of torch's storage classes: it knows the type of the numbers, and creates nothing."""

    def __init__(self, name: str) -> None:
        self.dtype = _DTYPES[name]

    def __call__(self, *_: object) -> NoReturn:
        raise pickle.UnpicklingError("it asks to create a storage")


def _array(numbers: NDArray[Any], start: int, shape: Sequence[int], stride: Sequence[int], *_: object) -> NDArray[Any]:
    size = int(np.prod(shape))
    if len(numbers) < start + size or tuple(stride) != _contiguous(shape):
        raise ValueError("an array is not where its description says")
    return numbers[start : start + size].reshape(shape)


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[n + 1 :])) for n in range(len(shape)))

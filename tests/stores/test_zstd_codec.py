"""A library that cannot read what was packed is named as what it is, before any file is called damaged."""

from __future__ import annotations

from typing import Any

import pytest
import zstandard

from everthread import StoreError
from everthread.adapters.stores import zstd_codec
from everthread.core.errors import StoreDamaged


class OldDecompressor:
    """As zstandard 0.23 is: it wants a magic number before each frame."""

    def __init__(self, **options: Any) -> None:
        pass

    def decompress(self, data: bytes) -> bytes:
        raise zstandard.ZstdError("error determining content size from frame header")


def test_a_zstandard_that_cannot_read_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zstandard, "ZstdDecompressor", OldDecompressor)
    with pytest.raises(StoreError, match=r"zstandard .* nothing is damaged.*zstandard>=0\.24") as refused:
        zstd_codec.require_working_zstd.__wrapped__()
    assert not isinstance(refused.value, StoreDamaged)


def test_the_installed_zstandard_reads_what_it_packs() -> None:
    zstd_codec.require_working_zstd()

"""Whether the installed zstandard reads what everthread packs: one that does not is never to be taken for damage."""

from __future__ import annotations

from functools import cache

import zstandard

from everthread.core.errors import StoreError

_FORMAT = zstandard.FORMAT_ZSTD1_MAGICLESS
_SAMPLE = b"never end, never forget " * 4


@cache
def require_working_zstd() -> None:
    """StoreError names the version that is needed: until 0.24 the library finds no size in a frame without magic."""
    parameters = zstandard.ZstdCompressionParameters.from_level(1, write_content_size=1, format=_FORMAT)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(_SAMPLE)
    try:
        is_read = zstandard.ZstdDecompressor(format=_FORMAT).decompress(packed) == _SAMPLE
    except zstandard.ZstdError:
        is_read = False
    if not is_read:
        raise StoreError(
            f"the installed zstandard {zstandard.__version__} cannot read what everthread packs; nothing is damaged "
            "and nothing was changed: pip install 'zstandard>=0.24'"
        )

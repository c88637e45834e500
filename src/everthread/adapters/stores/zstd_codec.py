"""zstd with a dictionary, as rows (`packed_records`) and payloads (`sqlite/compression`) are packed: without the magic
number, size of the window and id of the dictionary that a file would begin with.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import zstandard

from everthread.core.errors import StoreError

_FORMAT = zstandard.FORMAT_ZSTD1_MAGICLESS
_SAMPLE = b"never end, never forget " * 4


class Codec(NamedTuple):
    """Packs and unpacks; one thread may use it at a time."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes], bytes]


def codec(package: str, dictionary: str, *, level: int, source_size: int, min_match: int | None = None) -> Codec:
    """A codec with a dictionary of a package. `source_size`: the largest input that it has to be good at; `min_match`:
    how many bytes are worth referring to, where the level's own number does not suit."""
    words, parameters = _prepared(package, dictionary, level, source_size, min_match)
    compressor = zstandard.ZstdCompressor(dict_data=words, compression_params=parameters)
    return Codec(compressor.compress, zstandard.ZstdDecompressor(dict_data=words, format=_FORMAT).decompress)


@cache
def _prepared(
    package: str, dictionary: str, level: int, source_size: int, min_match: int | None
) -> tuple[zstandard.ZstdCompressionDict, zstandard.ZstdCompressionParameters]:
    require_working_zstd()
    words = zstandard.ZstdCompressionDict((files(package) / dictionary).read_bytes())
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level,
        source_size=source_size,
        dict_size=len(words),
        write_content_size=1,
        write_dict_id=0,
        format=_FORMAT,
        **({} if min_match is None else {"min_match": min_match}),
    )
    words.precompute_compress(compression_params=parameters)
    return words, parameters


@cache
def require_working_zstd() -> None:
    """StoreError where the installed zstandard cannot read what is packed here, which must not be taken for damage:
    until 0.24 the library finds no size in a frame without magic number."""
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

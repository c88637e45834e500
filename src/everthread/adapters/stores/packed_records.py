"""How JSON of our own stands in a database: turns, their events, manifests and summaries, packed to a quarter of it.

Such a document is a few numbers and ids in words that all of them share. The words are in a dictionary. Ids, which no
packing makes shorter than the bytes they are made of, are taken out of the text: those that the row's neighbours hold
(`ids`) become a byte that says which, of the others only their bytes stay.

    text of the document, with a byte in the place of each id ␀ the bytes of the ids

The first byte tells how a document stands there. JSON begins otherwise, and is what earlier versions wrote. What was
damaged is handed out as it is: a reader finds that it is not JSON.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import zstandard

from everthread.adapters.stores.zstd_codec import Codec, codec

PACKED = b"\x03"
"""How a packed document begins; payloads (`sqlite/compression.py`) have other first bytes."""
_DICTIONARY = "records-1.dict"
"""Made by `tools/train_records.py`; never to be changed, since nothing that was packed is readable without it."""
_LEVEL = 3
_BYTES = 8_192
"""The largest document that it has to be good at."""

_END = b"\x00"
_UUID, _DIGEST, _HASH = b"\x01", b"\x02", b"\x04"
_BYTES_OF = {_UUID: 16, _DIGEST: 32, _HASH: 8}
_FIRST_KNOWN, _MOST_KNOWN = 0x10, 16

_ID = re.compile(
    rb'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|"(?:[0-9a-f]{64}|[0-9a-f]{16})"', re.ASCII
)
_MARKER = re.compile(rb"[\x01\x02\x04\x10-\x1f]")
_CONTROL = re.compile(rb"[\x00-\x1f]")


def pack(document: bytes, ids: Sequence[str] = ()) -> bytes:
    """Pack a JSON document. To unpack it, the same `ids` are needed in the same order."""
    if _CONTROL.search(document) is not None:  # JSON that a human has laid out: not ours
        return document
    known = {id.encode(): bytes([_FIRST_KNOWN + place]) for place, id in enumerate(ids[:_MOST_KNOWN])}
    taken: list[bytes] = []

    def replace(found: re.Match[bytes]) -> bytes:
        id = found[0]
        if id in known:
            return known[id]
        marker = _UUID if id[:1] != b'"' else _DIGEST if len(id) > 60 else _HASH
        taken.append(bytes.fromhex(id.strip(b'"').replace(b"-", b"").decode()))
        return marker

    text = _ID.sub(replace, document)
    packed = PACKED + _codec().compress(b"".join((text, _END, *taken)))
    return packed if len(packed) < len(document) else document


def unpack(stored: bytes, ids: Sequence[str] = ()) -> bytes:
    """The document as it was; what an earlier version stored, or what is damaged, as it is."""
    if not stored.startswith(PACKED):
        return stored
    try:
        text, _, taken = _codec().decompress(stored[1:]).partition(_END)
    except (zstandard.ZstdError, MemoryError):
        return stored
    at = 0

    def restore(found: re.Match[bytes]) -> bytes:
        nonlocal at
        marker = found[0]
        if marker not in _BYTES_OF:
            place = marker[0] - _FIRST_KNOWN
            return ids[place].encode() if place < len(ids) else marker
        value = taken[at : at + _BYTES_OF[marker]].hex()
        at += _BYTES_OF[marker]
        if marker != _UUID:
            return f'"{value}"'.encode()
        return f"{value[:8]}-{value[8:12]}-{value[12:16]}-{value[16:20]}-{value[20:]}".encode()

    return _MARKER.sub(restore, text)


_local = threading.local()
"""A codec may be used by one thread at a time."""


def _codec() -> Codec:
    found: Codec | None = getattr(_local, "codec", None)
    if found is None:
        found = _local.codec = codec(__package__, _DICTIONARY, level=_LEVEL, source_size=_BYTES)
    return found

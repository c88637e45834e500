"""How a checkpoint's row is encoded: small values inline, large ones by the digest of their bytes, and lists of
messages as ranges over the log: `[1-812]`, or after a compaction `[903, 790-812]`.

A reference is the seq of an entry of the thread's own conversation, or says more: whose entry it is, or which bytes the
message is built from. A list of many ranges is cut into chunks that later lists share. Where a chunk ends is decided
by its last range, not by a count, so that one removal changes one chunk and not all that follow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from everthread.core.checkpoints import digest_of
from everthread.core.errors import StoreDamaged

MAX_RANGES = 16
"""A list of more ranges is kept in chunks."""
_CHUNK_MASK = 15
_MAX_CHUNK_SIZE = 64
_CHUNK_TAG = ""


class LogRef(NamedTuple):
    """An entry that is another conversation's, or that is built from bytes kept beside it."""

    seq: int
    home: str | None
    """The id of the conversation; None for the thread's own."""
    serde_digest: bytes | None
    """The digest of the serializer's bytes."""


class UnloggedRef(NamedTuple):
    """A message that is in no log: a chunk, an instruction, or one of a channel that feeds no history."""

    serde_digest: bytes


MessageRef = int | LogRef | UnloggedRef
Blobs = dict[bytes, bytes]


def pack_refs(refs: Sequence[MessageRef], blobs: Blobs) -> list[Any]:
    """Ranges, or chunks of them; what is shared is put into `blobs`."""
    packed = [[refs[0], refs[-1]]] if _is_one_range(refs) else list(_ranges(refs))
    while len(packed) > MAX_RANGES:
        chunked = [_chunk(part, blobs) for part in _cut_into_chunks(packed)]
        if len(chunked) >= len(packed):
            break
        packed = chunked
    return packed


def _is_one_range(refs: Sequence[MessageRef]) -> bool:
    """Whether the list is one unbroken range of the log, as it is most often."""
    if len(refs) < 2 or not isinstance(refs[0], int):
        return False
    return [*refs] == [*range(refs[0], refs[0] + len(refs))]


def _ranges(refs: Sequence[MessageRef]) -> Iterator[Any]:
    first = last = 0
    home: str | None = None
    for ref in refs:
        if ref == last + 1 and home is None and first:  # by far the most
            last += 1
            continue
        is_plain = ref.__class__ is int or (isinstance(ref, LogRef) and ref.serde_digest is None)
        seq, whose = (ref, None) if isinstance(ref, int) else (getattr(ref, "seq", 0), getattr(ref, "home", None))
        if is_plain and first and seq == last + 1 and whose == home:
            last = seq
            continue
        if first:
            yield _range(first, last, home)
        first, last, home = (seq, seq, whose) if is_plain else (0, 0, None)
        if not is_plain:
            yield [*ref] if isinstance(ref, LogRef) else ref.serde_digest  # type: ignore[union-attr]
    if first:
        yield _range(first, last, home)


def _range(first: int, last: int, home: str | None) -> Any:
    if home is not None:
        return [first, last, home, 0]
    return first if first == last else [first, last]


def _cut_into_chunks(packed: Sequence[Any]) -> Iterator[Sequence[Any]]:
    start = 0
    for position, element in enumerate(packed):
        size = position + 1 - start
        is_end = zlib.crc32(ormsgpack.packb(element)) & _CHUNK_MASK == 0
        if is_end or size == _MAX_CHUNK_SIZE:
            yield packed[start : position + 1]
            start = position + 1
    if start < len(packed):
        yield packed[start:]


def _chunk(part: Sequence[Any], blobs: Blobs) -> Any:
    if len(part) == 1:
        return part[0]
    body = ormsgpack.packb(list(part))
    digest = digest_of(body)
    blobs[digest] = body
    return [_CHUNK_TAG, digest]


def chunks_in(packed: Sequence[Any]) -> list[bytes]:
    """The digests of chunks that a list is cut into."""
    return [element[1] for element in packed if isinstance(element, list) and element[0] == _CHUNK_TAG]


def serde_digests_in(refs: Iterable[MessageRef]) -> Iterator[bytes]:
    """The digests of bytes that messages are built from."""
    return (ref.serde_digest for ref in refs if not isinstance(ref, int) and ref.serde_digest is not None)


def unpack_refs(packed: Sequence[Any], chunks: Mapping[bytes, bytes]) -> list[MessageRef]:
    """The references, message by message. A chunk that is gone was erased, with what it referred to."""
    refs: list[MessageRef] = []
    for element in packed:
        refs += _unpack_element(element, chunks)
    return refs


def _unpack_element(element: Any, chunks: Mapping[bytes, bytes]) -> Iterable[MessageRef]:
    if isinstance(element, int):
        return (element,)
    if isinstance(element, bytes):
        return (UnloggedRef(element),)
    if element[0] == _CHUNK_TAG:
        return unpack_refs(ormsgpack.unpackb(chunks[element[1]]), chunks) if element[1] in chunks else ()
    if len(element) == 2:
        return range(element[0], element[1] + 1)
    if len(element) == 3:
        return (LogRef(*element),)
    first, last, home, _ = element
    return [LogRef(seq, home, None) for seq in range(first, last + 1)]


DELTA_COUNTERS = "counters_since_delta_snapshot"
"""In a checkpoint's metadata: the delta channels that are not in its values."""

INLINE, BLOB, LIST, DELTA = "v", "b", "m", "d"
_MAX_INLINE_BYTES = 64

PackedValue = Sequence[Any]
"""`[v, kind, bytes]`, `[b, digest]`, `[m, ranges]` or, for the snapshot of a delta channel, `[d, ranges]`."""


class RowBody(NamedTuple):
    """The decoded body of a checkpoint's row."""

    checkpoint: Mapping[str, Any]
    """The checkpoint without its values."""
    values: Mapping[str, PackedValue]


def pack_value(kind: str, body: bytes, blobs: Blobs) -> PackedValue:
    """The serializer's bytes of a value other than a list of messages."""
    if len(body) <= _MAX_INLINE_BYTES:
        return [INLINE, kind, body]
    return [BLOB, pack_blob(kind, body, blobs)]


def pack_blob(kind: str, body: bytes, blobs: Blobs) -> bytes:
    """Keep the serializer's bytes by their digest."""
    whole = kind.encode() + b"\x00" + body
    digest = digest_of(whole)
    blobs[digest] = whole
    return digest


def unpack_blob(whole: bytes) -> tuple[str, bytes]:
    """The serializer's bytes."""
    kind, _, body = whole.partition(b"\x00")
    return kind.decode(), body


def pack_list(refs: Sequence[MessageRef], is_delta: bool, blobs: Blobs) -> PackedValue:
    """A list of messages."""
    return [DELTA if is_delta else LIST, pack_refs(refs, blobs)]


def pack_body(body: RowBody, serde: SerializerProtocol) -> bytes:
    """The row's bytes."""
    return ormsgpack.packb([*serde.dumps_typed(body.checkpoint), body.values])


def unpack_body(packed: bytes, serde: SerializerProtocol) -> RowBody:
    """What the row says."""
    try:
        kind, checkpoint, values = ormsgpack.unpackb(packed)
    except (ValueError, TypeError) as problem:
        raise StoreDamaged(f"a checkpoint cannot be read ({problem}): restore a backup") from problem
    return RowBody(serde.loads_typed((kind, checkpoint)), values)


def blobs_in_body(packed: bytes) -> list[bytes]:
    """The digests of the values that a row names, without decoding the rest of it."""
    return [value[1] for value in ormsgpack.unpackb(packed)[2].values() if value[0] == BLOB]


def digests_in(values: Iterable[PackedValue]) -> list[bytes]:
    """The digests that values name themselves: of bytes, and of the chunks of lists."""
    found: list[bytes] = []
    for value in values:
        if value[0] == BLOB:
            found.append(value[1])
        elif value[0] in (LIST, DELTA):
            found += chunks_in(value[1])
    return found


def refs_in(values: Mapping[str, PackedValue], chunks: Mapping[bytes, bytes]) -> dict[str, list[MessageRef]]:
    """The lists of messages among the values, by channel."""
    return {channel: unpack_refs(value[1], chunks) for channel, value in values.items() if value[0] in (LIST, DELTA)}


def unpack_value(value: PackedValue, serde: SerializerProtocol, blobs: Mapping[bytes, bytes]) -> Any:
    """A value other than a list of messages; KeyError when its bytes are gone."""
    if value[0] == INLINE:
        return serde.loads_typed((value[1], value[2]))
    return serde.loads_typed(unpack_blob(blobs[value[1]]))


def messages_of(value: object) -> tuple[object, bool]:
    """A value that may be a list of messages, and whether it is the snapshot of a delta channel."""
    return (value.value, True) if isinstance(value, _DeltaSnapshot) else (value, False)

"""A list of messages as ranges over the log: `[1-812]`, or after a compaction `[903, 790-812]`.

A reference is the seq of an entry of the thread's own conversation, or says more: whose entry it is, or which bytes
the message is cast from. A list of many ranges is cut into chunks that later lists share. Where a chunk ends is
decided by its last range, not by a count, so that one removal changes one chunk and not all that follow.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import ormsgpack

from everthread.core.checkpoints import digest_of

MOST_RANGES = 16
"""A list of more ranges is kept in chunks."""
_CHUNK_MASK = 15
_MOST_IN_CHUNK = 64
_CHUNK = ""


class Entry(NamedTuple):
    """An entry that is another conversation's, or that is cast from bytes kept beside it."""

    seq: int
    home: str | None
    """The id of the conversation; None for the thread's own."""
    form: bytes | None
    """The digest of the serializer's bytes."""


class Loose(NamedTuple):
    """A message that is in no log: a chunk, an instruction, or one of a channel that feeds no history."""

    form: bytes


Ref = int | Entry | Loose
Blobs = dict[bytes, bytes]


def pack(refs: Sequence[Ref], blobs: Blobs) -> list[Any]:
    """Ranges, or chunks of them; what is shared is put into `blobs`."""
    packed = [[refs[0], refs[-1]]] if _is_one_range(refs) else list(_ranges(refs))
    while len(packed) > MOST_RANGES:
        chunked = [_chunk(part, blobs) for part in _cut(packed)]
        if len(chunked) >= len(packed):
            break
        packed = chunked
    return packed


def _is_one_range(refs: Sequence[Ref]) -> bool:
    """Whether the log has just this list, one message after the other: most often it has."""
    if len(refs) < 2 or not isinstance(refs[0], int):
        return False
    return [*refs] == [*range(refs[0], refs[0] + len(refs))]


def _ranges(refs: Sequence[Ref]) -> Iterator[Any]:
    first = last = 0
    home: str | None = None
    for ref in refs:
        if ref == last + 1 and home is None and first:  # by far the most
            last += 1
            continue
        is_plain = ref.__class__ is int or (isinstance(ref, Entry) and ref.form is None)
        seq, whose = (ref, None) if isinstance(ref, int) else (getattr(ref, "seq", 0), getattr(ref, "home", None))
        if is_plain and first and seq == last + 1 and whose == home:
            last = seq
            continue
        if first:
            yield _range(first, last, home)
        first, last, home = (seq, seq, whose) if is_plain else (0, 0, None)
        if not is_plain:
            yield [*ref] if isinstance(ref, Entry) else ref.form  # type: ignore[union-attr]
    if first:
        yield _range(first, last, home)


def _range(first: int, last: int, home: str | None) -> Any:
    if home is not None:
        return [first, last, home, 0]
    return first if first == last else [first, last]


def _cut(packed: Sequence[Any]) -> Iterator[Sequence[Any]]:
    start = 0
    for position, element in enumerate(packed):
        size = position + 1 - start
        is_end = zlib.crc32(ormsgpack.packb(element)) & _CHUNK_MASK == 0
        if is_end or size == _MOST_IN_CHUNK:
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
    return [_CHUNK, digest]


def chunks_in(packed: Sequence[Any]) -> list[bytes]:
    """The digests of chunks that a list is cut into."""
    return [element[1] for element in packed if isinstance(element, list) and element[0] == _CHUNK]


def forms_in(refs: Iterable[Ref]) -> Iterator[bytes]:
    """The digests of bytes that messages are cast from."""
    return (ref.form for ref in refs if not isinstance(ref, int) and ref.form is not None)


def unpack(packed: Sequence[Any], chunks: Mapping[bytes, bytes]) -> list[Ref]:
    """The references, message by message. A chunk that is gone was erased, with what it referred to."""
    refs: list[Ref] = []
    for element in packed:
        refs += _unpacked(element, chunks)
    return refs


def _unpacked(element: Any, chunks: Mapping[bytes, bytes]) -> Iterable[Ref]:
    if isinstance(element, int):
        return (element,)
    if isinstance(element, bytes):
        return (Loose(element),)
    if element[0] == _CHUNK:
        return unpack(ormsgpack.unpackb(chunks[element[1]]), chunks) if element[1] in chunks else ()
    if len(element) == 2:
        return range(element[0], element[1] + 1)
    if len(element) == 3:
        return (Entry(*element),)
    first, last, home, _ = element
    return [Entry(seq, home, None) for seq in range(first, last + 1)]

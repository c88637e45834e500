"""The values of a checkpoint's channels, as its row keeps them: small ones themselves, others as the digest of their
bytes, lists of messages as references to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import ormsgpack
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from everthread.adapters.checkpoints.elements import Blobs, Ref, chunks_in, pack, unpack
from everthread.core.checkpoints import digest_of
from everthread.core.errors import StoreDamaged

INLINE, BLOB, LIST, DELTA = "v", "b", "m", "d"
_INLINE_BYTES = 64

Packed = Sequence[Any]
"""`[v, kind, bytes]`, `[b, digest]`, `[m, ranges]` or, for the snapshot of a delta channel, `[d, ranges]`."""


class Body(NamedTuple):
    """What the row of a checkpoint says."""

    checkpoint: Mapping[str, Any]
    """All of it but the values."""
    values: Mapping[str, Packed]


def pack_value(value: object, serde: SerializerProtocol, blobs: Blobs) -> Packed:
    """A value that is no list of messages."""
    kind, body = serde.dumps_typed(value)
    if len(body) <= _INLINE_BYTES:
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


def pack_list(refs: Sequence[Ref], is_delta: bool, blobs: Blobs) -> Packed:
    """A list of messages."""
    return [DELTA if is_delta else LIST, pack(refs, blobs)]


def pack_body(body: Body, serde: SerializerProtocol) -> bytes:
    """The row's bytes."""
    return ormsgpack.packb([*serde.dumps_typed(body.checkpoint), body.values])


def unpack_body(packed: bytes, serde: SerializerProtocol) -> Body:
    """What the row says."""
    try:
        kind, checkpoint, values = ormsgpack.unpackb(packed)
    except (ValueError, TypeError) as problem:
        raise StoreDamaged(f"a checkpoint cannot be read ({problem}): restore a backup") from problem
    return Body(serde.loads_typed((kind, checkpoint)), values)


def digests_in(values: Iterable[Packed]) -> list[bytes]:
    """The digests that values name themselves: of bytes, and of the chunks of lists."""
    found: list[bytes] = []
    for value in values:
        if value[0] == BLOB:
            found.append(value[1])
        elif value[0] in (LIST, DELTA):
            found += chunks_in(value[1])
    return found


def refs_in(values: Mapping[str, Packed], chunks: Mapping[bytes, bytes]) -> dict[str, list[Ref]]:
    """The lists of messages among the values, by channel."""
    return {channel: unpack(value[1], chunks) for channel, value in values.items() if value[0] in (LIST, DELTA)}


def unpack_value(value: Packed, serde: SerializerProtocol, blobs: Mapping[bytes, bytes]) -> Any:
    """A value that is no list of messages; KeyError when its bytes are gone."""
    if value[0] == INLINE:
        return serde.loads_typed((value[1], value[2]))
    return serde.loads_typed(unpack_blob(blobs[value[1]]))


def messages_of(value: object) -> tuple[object, bool]:
    """What may be a list of messages, and whether it is the snapshot of a delta channel."""
    return (value.value, True) if isinstance(value, _DeltaSnapshot) else (value, False)

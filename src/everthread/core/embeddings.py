"""Finding by meaning: what turns texts into vectors, and what keeps the vectors of a conversation's messages.

- A vector is `dimension` float32 numbers, little endian, of length 1, so that the cosine of two is their dot product.
- Vectors carry the name of the embedder that made them; those of two names are never compared.
- A message is indexed in parts (1 for most, more for a long one); a part is known by owner, conversation, seq and
  number, so that the same one again is there once.
- Vectors are a view: they hold no text, and can be thrown away and made again from the log.

Without an embedder there are no vectors, and words alone are searched.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple, Protocol

from everthread.core.errors import Invalid
from everthread.core.nouns import Ref

NUMBER_BYTES = 4


class Embedder(Protocol):
    """The interface of a model that turns texts into vectors. Pass one to `everthread.open(embedder=…)`.

    It may be called from several tasks at once; slow work belongs in threads. A vector is packed as float32 bytes of
    length 1, which `everthread.core.embeddings.unit` does.

    ```python
    from everthread.testing import FakeEmbedder

    et = everthread.open("memory://", embedder=FakeEmbedder())
    ```
    """

    @property
    def name(self) -> str:
        """Model and variant, such as `minilm-l6-v2/int8`. Vectors of different names are never compared."""

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; None while a remote model has not been asked yet."""

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Return a vector for each text to be found, in order. Raises ModelError when the model fails."""

    async def query(self, text: str) -> bytes:
        """Return the vector of a question."""

    def understood_share(self, text: str) -> float:
        """Return which share of the text the model understands, 0 to 1; its verdict counts that much."""


class VectorPart(NamedTuple):
    """The vector of one part of a message.

    ```python
    await et.vectors.put(everthread.Ref("local", "trip"), "my-model", [everthread.VectorPart(1, 0, vector)])
    ```
    """

    seq: int
    """Of the entry that holds the text."""
    part: int
    """0, 1, 2 … within the entry."""
    vector: bytes


class VectorHit(NamedTuple):
    """A part of a message that is near to a question.

    ```python
    for hit in await et.vectors.near("local", None, "my-model", vector, limit=3):
        print(hit.conversation_id, hit.seq, hit.score)
    ```
    """

    conversation_id: str
    seq: int
    part: int
    score: float
    """The cosine to what was asked, -1 to 1; a store may keep vectors rounded, and it is then off by 0.01 at most."""


class IndexProgress(NamedTuple):
    """How much of a conversation is indexed for one embedder.

    ```python
    for model, progress in (await et.vectors.indexed(everthread.Ref("local", "trip"))).items():
        print(model, progress.parts, "up to seq", progress.newest_seq)
    ```
    """

    parts: int
    newest_seq: int
    """The newest entry that has a vector; 0 when none has."""


class Vectors(Protocol):
    """The interface of a vector store. Pass one to `everthread.open(vectors=…)` to keep vectors elsewhere.

    It keeps them by owner, conversation and embedder. It raises StoreError, in bounded time, when it cannot be reached.

    ```py
    et = everthread.open("sqlite:///data/et.db", vectors="milvus:http://localhost:19530")
    print(et.vectors.about)
    ```
    """

    @property
    def about(self) -> str:
        """What it is and how it searches, in words for people."""

    async def put(self, ref: Ref, model: str, parts: Sequence[VectorPart]) -> None:
        """Store these vectors, replacing those of the same parts. If it is interrupted, the same call completes it.

        Raises Invalid when their dimension differs from the model's other vectors, and NotFound when the conversation
        is unknown or was erased. Parts of erased messages are skipped.
        """

    async def near(
        self, owner: str, conversation: str | None, model: str, vector: bytes, limit: int
    ) -> Sequence[VectorHit]:
        """Return the nearest parts, best first: of one conversation (exact) or, with None, of everything the owner has.

        Raises Invalid when the dimension is not that of the model's vectors; returns nothing when the model has none
        here.
        """

    async def forget(
        self,
        owner: str,
        conversation: str | None = None,
        *,
        seqs: Sequence[int] | None = None,
        model: str | None = None,
    ) -> int:
        """Destroy the vectors of an owner, of a conversation, or of some of its entries; of one model or of all.

        Returns how many there were, if the store can tell.
        """

    async def indexed(self, ref: Ref) -> Mapping[str, IndexProgress]:
        """Return how much of a conversation is indexed, by embedder; nothing for an unknown conversation."""

    async def models(self) -> Mapping[str, int]:
        """Return every embedder that has vectors here and how many parts each has, over all owners."""

    async def close(self) -> None:
        """Close connections. A later call may open them again."""


def unit(numbers: Iterable[float]) -> bytes:
    """Pack numbers as a vector of length 1. All zeros stay zeros, which are near to nothing."""
    values = array("f", numbers)
    length = sqrt(sum(value * value for value in values))
    if length and length != 1.0:
        values = array("f", (value / length for value in values))
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def dimension_of(vector: bytes) -> int:
    """Return the number of dimensions of a vector. Raises Invalid when it is not a vector."""
    if not isinstance(vector, bytes) or not vector or len(vector) % NUMBER_BYTES:
        raise Invalid(
            "must be float32 numbers as bytes; `unit` of everthread.core.embeddings packs them", field="vector"
        )
    return len(vector) // NUMBER_BYTES


def same_dimension(vectors: Iterable[bytes]) -> int | None:
    """Return the common dimension of these vectors, None when there are none. Raises Invalid when they differ."""
    found = {dimension_of(vector) for vector in vectors}
    if len(found) > 1:
        raise Invalid(f"must all have one dimension, these have {sorted(found)}", field="vectors")
    return found.pop() if found else None


def check_dimension(given: int, kept: int, model: str) -> None:
    """Raise Invalid unless a vector has the dimension of the stored vectors of the same model."""
    if given != kept:
        raise Invalid(
            f"has {given} dimensions, but vectors stored for {model!r} have {kept}; use another name for another model",
            field="vector",
        )

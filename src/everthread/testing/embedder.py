"""`FakeEmbedder`: vectors for tests, the same on every machine, with no model and no network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from everthread.core.embeddings import unit

_WORDS = re.compile(r"[^\W_]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


class FakeEmbedder:
    """Texts that share words are near each other. `alike` makes other words count as one: `{"movie": "film"}`.

        embedder = FakeEmbedder(alike={"movie": "film"})
        async with everthread.open("memory://", embedder=embedder) as et: ...

    `asked` holds every text it was given. With `fails` set, it raises that error instead of answering.
    """

    def __init__(self, *, dimension: int = 64, alike: Mapping[str, str] | None = None, name: str = "fake") -> None:
        self.name = name
        self.dimension = dimension
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self._alike = dict(alike or {})

    async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector for each text."""
        return [self._vector(text) for text in texts]

    async def query(self, text: str) -> bytes:
        """The vector of a question."""
        return self._vector(text)

    def understood_share(self, text: str) -> float:
        """It takes every text for its own language, but an empty one."""
        return 1.0 if text.strip() else 0.0

    def _vector(self, text: str) -> bytes:
        if self.fails is not None:
            raise self.fails
        self.asked.append(text)
        numbers = [0.0] * self.dimension
        for word in self._words(text):
            digest = blake2b(self._alike.get(word, word).encode("utf-8", "replace"), digest_size=8).digest()
            index = int.from_bytes(digest[:4], "big") % self.dimension
            numbers[index] += 1.0 if digest[4] & 1 else -1.0
        return unit(numbers)

    def _words(self, text: str) -> Iterable[str]:
        spaced = _CHINESE.sub(lambda found: f" {found[0]} ", text.casefold())
        return _WORDS.findall(spaced)

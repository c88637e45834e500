"""The static embedder."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tokenizers", reason="needs everthread[meaning]")

import numpy as np

from everthread.adapters.embedders.wordllama import WordLlama
from everthread.core.errors import MissingExtra, ModelError


async def test_it_finds_what_keeps_the_same_company(wordllama_models: Path) -> None:
    embedder = WordLlama(wordllama_models)
    passages = ["She adopted a kitten", "The invoice is due on Friday", "We flew to Lisbon"]
    found = [np.frombuffer(vector, "<f4") for vector in await embedder.passages(passages)]
    asked = np.frombuffer(await embedder.query("a cat as a pet"), "<f4")
    assert int(np.argmax([vector @ asked for vector in found])) == 0
    assert {len(vector) for vector in found} == {embedder.dimension}


async def test_any_text_has_a_vector(wordllama_models: Path) -> None:
    embedder = WordLlama(wordllama_models)
    empty, half, long = await embedder.passages(["", "\ud800", "word " * 50_000])
    assert not any(empty)
    assert np.linalg.norm(np.frombuffer(half, "<f4")) == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(np.frombuffer(long, "<f4")) == pytest.approx(1.0, abs=1e-5)


async def test_missing_weights_are_refused_and_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="everthread models fetch wordllama"):
        WordLlama(tmp_path).require()
    with pytest.raises(ModelError, match="everthread models fetch wordllama"):
        await WordLlama(tmp_path).query("x")

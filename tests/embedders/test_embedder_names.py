"""How finding by meaning is switched on: by an argument, by a setting, or by what is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import everthread
from everthread.adapters.embedders import embedder_from, embedder_named
from everthread.core.errors import Invalid, MissingExtra, ModelError
from everthread.settings import Settings
from everthread.testing import FakeEmbedder

langchain = pytest.importorskip("langchain_core.embeddings", reason="needs everthread[langchain]")


def test_without_weights_words_alone_are_searched(tmp_path: Path) -> None:
    assert embedder_from("auto", lambda: tmp_path) is None
    assert everthread.open("memory://").embedder is None


def test_with_weights_minilm_is_the_default(minilm_models: Path) -> None:
    found = embedder_from("auto", lambda: minilm_models)
    assert found is not None
    assert found.name.startswith("all-MiniLM-L6-v2")
    settings = Settings.load(models_dir=minilm_models, database="memory://")
    chosen = everthread.open(settings=settings).embedder
    assert chosen is not None
    assert chosen.name == found.name


def test_a_model_is_loaded_once_for_all_who_open(minilm_models: Path, tmp_path: Path) -> None:
    first = embedder_from("minilm", lambda: minilm_models)
    assert embedder_from("auto", lambda: minilm_models) is first
    assert embedder_named("minilm", lambda: tmp_path) is not first


def test_none_is_none_whatever_is_there(minilm_models: Path) -> None:
    assert embedder_from(None, lambda: minilm_models) is None
    assert embedder_from("none", lambda: minilm_models) is None
    settings = Settings.load(models_dir=minilm_models, embedder="none", database="memory://")
    assert everthread.open(settings=settings).embedder is None


def test_what_is_given_goes_before_the_settings() -> None:
    fake = FakeEmbedder()
    settings = Settings.load(embedder="none", database="memory://")
    chosen = everthread.open(settings=settings, embedder=fake).embedder
    assert chosen is not None
    assert chosen.name == fake.name


@pytest.mark.parametrize("vector", [b"12345678", [0.5] * 8, b"\0" * 31])
async def test_what_an_embedder_gives_must_be_what_it_says(vector: object) -> None:
    class Odd(FakeEmbedder):
        async def passages(self, texts: Sequence[str]) -> Sequence[bytes]:
            return [vector for _ in texts]  # type: ignore[misc]

        async def query(self, text: str) -> bytes:
            return vector  # type: ignore[return-value]

    embedder = embedder_from(Odd(dimension=8), Path)
    assert embedder is not None
    for asked in (embedder.passages(["a"]), embedder.query("a")):
        with pytest.raises(Invalid, match=r"expected 32 \(8 float32\)|must give vectors as bytes"):
            await asked
    good = embedder_from(FakeEmbedder(dimension=8), Path)
    assert good is not None
    assert len(await good.query("a")) == 32


def test_a_missing_extra_runtime_words_alone_unless_it_was_asked_for(
    minilm_models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.adapters.embedders.bert.MODULES", ("no_such_module",))
    assert embedder_from("auto", lambda: minilm_models) is None
    with pytest.raises(MissingExtra, match=r"everthread\[meaning\]"):
        embedder_from("minilm", lambda: minilm_models)


@pytest.mark.parametrize("name", ["minilm", "nobody:some-model"])
async def test_a_setting_that_cannot_be_had_stops_nothing_that_needs_none(name: str, tmp_path: Path) -> None:
    settings = Settings.load(models_dir=tmp_path, embedder=name, database="memory://")
    async with everthread.open(settings=settings) as et:
        await et.conversations.create()
        assert et.embedder is not None
        with pytest.raises(ModelError):
            await et.embedder.query("x")


def test_opening_with_an_embedder_imports_nothing_heavy(minilm_models: Path) -> None:
    code = (
        "import sys, everthread; from pathlib import Path; from everthread.settings import Settings\n"
        f"s = Settings.load(models_dir=Path({str(minilm_models)!r}), database='memory://')\n"
        "assert everthread.open(settings=s).embedder.name\n"
        "print([m for m in ('numpy', 'onnxruntime', 'tokenizers', 'langchain_core', 'pymilvus') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["minilm", "wordllama", "m3e"])
def test_missing_weights_are_named_where_they_were_asked_for(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=f"models fetch {name}"):
        embedder_from(name, lambda: tmp_path)


def test_langchain_embeddings_are_taken_as_they_are(tmp_path: Path) -> None:
    found = embedder_from(langchain.DeterministicFakeEmbedding(size=4), lambda: tmp_path)
    assert found is not None
    assert found.name == "DeterministicFakeEmbedding"


@pytest.mark.parametrize("wrong", ["bert", "", 3, object()])
def test_what_is_no_embedder_is_refused_by_name(wrong: object, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="embedder"):
        embedder_from(wrong, lambda: tmp_path)  # type: ignore[arg-type]


def test_a_provider_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises((Invalid, MissingExtra)):
        embedder_from("nobody:some-model", lambda: tmp_path)


@pytest.mark.parametrize("wrong", ["qdrant:x", "milvus:", "http://host"])
def test_a_place_for_vectors_that_is_none_is_refused(wrong: str) -> None:
    pytest.importorskip("pymilvus", reason="needs everthread[milvus]")
    with pytest.raises(Invalid, match="vectors"):
        everthread.open("memory://", vectors=wrong)

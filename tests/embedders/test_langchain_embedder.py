"""LangChain's embeddings as an embedder."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core", reason="needs everthread[langchain]")

from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from everthread.adapters.embedders.langchain import LangChainEmbedder
from everthread.core.embeddings import dimension_of
from everthread.core.errors import ModelError


class Scripted(Embeddings):
    """Answers with what it is given; raises it when it is an error."""

    def __init__(self, answer: list[list[float]] | Exception, model: str = "small") -> None:
        self.answer = answer
        self.model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def test_vectors_come_out_with_length_one() -> None:
    embedder = LangChainEmbedder(Scripted([[3.0, 4.0]]))
    assert embedder.dimension is None
    (vector,) = await embedder.passages(["x"])
    assert vector == await embedder.query("x")
    assert memoryview(vector).cast("f").tolist() == pytest.approx([0.6, 0.8])
    assert embedder.dimension == 2


async def test_two_models_have_two_names() -> None:
    names = {
        LangChainEmbedder(Scripted([], model="small")).name,
        LangChainEmbedder(Scripted([], model="large")).name,
        LangChainEmbedder(DeterministicFakeEmbedding(size=8)).name,
        LangChainEmbedder(Scripted([]), name="mine").name,
    }
    assert names == {"Scripted:small", "Scripted:large", "DeterministicFakeEmbedding", "mine"}


async def test_a_failing_provider_is_named_by_kind_and_never_quoted() -> None:
    embedder = LangChainEmbedder(Scripted(RuntimeError("key sk-secret was refused")))
    for call in (embedder.passages(["x"]), embedder.query("x")):
        with pytest.raises(ModelError, match="Scripted:small failed: RuntimeError") as caught:
            await call
        assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("answer", [[[1.0]], [[1.0], [1.0, 2.0]], [["a"], ["b"]], [[], []]])
async def test_answers_that_are_no_vectors_are_refused(answer: list[list[float]]) -> None:
    with pytest.raises(ModelError):
        await LangChainEmbedder(Scripted(answer)).passages(["x", "y"])


async def test_nothing_is_asked_for_nothing() -> None:
    assert await LangChainEmbedder(DeterministicFakeEmbedding(size=8)).passages([]) == []


async def test_a_double_of_langchain_works() -> None:
    embedder = LangChainEmbedder(DeterministicFakeEmbedding(size=8))
    assert dimension_of(await embedder.query("x")) == 8

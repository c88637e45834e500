"""The local default embedder, held against the same model computed in numpy."""

from __future__ import annotations

import asyncio
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="needs everthread[meaning]")

import numpy as np
from tokenizers import Tokenizer

from everthread.adapters.embedders.bert import BertEmbedder
from everthread.adapters.embedders.bert_session import GRAPH_FILE, MAX_TOKENS
from everthread.adapters.embedders.local_models import M3E, MINILM, chinese_share, clip_text, latin_share
from everthread.adapters.embedders.onnx_conversion import bert_graph
from everthread.adapters.embedders.onnx_conversion.bert_graph import read_weights
from everthread.adapters.models import weights
from everthread.core.errors import MissingExtra, ModelError
from tests.embedders.bert import Reference

TEXTS = [
    "hello",
    "Who was that director again?",
    "I moved to Berlin in 2019 to work on solar panels, and my sister joined me a year later with her two cats.",
    "Error: connection refused at 127.0.0.1:5432 while running SELECT count(*) FROM conversations",
    "Caroline went to the support group on 7 May 2023, and said that it was powerful and moving. " * 4,
    "Ünïcode, naïve café, Zürich",
]


@pytest.fixture(scope="module")
def models(minilm_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of our own to build in, with links to the weights."""
    return _linked(minilm_models, tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def embedder(models: Path) -> BertEmbedder:
    return BertEmbedder(MINILM, models)


def _linked(source: Path, target: Path) -> Path:
    folder = weights.folder_of(target, weights.weights_by_name("minilm"))
    folder.mkdir(parents=True)
    for file in weights.weights_by_name("minilm").files:
        os.symlink(weights.folder_of(source, weights.weights_by_name("minilm")) / file.name, folder / file.name)
    return target


def _numbers(vector: bytes) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.frombuffer(vector, dtype="<f4")


async def test_its_vectors_are_those_of_the_published_model(embedder: BertEmbedder, models: Path) -> None:
    folder = weights.folder_of(models, weights.weights_by_name("minilm"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    reference = Reference(read_weights(folder / MINILM.file), heads=MINILM.heads)
    found = await embedder.passages(TEXTS)
    cosines = [
        float(_numbers(vector) @ reference.vector(tokenizer.encode(text).ids))
        for vector, text in zip(found, TEXTS, strict=True)
    ]
    assert min(cosines) > 0.99, cosines


async def test_a_vector_has_384_numbers_and_length_one(embedder: BertEmbedder) -> None:
    for vector in await embedder.passages(["one", "", "x" * 100_000, "\ud800 half", "🎬 电影"]):
        assert len(vector) == 4 * embedder.dimension == 4 * 384
        assert float(np.linalg.norm(_numbers(vector))) == pytest.approx(1.0, abs=1e-5)


async def test_a_text_has_the_same_vector_in_any_company(embedder: BertEmbedder) -> None:
    alone = await embedder.query(TEXTS[1])
    among = await embedder.passages([TEXTS[4], TEXTS[1], TEXTS[0]])
    assert among[1] == alone


async def test_meaning_is_found_where_no_word_is_shared(embedder: BertEmbedder) -> None:
    passages = [
        "She adopted a kitten last spring",
        "The invoice is due on Friday",
        "We flew to Lisbon for the holidays",
    ]
    found = [_numbers(vector) for vector in await embedder.passages(passages)]
    asked = _numbers(await embedder.query("Which pet did they get?"))
    assert int(np.argmax([vector @ asked for vector in found])) == 0


async def test_a_question_does_not_wait_behind_a_backlog(embedder: BertEmbedder) -> None:
    await embedder.query("warm")
    backlog = asyncio.ensure_future(embedder.passages(TEXTS * 20))
    await embedder.query("now")
    assert not backlog.done()
    await backlog


def test_the_graph_is_the_same_on_every_machine(models: Path) -> None:
    folder = weights.folder_of(models, weights.weights_by_name("minilm"))
    graph = bert_graph.build(read_weights(folder / MINILM.file), heads=MINILM.heads, max_tokens=MAX_TOKENS)
    assert sha256(graph).hexdigest() == MINILM.graph_sha256


async def test_the_graph_is_built_once_and_a_damaged_one_is_built_again(embedder: BertEmbedder, models: Path) -> None:
    await embedder.query("build")
    graph = weights.folder_of(models, weights.weights_by_name("minilm")) / GRAPH_FILE
    whole = graph.read_bytes()
    graph.write_bytes(whole[:1000])
    expected = await embedder.query(TEXTS[1])
    assert await BertEmbedder(MINILM, models).query(TEXTS[1]) == expected
    assert graph.read_bytes() == whole


async def test_damaged_weights_are_refused_and_say_how_to_mend(minilm_models: Path, tmp_path: Path) -> None:
    models = _linked(minilm_models, tmp_path)
    folder = weights.folder_of(models, weights.weights_by_name("minilm"))
    tokenizer = folder / "tokenizer.json"
    content = tokenizer.read_bytes()
    tokenizer.unlink()
    tokenizer.write_bytes(content.replace(b"the", b"eht", 1))
    with pytest.raises(ModelError, match="everthread models fetch minilm"):
        await BertEmbedder(MINILM, models).query("x")


async def test_missing_weights_are_refused_and_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="everthread models fetch minilm"):
        BertEmbedder(MINILM, tmp_path).require()
    with pytest.raises(ModelError, match="everthread models fetch minilm"):
        await BertEmbedder(MINILM, tmp_path).query("x")


async def test_a_folder_that_cannot_be_written_is_used_all_the_same(minilm_models: Path, tmp_path: Path) -> None:
    models = _linked(minilm_models, tmp_path)
    folder = weights.folder_of(models, weights.weights_by_name("minilm"))
    (folder / GRAPH_FILE).mkdir()  # root may write anywhere, but not over a folder
    assert len(await BertEmbedder(MINILM, models).query("x")) == 1536
    shutil.rmtree(folder / GRAPH_FILE)
    assert not list(folder.glob(".building-*"))


async def test_the_one_for_chinese_is_the_published_model_too(m3e_models: Path) -> None:
    embedder = BertEmbedder(M3E, m3e_models)
    folder = weights.folder_of(m3e_models, weights.weights_by_name("m3e"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    reference = Reference(read_weights(folder / M3E.file), heads=M3E.heads)
    texts = ["那部科幻电影的导演是谁？", "我们周五上午在里斯本的酒店见，记得带 passport。", "好"]
    for vector, text in zip(await embedder.passages(texts), texts, strict=True):
        assert float(_numbers(vector) @ reference.vector(tokenizer.encode(text).ids)) > 0.99
    passages = ["她去年春天领养了一只小猫", "发票周五到期", "我们飞去里斯本度假"]
    found = [_numbers(vector) for vector in await embedder.passages(passages)]
    asked = _numbers(await embedder.query("他们养了什么宠物？"))
    assert int(np.argmax([vector @ asked for vector in found])) == 0


@pytest.mark.parametrize(
    ("text", "share"),
    [("hello", 1.0), ("你好世界", 0.0), ("OK，好的", 0.5), ("café", 1.0), ("2023-05-07 🎬", 0.0), ("", 0.0)],
)
def test_it_understands_latin_letters(text: str, share: float) -> None:
    assert latin_share(text) == pytest.approx(share)


@pytest.mark.parametrize(("text", "share"), [("hello", 0.0), ("你好世界", 1.0), ("OK，好的", 0.5), ("12:30", 0.0)])
def test_the_one_for_chinese_understands_chinese(text: str, share: float) -> None:
    assert chinese_share(text) == pytest.approx(share)


def test_half_surrogate_pairs_do_not_reach_a_tokenizer() -> None:
    assert clip_text("a\ud800b", 10) == "a?b"
    assert clip_text("abc", 2) == "ab"

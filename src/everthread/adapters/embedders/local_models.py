"""The BERT sentence models that run on this machine, and how local embedders prepare and judge a text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_LAST_LATIN = "\u024f"
"""The last of the Latin letters, accented ones included."""
_FIRST_HAN, _LAST_HAN = "\u3400", "\u9fff"


def clip_text(text: str, max_characters: int) -> str:
    """As much of the text as a model reads, without the lone surrogates that tokenizers reject."""
    return text[:max_characters].encode("utf-8", "replace").decode("utf-8")


def latin_share(text: str) -> float:
    """Which share of the letters is Latin; 0 for a text without letters: digits and signs are better found by words."""
    letters = [character for character in text if character.isalpha()]
    return sum(letter <= _LAST_LATIN for letter in letters) / len(letters) if letters else 0.0


def chinese_share(text: str) -> float:
    """Which share of the letters is Chinese; 0 for a text without letters."""
    letters = [character for character in text if character.isalpha()]
    return sum(_FIRST_HAN <= letter <= _LAST_HAN for letter in letters) / len(letters) if letters else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BertModel:
    """What must be known about a model before it is loaded."""

    model: str
    """Its name in the catalogue of weights, and for `embedder=`."""
    name: str
    """The name its vectors are stored under."""
    dimension: int
    heads: int
    file: str
    """The weights, among its files."""
    graph_sha256: str
    """Of the graph that `onnx_conversion` builds from the published weights; a test compares the two."""
    understood_share: Callable[[str], float]


MINILM = BertModel(
    model="minilm",
    name="all-MiniLM-L6-v2/int8",
    dimension=384,
    heads=12,
    file="model.safetensors",
    graph_sha256="172f043dd922ef7521f94e89fcfcfa9b27ba906c1be6f5e0cb6dacddbdc839d8",
    understood_share=latin_share,
)
"""English, and to some degree other languages written in Latin letters."""

M3E = BertModel(
    model="m3e",
    name="m3e-small/int8",
    dimension=512,
    heads=8,
    file="pytorch_model.bin",
    graph_sha256="b24b61c95b0baba7f3c3abbe398355fb9ce967efa22c031bc8d54a460b73ba2d",
    understood_share=chinese_share,
)
"""Chinese, with English words in it. Its licence allows research only, so it is never chosen by default."""

BERT_MODELS = {model.model: model for model in (MINILM, M3E)}

"""Which sentence embedders run on this machine, and what is to know about each before it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everthread.adapters.embedders.reading import chinese_share, latin_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One model, of BERT's build."""

    model: str
    """Its name in the catalogue of weights, and for `embedder=`."""
    name: str
    """What its vectors are known by."""
    dimension: int
    heads: int
    file: str
    """The weights, among its files."""
    graph_sha256: str
    """Of the graph that is built from the published weights; a test holds the two together."""
    grasp: Callable[[str], float]


MINILM = Recipe(
    model="minilm",
    name="all-MiniLM-L6-v2/int8",
    dimension=384,
    heads=12,
    file="model.safetensors",
    graph_sha256="172f043dd922ef7521f94e89fcfcfa9b27ba906c1be6f5e0cb6dacddbdc839d8",
    grasp=latin_share,
)
"""English, and other languages as far as they are written in Latin letters."""

M3E = Recipe(
    model="m3e",
    name="m3e-small/int8",
    dimension=512,
    heads=8,
    file="pytorch_model.bin",
    graph_sha256="b24b61c95b0baba7f3c3abbe398355fb9ce967efa22c031bc8d54a460b73ba2d",
    grasp=chinese_share,
)
"""Chinese, with English words in it. Its makers allow research only, so it is never chosen by itself."""

RECIPES = {recipe.model: recipe for recipe in (MINILM, M3E)}

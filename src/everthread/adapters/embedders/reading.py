"""What every local embedder does with a text before its model sees it."""

from __future__ import annotations

LAST_LATIN = "\u024f"
"""The end of the Latin letters, those with accents included."""


FIRST_HAN, LAST_HAN = "\u3400", "\u9fff"


def plain(text: str, most_characters: int) -> str:
    """As much of the text as a model can take in, without the half surrogate pairs that no tokenizer takes."""
    return text[:most_characters].encode("utf-8", "replace").decode("utf-8")


def latin_share(text: str) -> float:
    """Which share of the letters is Latin; 0 for a text that has none: figures and signs are a matter of words."""
    letters = [character for character in text if character.isalpha()]
    return sum(letter <= LAST_LATIN for letter in letters) / len(letters) if letters else 0.0


def chinese_share(text: str) -> float:
    """Which share of the letters is Chinese; 0 for a text that has none."""
    letters = [character for character in text if character.isalpha()]
    return sum(FIRST_HAN <= letter <= LAST_HAN for letter in letters) / len(letters) if letters else 0.0

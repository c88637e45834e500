"""Which language a text is in, and what of it can be read at all."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["en", "zh"]

# Control characters, marks that turn the direction of writing, lone surrogates.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")


def readable(text: str) -> str:
    """The text without what no tokenizer takes and no reader sees."""
    return _CONTROL.sub(" ", text) if _CONTROL.search(text) else text


def language_of_text(text: str) -> Language:
    """Chinese when it has as many characters as Latin words: whoever writes Chinese mixes in names and code."""
    characters = 0 if text.isascii() else len(_CJK.findall(text))
    return "zh" if characters and characters >= len(_LATIN_WORD.findall(text)) else "en"
